"""What a process loads of the client library, each time in a process of its own."""

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "requests", "oauthlib", "websocket", "kubernetes.client")


def modules_after(*lines: str) -> set[str]:
    script = "\n".join((*lines, "import sys", "print(*sys.modules)"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("program", ["kubeletplugin.cli", "controller.cli"])
def test_a_process_loads_nothing_of_it_that_it_does_not_use(program: str) -> None:
    loaded = modules_after(f"import {program}")
    assert "kubernetes.aio.client.rest" in loaded
    assert not loaded & set(HEAVY)


def test_a_kubeconfig_is_read_without_the_client_that_is_not_asynchronous() -> None:
    content = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1"}}],
        "users": [{"name": "a", "user": {}}],
    }
    loaded = modules_after(
        "from dra_driver.kube.library import build_kubeconfig_loader", f"build_kubeconfig_loader({content}, '/')"
    )
    assert "kubernetes.aio.config.kube_config" in loaded
    assert "kubernetes.client" not in loaded


def test_whoever_asks_for_the_whole_library_has_it() -> None:
    modules_after(
        "import dra_driver.kube.library",
        "from kubernetes.aio import client, config, watch",
        "config.load_kube_config, client.CoreV1Api, watch.Watch",
        "import kubernetes",
        "kubernetes.client.CoreV1Api, kubernetes.config.load_kube_config",
    )
