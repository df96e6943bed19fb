"""Everything the controller can be told, checked before anything starts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from controller.allocator import Features, Policy, features_of_version
from controller.allocator.feature import GATES
from dra_driver.api import name
from dra_driver.errors import SettingError
from dra_driver.http import parse_http_address
from dra_driver.kube.leadership import Terms

DEFAULT_NAMESPACE = "dra-driver"
LEASE_NAME = "dra-controller"
_NEWEST = "1.37"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one controller process. Times are in seconds."""

    identity: str
    kubeconfig: Path | None = None
    policy: Policy = Policy.FIRST_FIT
    features: Features = field(default_factory=Features)
    leader_elect: bool = True
    lease_namespace: str = DEFAULT_NAMESPACE
    lease_name: str = LEASE_NAME
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    http_address: str = ":8080"


def validate_settings(settings: Settings) -> None:
    """Raise SettingError that names every setting that cannot be used."""
    if problems := list(_problems(settings)):
        raise SettingError("; ".join(problems))


def read_features(texts: Iterable[str]) -> Features:
    """Read `Gate=true` or `Gate=false`, several joined by commas, on top of the defaults of Kubernetes 1.37.

    Raises SettingError that names every one that cannot be used.
    """
    gates: dict[str, bool] = {}
    problems = []
    for text in (part.strip() for each in texts for part in each.split(",") if part.strip()):
        gate, _, value = text.partition("=")
        if gate not in GATES:
            problems.append(f"--feature-gates: unknown gate {gate!r}, want one of {', '.join(sorted(GATES))}")
        elif value not in ("true", "false"):
            problems.append(f"--feature-gates: {text!r}, want {gate}=true or {gate}=false")
        gates[gate] = value == "true"
    if problems:
        raise SettingError("; ".join(problems))
    return features_of_version(_NEWEST, gates)


def _problems(settings: Settings) -> Iterator[str]:
    for flag, value, validate in (
        ("--lease-namespace", settings.lease_namespace, name.validate_dns_label),
        ("--lease-name", settings.lease_name, name.validate_dns_subdomain),
    ):
        yield from (f"{flag}: {problem}" for problem in validate(value))
    if not settings.identity:
        yield "--identity: empty, want a name that no other replica has, such as the Pod's"
    for check in (
        lambda: Terms(settings.lease_duration_s, settings.renew_deadline_s, settings.retry_period_s),
        lambda: parse_http_address(settings.http_address),
    ):
        try:
            check()
        except SettingError as error:
            yield str(error)
