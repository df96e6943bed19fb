"""Which opaque configs of a claim apply to an allocation result, and what they come to."""

from collections.abc import Iterable

from dra_driver.api import config_v1alpha1
from dra_driver.api.config_v1alpha1 import DeviceConfig, EffectiveConfig, Strategy
from dra_driver.api.resource_v1 import DeviceAllocationConfiguration
from dra_driver.errors import FieldError, InvalidError

FROM_CLASS = "FromClass"


def parse_configs(
    configs: Iterable[DeviceAllocationConfiguration], *, driver: str
) -> tuple[tuple[DeviceAllocationConfiguration, DeviceConfig], ...]:
    """Decode the configs for this driver, class configs first, each group in its order. Others' are ignored.

    Raises InvalidError with the errors of all configs; paths begin with `config[i].opaque.parameters`.
    """
    parsed: list[tuple[DeviceAllocationConfiguration, DeviceConfig]] = []
    errors: list[FieldError] = []
    for index, config in enumerate(configs):
        if config.opaque is None or config.opaque.driver != driver:
            continue
        path = f"config[{index}].opaque.parameters"
        try:
            parsed.append((config, config_v1alpha1.parse_device_config(config.opaque.parameters, path=path)))
        except InvalidError as error:
            errors += error.errors
    if errors:
        raise InvalidError("allocation", errors)
    return tuple(sorted(parsed, key=lambda pair: pair[0].source != FROM_CLASS))


def resolve_config(
    configs: Iterable[tuple[DeviceAllocationConfiguration, DeviceConfig]], *, request: str
) -> EffectiveConfig:
    """Lay the configs that apply to a request over each other, later over earlier, and fill in the defaults.

    `request` is the result's: `main` or `main/sub`. A config applies if it names no request, `main`, or `main/sub`.
    """
    applying = [parameters for config, parameters in configs if _applies(config, request)]
    return config_v1alpha1.default_device_config(config_v1alpha1.merge_device_configs(applying))


def is_demanded_by_class(
    configs: Iterable[tuple[DeviceAllocationConfiguration, DeviceConfig]], strategy: Strategy | None, *, request: str
) -> bool:
    """Whether a class, which only administrators write, demands the strategy for a request, whoever else does."""
    return any(
        config.source == FROM_CLASS and parameters.sharing.strategy is strategy
        for config, parameters in configs
        if _applies(config, request)
    )


def _applies(config: DeviceAllocationConfiguration, request: str) -> bool:
    return not config.requests or request in config.requests or request.partition("/")[0] in config.requests
