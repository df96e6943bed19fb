"""Manifests as the structs that the controller works on, and a state that is filled with them."""

import itertools
import json
from typing import Any, TypeVar

from controller.allocator import CelCompiler, SelectorCache
from controller.decider import Decider
from controller.decision import Decision
from controller.state import State
from dra_driver.api import codec
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice
from dra_driver.kube.resource import ObjectKey, key_of

T = TypeVar("T")


def read(manifest: dict[str, Any], kind: type[T]) -> T:
    """Decode a manifest; where it has a name, it gets a UID of that name."""
    if "metadata" in manifest:
        metadata = {"uid": f"uid-{manifest['metadata']['name']}", "resourceVersion": "1"} | manifest["metadata"]
        manifest = manifest | {"metadata": metadata}
    return codec.decode(json.dumps(manifest), kind)


def a_state(*manifests: dict[str, Any]) -> State:
    """Make a state that knows some objects; share IDs count up."""
    numbers = itertools.count()
    state = State(SelectorCache(CelCompiler()), lambda: f"share-{next(numbers)}")
    for manifest in manifests:
        learn(state, manifest)
    return state


def learn(state: State, manifest: dict[str, Any]) -> ObjectKey:
    """Let the state know an object."""
    match manifest["kind"]:
        case "Node":
            node = read(manifest, Node)
            state.set_node(node.metadata.name, node)
            return key_of(node)
        case "DeviceClass":
            device_class = read(manifest, DeviceClass)
            state.set_class(device_class.metadata.name, device_class)
            return key_of(device_class)
        case "ResourceSlice":
            slice_ = read(manifest, ResourceSlice)
            state.set_slice(slice_.metadata.name, slice_)
            return key_of(slice_)
        case "ResourceClaim":
            claim = read(manifest, ResourceClaim)
            state.set_claim(key_of(claim), claim)
            return key_of(claim)
        case "Pod":
            pod = read(manifest, Pod)
            state.set_pod(key_of(pod), pod)
            return key_of(pod)
    raise ValueError(manifest["kind"])


def decide(decider: Decider, name: str = "pod-1", **options: Any) -> Decision:
    """Go through a decision about a Pod without pauses."""
    steps = decider.decide(decider.state.pods[ObjectKey("default", name)], **options)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
