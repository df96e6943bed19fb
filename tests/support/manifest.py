"""Manifests as people write them: YAML documents, and a check that Kubernetes knows every one of their fields."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes.client
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
EXAMPLES = DEPLOY / "examples"
CHART = DEPLOY / "helm" / "dra-driver"

Manifest = dict[str, Any]

CLASS_CONDITIONS = {
    "accelerator": "{attributes}.partition == false",
    "gpu": '{attributes}.type == "gpu" && {attributes}.partition == false',
    "npu": '{attributes}.type == "npu" && {attributes}.partition == false',
    "partition": "{attributes}.partition == true",
}
"""What the chart's classes select."""

_MODELS = {("resource.k8s.io/v1", "ResourceClaim"): "ResourceV1ResourceClaim"}
"""Kinds whose model has another name than version and kind, since the word is there twice in the API."""


def parse_manifests(text: str) -> list[Manifest]:
    """Read the objects of a YAML stream, without empty documents."""
    return [document for document in yaml.safe_load_all(text) if document]


def read_example(name: str) -> list[Manifest]:
    """Read the objects of an example."""
    return parse_manifests((EXAMPLES / name / "manifest.yaml").read_text("utf-8"))


def class_expression(like: str, driver: str) -> str:
    """Give the selector of the chart's class `<like>.dra-driver.io`."""
    condition = CLASS_CONDITIONS[like].format(attributes=f'device.attributes["{driver}"]')
    return f'device.driver == "{driver}" && {condition}'


def example_names() -> list[str]:
    """List the folders of all examples."""
    return sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def refuse_unknown_fields(manifest: Manifest) -> None:
    """Raise an error if Kubernetes' own model of the kind lacks a field of the manifest, or wants another type."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    name = _MODELS.get((version, kind), f"{version.rpartition('/')[2].capitalize()}{kind}")
    getattr(kubernetes.client, name).model_validate(manifest)


def find_values(tree: object, key: str) -> Iterator[Any]:
    """Every value that stands under a key, at any depth."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from find_values(value, key)
    elif isinstance(tree, list):
        for item in tree:
            yield from find_values(item, key)
