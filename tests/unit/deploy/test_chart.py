"""What can be said about the chart without helm; tests/cluster/test_chart.py renders it."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dra_driver.devices.simulated import profile_names
from tests.support.manifest import CHART, DEPLOY

TEMPLATES = sorted((CHART / "templates").iterdir())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
OPEN_BY_DESIGN = {"global", "nodeAffinity", "podAffinity", "podAntiAffinity", "valueFrom"}
DAEMONSET = (CHART / "templates" / "daemonset.yaml").read_text("utf-8")


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    return SCHEMA["definitions"][reference.rpartition("/")[2]] if reference else schema


def objects(schema: dict[str, Any], name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the schema, with the name it stands under."""
    schema = resolve(schema)
    if schema.get("type") == "object":
        yield name, schema
    for child, value in schema.get("properties", {}).items():
        yield from objects(value, child)
    if "items" in schema:
        yield from objects(schema["items"], name)


def mismatches(value: object, schema: dict[str, Any], path: str = "values") -> Iterator[str]:
    """Where values and schema do not speak of the same fields and simple types."""
    schema = resolve(schema)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not in {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    wanted = TYPES.get(str(schema.get("type")))
    if wanted and not isinstance(value, wanted):
        yield f"{path}: {value!r} is no {schema['type']}"
    if isinstance(value, dict) and "properties" in schema:
        for name in value.keys() - schema["properties"].keys():
            yield f"{path}.{name}: not in the schema"
        for name in set(schema.get("required", ())) - value.keys():
            yield f"{path}.{name}: required, without a default"
        for name in value.keys() & schema["properties"].keys():
            yield from mismatches(value[name], schema["properties"][name], f"{path}.{name}")


def test_the_defaults_fit_the_schema() -> None:
    assert list(mismatches(VALUES, SCHEMA)) == []


def test_every_value_of_the_schema_has_a_default_that_people_can_read() -> None:
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
    for name, settings in VALUES.items():
        if isinstance(settings, dict):
            assert settings.keys() == resolve(SCHEMA["properties"][name])["properties"].keys()


def test_the_schema_refuses_unknown_names_everywhere() -> None:
    loose = [name for name, schema in objects(SCHEMA) if "additionalProperties" not in schema]
    assert set(loose) == OPEN_BY_DESIGN


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_account_is_spelled_in_one_place_so_that_the_policy_and_the_daemonset_agree() -> None:
    for account in ("dra-kubeletplugin", "dra-controller"):
        spelled = [path.name for path in TEMPLATES if account in re.sub(r"command: .*", "", path.read_text("utf-8"))]
        assert spelled == ["_helpers.tpl"]
    reference = '{{ include "dra-driver.name" . }}'
    assert f"serviceAccountName: {reference}\n" in DAEMONSET
    policy = (CHART / "templates" / "admissionpolicy.yaml").read_text("utf-8")
    assert f'"system:serviceaccount:{{{{ .Release.Namespace }}}}:{reference}"' in policy


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_name_only_values_that_exist(path: Any) -> None:
    for reference in re.findall(r"\.Values\.([A-Za-z.]+)", path.read_text("utf-8")):
        settings = VALUES
        for part in reference.split("."):
            assert part in settings, f"{path.name}: .Values.{reference}"
            settings = settings[part]


def test_the_profile_by_default_and_those_that_the_values_name_are_built_in() -> None:
    text = (CHART / "values.yaml").read_text("utf-8")
    assert VALUES["simulated"]["profile"] in profile_names()
    assert [name for name in profile_names() if name not in text] == []
