"""Runs a sandbox until it is asked to end: a cluster in this process to try kubectl, claims and selectors on."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from dra_driver.devices.simulated import read_profile
from dra_driver.errors import DraError, SettingError
from dra_driver.process import stop_signals
from sandbox.cluster import Sandbox, build_nodes

NODES_MAX: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """What the sandbox is made of. The nodes have the profiles in turn; `data` keeps its objects."""

    nodes: int
    profiles: tuple[str, ...]
    data: Path | None = None
    controller: bool = False


def validate_sandbox_settings(settings: SandboxSettings) -> None:
    """Raise SettingError that names every setting that cannot be used."""
    problems = []
    if not 1 <= settings.nodes <= NODES_MAX:
        problems.append(f"--nodes: {settings.nodes} nodes, want 1 to {NODES_MAX}")
    for profile in dict.fromkeys(settings.profiles):
        try:
            read_profile(profile)
        except DraError as error:
            problems.append(f"--profile: {error}")
    if problems:
        raise SettingError("; ".join(problems))


async def run_sandbox(settings: SandboxSettings) -> None:
    """Run it until SIGINT or SIGTERM. Raises DraError if it cannot start."""
    validate_sandbox_settings(settings)
    with stop_signals() as stop:
        nodes = build_nodes(settings.nodes, settings.profiles)
        async with Sandbox(nodes, data=settings.data, controller=settings.controller) as sandbox:
            ready = asyncio.ensure_future(sandbox.ready())
            stopped = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait((ready, stopped), return_when=asyncio.FIRST_COMPLETED)
                if not stop.is_set():
                    await ready
                    typer.echo(f"export KUBECONFIG={sandbox.kubeconfig}")
                    await stopped
            finally:
                ready.cancel()
                stopped.cancel()
