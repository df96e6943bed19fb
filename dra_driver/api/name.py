"""The forms of names in the Kubernetes API, as the API server checks them.

A validator returns what is wrong, with what is wanted; nothing when the name is fine. Lengths are in bytes.
"""

import re
from collections.abc import Iterator
from typing import Final

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
DOMAIN_MAX: Final = 63
ID_MAX: Final = 32

_QUOTED_MAX: Final = 80

_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_PART: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TO_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")

_WANT_LABEL: Final = "want lower-case letters, digits and '-', with a letter or digit at both ends"
_WANT_SUBDOMAIN: Final = "want lower-case letters, digits, '-' and '.', with a letter or digit at the ends of each part"
_WANT_QUALIFIED: Final = "want letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def quote(text: str) -> str:
    """Quote what a user wrote, cut to a length that is fit for a message."""
    return repr(text) if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]!r}…"


def byte_length(text: str) -> int:
    """Count the bytes that `text` takes in JSON and on disk."""
    return len(text.encode("utf-8", "surrogatepass"))


def validate_length(text: str, limit: int) -> tuple[str, ...]:
    """Check that `text` is not longer than `limit` bytes."""
    length = byte_length(text)
    return (f"{quote(text)} has {length} bytes, want at most {limit}",) if length > limit else ()


def validate_dns_label(name: str) -> tuple[str, ...]:
    """Check a DNS label (RFC 1123): the name of a device, request, counter or counter set."""
    return _check(name, "DNS label", _DNS_LABEL, LABEL_MAX, _WANT_LABEL)


def validate_dns_subdomain(name: str) -> tuple[str, ...]:
    """Check a DNS subdomain (RFC 1123): the name of a node, class or claim."""
    return _check(name, "DNS subdomain", _DNS_SUBDOMAIN, SUBDOMAIN_MAX, _WANT_SUBDOMAIN)


def validate_driver_name(name: str) -> tuple[str, ...]:
    """Check a driver name or the domain of an attribute: a DNS subdomain of at most 63 bytes, in any case."""
    return _check(name.translate(_TO_LOWER), "DNS subdomain", _DNS_SUBDOMAIN, DOMAIN_MAX, _WANT_SUBDOMAIN)


def validate_pool_name(name: str) -> tuple[str, ...]:
    """Check a pool name: DNS subdomains joined by `/`, at most 253 bytes together."""
    if problems := validate_length(name, SUBDOMAIN_MAX):
        return problems
    if not name:
        return ("is missing, want DNS subdomains joined by '/'",)
    return tuple(problem for part in name.split("/") for problem in validate_dns_subdomain(part))


def validate_c_identifier(name: str) -> tuple[str, ...]:
    """Check the name of an attribute or capacity without its domain: a C identifier of at most 32 bytes."""
    want = "want letters, digits and '_', not beginning with a digit"
    return _check(name, "C identifier", _C_IDENTIFIER, ID_MAX, want)


def validate_qualified_name(name: str) -> tuple[str, ...]:
    """Check the name of an attribute or capacity: `id` or `domain/id`. More than one slash is refused here."""
    domain, slash, identifier = name.rpartition("/")
    if not slash:
        return validate_c_identifier(name)
    return validate_driver_name(domain) + validate_c_identifier(identifier)


def validate_fully_qualified_name(name: str) -> tuple[str, ...]:
    """Check `domain/id`, as constraints want it. Unlike in a driver name, the domain is in lower case."""
    domain, slash, identifier = name.rpartition("/")
    problems = validate_c_identifier(identifier)
    if not slash:
        return (f"{quote(name)} has no domain, want 'domain/name'", *problems)
    return _check(domain, "DNS subdomain", _DNS_SUBDOMAIN, DOMAIN_MAX, _WANT_SUBDOMAIN) + problems


def validate_label_key(key: str) -> tuple[str, ...]:
    """Check the key of a label, taint or annotation, or a condition type: `name` or `domain/name`."""
    domain, slash, name = key.rpartition("/")
    problems = validate_dns_subdomain(domain) if slash else ()
    return problems + _check(name, "qualified name", _QUALIFIED_PART, LABEL_MAX, _WANT_QUALIFIED)


def validate_label_value(value: str) -> tuple[str, ...]:
    """Check the value of a label or taint; it may be empty."""
    return _check(value, "label value", _QUALIFIED_PART, LABEL_MAX, _WANT_QUALIFIED) if value else ()


def validate_extended_resource_name(name: str) -> tuple[str, ...]:
    """Check the name of an extended resource, such as `vendor.example/gpu`: its domain is not of kubernetes.io."""
    return tuple(_extended_resource_problems(name))


def _check(name: str, what: str, pattern: re.Pattern[str], limit: int, want: str) -> tuple[str, ...]:
    """Look at the length first, so that a pattern never sees text that is too long."""
    if not name:
        return (f"is missing, want a {what} of at most {limit} bytes",)
    if problems := validate_length(name, limit):
        return problems
    return () if pattern.fullmatch(name) else (f"{quote(name)} is not a {what}, {want}",)


def _extended_resource_problems(name: str) -> Iterator[str]:
    if "/" not in name:
        yield f"{quote(name)} has no domain, want 'domain/name'"
    elif "kubernetes.io/" in name:
        yield f"{quote(name)} is in the domain of Kubernetes, want a domain of your own"
    elif name.startswith("requests."):
        yield f"{quote(name)} begins with 'requests.', want another domain"
    else:
        # A quota names it with this prefix, and the server wants that name to be good too.
        yield from validate_label_key(f"requests.{name}")
