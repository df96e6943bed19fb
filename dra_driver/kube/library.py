"""The client library `kubernetes`, of which only the modules that are used are loaded.

Its packages import all that is in them: generated models, a dynamic client, web sockets, and with them pydantic,
requests and oauthlib. In a Pod none of that is used, and it would be a fifth of a process's memory and of its start.
So a package is loaded when somebody asks for something in it that is no module of its own yet, and not before.
"""

import importlib.util
import sys
from typing import Any, Final

_PACKAGES: Final = ("kubernetes", "kubernetes.aio", "kubernetes.aio.config", "kubernetes.aio.utils")


def _postpone(package: str) -> None:
    """Make a package known, so that its modules can be imported, and load it when that does not do."""
    if package in sys.modules:
        return
    spec = importlib.util.find_spec(package)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    module, loader = importlib.util.module_from_spec(spec), spec.loader

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load
    sys.modules[package] = module


for _package in _PACKAGES:
    _postpone(_package)

from kubernetes.aio.client.configuration import Configuration  # noqa: E402 - what stands above must come first
from kubernetes.aio.client.rest import RESTClientObject  # noqa: E402 - likewise
from kubernetes.aio.config.config_exception import ConfigException  # noqa: E402 - likewise
from kubernetes.aio.config.incluster_config import InClusterConfigLoader  # noqa: E402 - likewise

__all__ = ["ConfigException", "Configuration", "InClusterConfigLoader", "RESTClientObject", "build_kubeconfig_loader"]


def build_kubeconfig_loader(content: Any, folder: str) -> Any:
    """Return the library's loader of a kubeconfig. It brings most of the library along."""
    from kubernetes.aio.config.kube_config import KubeConfigLoader  # noqa: PLC0415 - not needed in a Pod

    return KubeConfigLoader(config_dict=content, config_base_path=folder)
