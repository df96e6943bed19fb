from typing import Any

import pytest

from dra_driver.api import codec
from dra_driver.api.allocation_validation import validate_claim_status
from dra_driver.api.device_taint_rule_validation import validate_taint_rule_spec, validate_taint_rule_status
from dra_driver.api.resource_claim_validation import (
    validate_claim_spec,
    validate_claim_update,
    validate_class_spec,
)
from dra_driver.api.resource_v1 import (
    DeviceClassSpec,
    DeviceTaintRuleSpec,
    DeviceTaintRuleStatus,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dra_driver.cel import Options
from dra_driver.errors import FieldError, FieldReason

ATTRIBUTE = "a.example/model"


def spec(*requests: Any, **parts: Any) -> ResourceClaimSpec:
    return codec.decode(codec.encode({"devices": {"requests": requests, **parts}}), ResourceClaimSpec)


def request(name: str = "r", **parts: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, **parts}}


def found(errors: tuple[FieldError, ...]) -> list[tuple[str, FieldReason]]:
    return [(error.path, error.reason) for error in errors]


def test_a_good_claim_has_no_errors() -> None:
    subrequests = [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]
    constraint = {"requests": ["f/s", "r"], "matchAttribute": ATTRIBUTE}
    config = {"requests": ["f"], "opaque": {"driver": "d", "parameters": {}}}
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    whole = request(selectors=[{"cel": {"expression": "device.driver == 'd'"}}], tolerations=[toleration])
    claim = spec(whole, {"name": "f", "firstAvailable": subrequests}, constraints=[constraint], config=[config])
    assert validate_claim_spec(claim) == ()
    assert validate_claim_spec(spec()) == ()


def test_all_errors_are_told_at_once_with_paths_and_reasons() -> None:
    claim = spec(
        request("A", deviceClassName="", count=0),
        {"name": "b"},
        {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", "allocationMode": "Some"}] * 2},
        constraints=[{}, {"requests": ["x"], "matchAttribute": "model"}],
        config=[{}, {"opaque": {"driver": "", "parameters": {"a": "x" * 11_000}}}],
    )
    assert found(validate_claim_spec(claim)) == [
        ("spec.devices.requests[0].name", FieldReason.INVALID),
        ("spec.devices.requests[0].exactly.deviceClassName", FieldReason.REQUIRED),
        ("spec.devices.requests[0].exactly.count", FieldReason.INVALID),
        ("spec.devices.requests[1]", FieldReason.REQUIRED),
        ("spec.devices.requests[2].firstAvailable[0].allocationMode", FieldReason.NOT_SUPPORTED),
        ("spec.devices.requests[2].firstAvailable[1].allocationMode", FieldReason.NOT_SUPPORTED),
        ("spec.devices.requests[2].firstAvailable[1]", FieldReason.DUPLICATE),
        ("spec.devices.requests[2]", FieldReason.DUPLICATE),
        ("spec.devices.constraints[0]", FieldReason.REQUIRED),
        ("spec.devices.constraints[1].requests[0]", FieldReason.INVALID),
        ("spec.devices.constraints[1].matchAttribute", FieldReason.INVALID),
        ("spec.devices.config[0].opaque", FieldReason.REQUIRED),
        ("spec.devices.config[1].opaque.driver", FieldReason.REQUIRED),
        ("spec.devices.config[1].opaque.parameters", FieldReason.TOO_LONG),
    ]


def test_what_is_too_many_is_not_looked_at() -> None:
    claim = spec(*(request("") for _ in range(33)), constraints=[{}] * 33, config=[{}] * 33)
    assert [reason for _, reason in found(validate_claim_spec(claim))] == [FieldReason.TOO_MANY] * 3


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.nothing", FieldReason.INVALID),
        ("1", FieldReason.INVALID),
        ("'" + "x" * 10_240 + "'", FieldReason.TOO_LONG),
        (
            (
                "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, "
                "device.attributes.all(e, device.attributes.all(f, true))))))"
            ),
            FieldReason.FORBIDDEN,
        ),
    ],
    ids=["unknown", "type", "long", "costly"],
)
def test_an_expression_that_nobody_could_use_is_refused(expression: str, reason: FieldReason) -> None:
    path = "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"
    claim = spec(request(selectors=[{"cel": {"expression": expression}}]))
    assert found(validate_claim_spec(claim, "spec.spec")) == [(path, reason)]


def test_a_derived_attribute_is_for_a_constraint_of_its_request() -> None:
    derived = {"name": ATTRIBUTE, "expression": "device.driver"}
    path = "spec.devices.requests[0].exactly.derivedAttributes[0].name"
    for constraints, wanted in (
        ([{"matchAttribute": ATTRIBUTE}], []),
        ([{"requests": ["r"], "matchAttribute": ATTRIBUTE}], []),
        ([{"requests": ["q"], "matchAttribute": ATTRIBUTE}], [(path, FieldReason.INVALID)]),
        ([], [(path, FieldReason.INVALID)]),
    ):
        claim = spec(request(derivedAttributes=[derived]), request("q"), constraints=constraints)
        assert found(validate_claim_spec(claim)) == wanted


def test_without_consumable_capacity_only_match_attribute_is_missing() -> None:
    claim = spec(request(), constraints=[{}])
    errors = validate_claim_spec(claim, options=Options(stored=False, consumable_capacity=False))
    assert found(errors) == [("spec.devices.constraints[0].matchAttribute", FieldReason.REQUIRED)]


def test_the_spec_of_a_claim_never_changes() -> None:
    assert validate_claim_update(spec(request()), spec(request())) == ()
    assert found(validate_claim_update(spec(), spec(request()))) == [("spec", FieldReason.INVALID)]


def class_spec(expression: str, **parts: Any) -> DeviceClassSpec:
    value = {"selectors": [{"cel": {"expression": expression}}], **parts}
    return codec.decode(codec.encode(value), DeviceClassSpec)


def test_selectors_of_a_class_that_are_as_before_are_not_compiled_again() -> None:
    old = class_spec("future.syntax")
    assert validate_class_spec(class_spec("future.syntax"), old) == ()
    path = "spec.selectors[0].cel.expression"
    assert found(validate_class_spec(class_spec("other.syntax"), old)) == [(path, FieldReason.INVALID)]
    errors = validate_class_spec(class_spec("true", extendedResourceName="gpu"))
    assert found(errors) == [("spec.extendedResourceName", FieldReason.INVALID)]


RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
DEVICE = {"driver": "d", "pool": "p", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
USER = {"resource": "pods", "name": "p", "uid": "u"}
CLAIM = spec(request())


def status(**parts: Any) -> ResourceClaimStatus:
    return codec.decode(codec.encode(parts), ResourceClaimStatus)


def status_errors(new: ResourceClaimStatus, old: ResourceClaimStatus | None = None, **options: bool) -> list[Any]:
    return found(validate_claim_status(new, old or status(), CLAIM, **options))


def test_an_allocation_is_written_once_and_taken_back() -> None:
    allocated = status(allocation=ALLOCATION, reservedFor=[USER])
    assert status_errors(allocated) == []
    assert status_errors(allocated, allocated) == []
    assert status_errors(status(), allocated) == []
    later = status(allocation={**ALLOCATION, "allocationTimestamp": "2026-01-01T00:00:01Z"})
    assert status_errors(later, allocated) == [("status.allocation", FieldReason.INVALID)]


def test_a_claim_is_reserved_only_while_it_is_allocated_and_not_deleted() -> None:
    path = ("status.reservedFor", FieldReason.FORBIDDEN)
    assert status_errors(status(reservedFor=[USER])) == [path]
    allocated = status(allocation=ALLOCATION)
    assert status_errors(status(allocation=ALLOCATION, reservedFor=[USER]), allocated, is_deleted=True) == [path]
    twice = status(allocation=ALLOCATION, reservedFor=[USER, USER])
    assert status_errors(twice) == [("status.reservedFor[1]", FieldReason.DUPLICATE)]
    many = status(allocation=ALLOCATION, reservedFor=[{**USER, "uid": str(number)} for number in range(257)])
    assert status_errors(many) == [("status.reservedFor", FieldReason.TOO_MANY)]


def test_a_result_is_for_a_request_of_the_claim() -> None:
    wrong = {**RESULT, "request": "x", "pool": "", "shareID": "X", "bindingConditions": ["a"]}
    path = "status.allocation.devices.results[0]"
    assert status_errors(status(allocation={"devices": {"results": [wrong]}})) == [
        (f"{path}.request", FieldReason.INVALID),
        (f"{path}.pool", FieldReason.REQUIRED),
        (f"{path}.bindingFailureConditions", FieldReason.INVALID),
        (f"{path}.shareID", FieldReason.INVALID),
    ]


@pytest.mark.parametrize(
    ("device", "field", "reason"),
    [
        ({**DEVICE, "device": "gpu-9"}, "", FieldReason.INVALID),
        ({**DEVICE, "data": {"a": "x" * 11_000}}, ".data", FieldReason.TOO_LONG),
        ({**DEVICE, "networkData": {"ips": ["10.0.0.1"]}}, ".networkData.ips[0]", FieldReason.INVALID),
        ({**DEVICE, "networkData": {"ips": ["::ffff:1.2.3.4/96"]}}, ".networkData.ips[0]", FieldReason.INVALID),
        ({**DEVICE, "networkData": {"ips": ["10.0.0.1/33"]}}, ".networkData.ips[0]", FieldReason.INVALID),
        ({**DEVICE, "networkData": {"interfaceName": "x" * 257}}, ".networkData.interfaceName", FieldReason.TOO_LONG),
    ],
)
def test_the_status_of_a_device_is_checked(device: Any, field: str, reason: FieldReason) -> None:
    assert status_errors(status(allocation=ALLOCATION, devices=[device])) == [(f"status.devices[0]{field}", reason)]


def test_an_address_with_its_prefix_is_good() -> None:
    network = {"ips": ["10.9.8.7/24", "fd00::1/64"], "interfaceName": "eth0", "hardwareAddress": "00:11"}
    assert status_errors(status(allocation=ALLOCATION, devices=[{**DEVICE, "networkData": network}])) == []


def rule(**parts: Any) -> DeviceTaintRuleSpec:
    return codec.decode(codec.encode(parts), DeviceTaintRuleSpec)


def test_a_taint_rule_is_checked_as_a_taint_is() -> None:
    good = rule(taint={"key": "a.b/c", "effect": "None"}, deviceSelector={"driver": "d", "pool": "p", "device": "x"})
    assert validate_taint_rule_spec(good) == ()
    bad = rule(taint={"key": "a b", "effect": "Never"}, deviceSelector={"driver": "", "pool": "", "device": "X"})
    assert found(validate_taint_rule_spec(bad)) == [
        ("spec.deviceSelector.driver", FieldReason.REQUIRED),
        ("spec.deviceSelector.pool", FieldReason.REQUIRED),
        ("spec.deviceSelector.device", FieldReason.INVALID),
        ("spec.taint.key", FieldReason.INVALID),
        ("spec.taint.effect", FieldReason.NOT_SUPPORTED),
    ]
    old = rule(taint={"key": "a", "effect": "FromTheFuture"})
    assert validate_taint_rule_spec(old, old) == ()


def test_conditions_are_checked() -> None:
    condition = {
        "type": "A",
        "status": "True",
        "reason": "Up",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }

    def errors(*conditions: Any) -> list[Any]:
        value = codec.decode(codec.encode({"conditions": conditions}), DeviceTaintRuleStatus)
        return found(validate_taint_rule_status(value))

    path = "status.conditions[0]"
    assert errors(condition) == []
    assert errors({**condition, "status": "Maybe"}) == [(f"{path}.status", FieldReason.NOT_SUPPORTED)]
    assert errors({**condition, "reason": ""}) == [(f"{path}.reason", FieldReason.REQUIRED)]
    assert errors({**condition, "reason": "a b"}) == [(f"{path}.reason", FieldReason.INVALID)]
    assert errors({**condition, "type": ""}) == [(f"{path}.type", FieldReason.REQUIRED)]
    assert errors(condition, condition) == [("status.conditions[1].type", FieldReason.DUPLICATE)]
