"""The operator's guide names every value of the chart."""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.support.manifest import CHART

README = (CHART.parents[1] / "README.md").read_text("utf-8")


def test_the_guide_lists_every_value_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert [name for name in dict.fromkeys(_names(values)) if f"`{name}`" not in README] == []


def _names(values: dict[str, Any]) -> Iterator[str]:
    for section, value in values.items():
        if section == "deviceClasses":
            yield from (f"{section}.*.{name}" for each in value.values() for name in each)
        elif isinstance(value, dict):
            yield from (f"{section}.{name}" for name in value)
        else:
            yield section
