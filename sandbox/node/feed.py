"""Tells the kubelets of their Pods: one watch for all nodes, since hundreds in one process would cost as many."""

import contextlib
from collections import defaultdict
from typing import Final, assert_never

from dra_driver.kube.client import ApiClient
from dra_driver.kube.watch import Applied, Deleted, Replaced, Watch
from sandbox.node.kubelet import Kubelet
from sandbox.node.pod import PODS, Pod

_NO_PODS: Final[dict[str, Pod]] = {}


class PodFeed:
    """All Pods that are bound to a node, told to the node's kubelet while one is attached. Someone runs `run`."""

    def __init__(self, client: ApiClient) -> None:
        self._watch = Watch(client, PODS)
        self._pods: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self._kubelets: dict[str, Kubelet] = {}
        self._is_listed = False

    def attach(self, kubelet: Kubelet) -> None:
        """Tell a kubelet of its Pods from now on, beginning with those that are there."""
        self._kubelets[kubelet.node_name] = kubelet
        if self._is_listed:
            kubelet.replace(self._pods.get(kubelet.node_name, _NO_PODS).values())

    def detach(self, kubelet: Kubelet) -> None:
        """Tell it no more."""
        self._kubelets.pop(kubelet.node_name, None)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with contextlib.aclosing(self._watch.changes()) as changes:
            async for change in changes:
                match change:
                    case Replaced(pods, _):
                        self._replace(pods)
                    case Applied(pod):
                        self._apply(pod)
                    case Deleted(pod):
                        self._delete(pod)
                    case _:
                        assert_never(change)

    def _replace(self, pods: tuple[Pod, ...]) -> None:
        self._pods.clear()
        for pod in pods:
            if pod.spec.node_name:
                self._pods[pod.spec.node_name][pod.metadata.uid] = pod
        self._is_listed = True
        for name, kubelet in self._kubelets.items():
            kubelet.replace(self._pods.get(name, _NO_PODS).values())

    def _apply(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._pods[pod.spec.node_name][pod.metadata.uid] = pod
            if (kubelet := self._kubelets.get(pod.spec.node_name)) is not None:
                kubelet.observe(pod)

    def _delete(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._pods[pod.spec.node_name].pop(pod.metadata.uid, None)
            if (kubelet := self._kubelets.get(pod.spec.node_name)) is not None:
                kubelet.forget(pod)
