"""What every process of the project has: signals that end it, metrics of itself, exit codes, and its version."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import version

import typer
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

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
