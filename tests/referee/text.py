"""Our answers about quantities, versions and names."""

from dra_driver.api import name as api_name
from dra_driver.api.semver import compare_semver, parse_semver
from dra_driver.cel.library.amount import parse_amount
from tests.referee.process import Answer, Question

_FORMS = {
    "dnsLabel": api_name.validate_dns_label,
    "dnsSubdomain": api_name.validate_dns_subdomain,
    "labelKey": api_name.validate_label_key,
    "labelValue": api_name.validate_label_value,
    "poolName": api_name.validate_pool_name,
    "fullyQualifiedName": api_name.validate_fully_qualified_name,
    "extendedResourceName": api_name.validate_extended_resource_name,
}


def read_quantity(question: Question) -> Answer:
    """Answer `quantity`. `value` and `milli` have as many digits as they need."""
    try:
        quantity = parse_amount(question["text"])
    except ValueError as error:
        return {"error": str(error)}
    whole = quantity.amount.whole()
    return {
        "canonical": str(quantity),
        "value": quantity.value(),
        "milli": quantity.milli_value(),
        "int": whole or 0,
        "exact": whole is not None,
        "sign": quantity.sign(),
    }


def read_semver(question: Question) -> Answer:
    """Answer `semver`."""
    try:
        version = parse_semver(question["text"])
        other = parse_semver(question["other"]) if question.get("other") is not None else None
    except ValueError as error:
        return {"error": str(error)}
    answer: Answer = {
        "canonical": str(version),
        "major": version.major,
        "minor": version.minor,
        "patch": version.patch,
        "prerelease": list(version.prerelease),
        "build": list(version.build),
    }
    return answer if other is None else answer | {"compare": compare_semver(version, other)}


def check_name(question: Question) -> Answer:
    """Answer `name`."""
    text = question["text"]
    return {form: not validate(text) for form, validate in _FORMS.items()}
