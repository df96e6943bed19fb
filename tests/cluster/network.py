"""Namespaces in which a cluster runs: one for the control plane, one for each node, as machines of their own.

Nothing clashes with what else runs on the machine: every cluster has the same addresses and ports, and every node the
same paths. A namespace lives as long as its holder, an idle process, so nothing is left to undo once that is killed.

    control   10.96.0.1 (the service `kubernetes`; the API server itself answers there, no kube-proxy is needed)
    node i    10.89.i.2, joined to the control plane by a pair of virtual links; its Pods are 10.88.i.0/24
"""

import ctypes
import os
import subprocess
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.cluster.process import Process, Processes, environment, wait_until

T = TypeVar("T")

CONTROL = "control-namespace"
SERVICE_ADDRESS = "10.96.0.1"
SERVICE_RANGE = "10.96.0.0/16"

_READY = "namespace is ready"
_CLONE_NEWNET = 0x40000000


def node_address(index: int) -> str:
    return f"10.89.{index}.2"


def pod_range(index: int) -> str:
    return f"10.88.{index}.0/24"


class Namespace:
    """The network namespace, and the mount namespace if it has one, of a holder process."""

    def __init__(self, holder: Process, *, own_mounts: bool) -> None:
        self.holder = holder
        self._own_mounts = own_mounts

    def command(self, arguments: Sequence[str | Path]) -> tuple[str | Path, ...]:
        """Build the command line that runs a program in here. The program replaces nsenter, so it has the same pid.

        Not `ip netns exec`, which mounts a new /sys and so hides the cgroups.
        """
        folder = f"/proc/{self.holder.pid}/ns"
        mounts = (f"--mount={folder}/mnt",) if self._own_mounts else ()
        return ("nsenter", f"--net={folder}/net", *mounts, "--", *arguments)

    def run(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        timeout: float = 60,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run a program to its end and returns what it wrote. Raises `CommandError` if it ends badly."""
        done = subprocess.run(
            self.command(arguments),
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=environment(env),
        )
        if done.returncode:
            raise CommandError(done.returncode, [str(argument) for argument in arguments], done.stdout, done.stderr)
        return done.stdout

    def call(self, function: Callable[[], T]) -> T:
        """Call a Python function in this network (a thread enters it), so that tests can open sockets here."""
        with ThreadPoolExecutor(max_workers=1, initializer=_enter_network, initargs=(self.holder.pid,)) as thread:
            return thread.submit(function).result()

    def http_get(self, url: str) -> str:
        """Get a page of a server in this network. Raises `OSError` (`urllib.error.HTTPError`) if it is not there."""

        def get() -> str:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as response:
                return str(response.read().decode())

        return self.call(get)


class CommandError(subprocess.CalledProcessError):
    """A command that ended badly; the text says what it wrote."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.stderr or self.stdout}".strip()


def create_control_namespace(processes: Processes) -> Namespace:
    holder = _hold(
        processes,
        CONTROL,
        ("--net",),
        f"""
        ip link set lo up
        ip address add {SERVICE_ADDRESS}/32 dev lo
        echo 1 > /proc/sys/net/ipv4/ip_forward
        """,
    )
    return Namespace(holder, own_mounts=False)


def create_node_namespace(
    processes: Processes, control: Namespace, name: str, index: int, mounts: Mapping[Path, Path | None]
) -> Namespace:
    """Make a namespace joined to the control plane's, with `mounts`: what is seen there, and where it is here.

    None stands for memory, which is gone with the namespace.
    Mounts made in it never reach the machine, but pass from the node to its Pods, as the kubelet wants it.
    """
    binds = "\n".join(_mount(there, here) for there, here in mounts.items())
    holder = _hold(
        processes,
        f"{name}-namespace",
        ("--net", "--mount", "--propagation=private"),
        f"""
        mount --make-rshared /
        {binds}
        ip link set lo up
        echo 1 > /proc/sys/net/ipv4/ip_forward
        """,
    )
    node = Namespace(holder, own_mounts=True)
    link, gateway, address = f"node{index}", f"10.89.{index}.1", node_address(index)
    control.run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
    control.run("ip", "address", "add", f"{gateway}/24", "dev", link)
    control.run("ip", "link", "set", link, "up")
    node.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    node.run("ip", "link", "set", "eth0", "up")
    node.run("ip", "route", "add", "default", "via", gateway)
    control.run("ip", "route", "add", pod_range(index), "via", address)
    return node


def _mount(there: Path, here: Path | None) -> str:
    what = f"--bind '{here}'" if here else "-t tmpfs tmpfs"
    return f"mkdir -p '{there}'; mount {what} '{there}'"


def _hold(processes: Processes, name: str, flags: tuple[str, ...], setup: str) -> Process:
    script = f"set -e\n{setup}\necho {_READY}\nexec sleep infinity"
    holder = processes.start(name, ("unshare", *flags, "--", "sh", "-c", script))
    wait_until(name, lambda: _READY in holder.log.read_text(), 10, interval=0.01, check=holder.check)
    return holder


def _enter_network(pid: int) -> None:
    # os.setns came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
