"""What every process of the project has: signals that end it, metrics of itself, exit codes, flags, its version."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias

import typer
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from dra_driver.log import LogFormat, LogLevel

EXIT_SETTING = 2
"""The exit code for anything that the person who started it has to change."""


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Give an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for each in signals:
        loop.add_signal_handler(each, stop.set)
    try:
        yield stop
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


def build_registry() -> CollectorRegistry:
    """Make a registry that tells of the process itself: memory, CPU, garbage collection."""
    registry = CollectorRegistry()
    for collector in (GCCollector, PlatformCollector, ProcessCollector):
        collector(registry=registry)
    return registry


def render_names(names: type[StrEnum]) -> str:
    """List the names that a flag takes, as in `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else str(last)


def print_version(program: str) -> None:
    """Print the version of a program."""
    typer.echo(f"{program} {version('dra-driver')}")


def version_option(program: str) -> Any:
    """Make the flag `--version`, which prints the version of a program and ends it."""

    def answer(wanted: bool) -> None:  # noqa: FBT001  typer calls it with the flag's value
        if wanted:
            print_version(program)
            raise typer.Exit

    return typer.Option(
        "--version",
        callback=answer,
        is_eager=True,
        allow_from_autoenv=False,
        show_envvar=False,
        help="Print the version and end.",
    )


HttpAddress: TypeAlias = Annotated[
    str, typer.Option(help="Where /metrics, /healthz and /readyz are served; without a host on all addresses.")
]
"""The flag `--http-address`."""

LeastLevel: TypeAlias = Annotated[
    LogLevel, typer.Option(help=f"The least important lines to write: {render_names(LogLevel)}.")
]
"""The flag `--log-level`."""

LineFormat: TypeAlias = Annotated[LogFormat, typer.Option(help="json, text, or auto: text on a terminal, else json.")]
"""The flag `--log-format`."""
