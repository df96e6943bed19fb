"""The command `kubectl dra`: flags to calls, outcomes to exit codes."""

import asyncio
import signal
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from dra_driver.errors import DraError
from dra_driver.log import LogLevel, configure_logging
from dra_driver.process import EXIT_SETTING, LeastLevel

app = typer.Typer(
    name="kubectl-dra",
    help="See and explain what Dynamic Resource Allocation (DRA) does with accelerators.",
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  typer calls it with the flag's value
    if not wanted:
        return
    try:
        found = version("dra-driver")
    except PackageNotFoundError:  # run from a checkout that is not installed
        found = "unknown"
    typer.echo(f"kubectl-dra {found}")
    raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Take what all commands have in common."""


@app.command(
    help="""Watch claims go from YAML to prepared containers.

    A cluster runs in this process: no GPU, no cluster and no root are needed. Each scene shows the YAML, what happened,
    and why: published devices, two devices of one NVLink domain, shares of one device, a hardware partition, a list of
    priorities, a claim that does not fit and the reason, the files that a container gets, and the deletion that frees
    all.

    The exit code is 0 only if every scene really happened as shown. Ctrl-C ends it at any moment and cleans up.
    """,
    epilog="Example: kubectl dra demo --keep, then, elsewhere: KUBECONFIG=<as printed> kubectl get resourceclaims",
)
def demo(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the cluster and its Pods running until Ctrl-C; print a kubeconfig.")
    ] = False,
) -> None:
    """Run the demo."""
    from kubectl_dra.demo.app import run_demo  # noqa: PLC0415 - it takes a second to import, and --help needs none of it

    raise typer.Exit(run_demo(sys.stdout, keep=keep))


@app.command(
    help="""Run a cluster in this process until Ctrl-C, and print how kubectl reaches it.

    It has an API server for the kinds that Dynamic Resource Allocation concerns, the real node plugin with simulated
    devices on each node, kubelets that resolve containers without running them, and a scheduler.
    """,
    epilog="Example: kubectl dra sandbox --nodes 3 --profile h100x8 --profile a100x8",
)
def sandbox(
    *,
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 1,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Devices of a node: a built-in profile's name, or a YAML file. Several go to nodes in turn."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="An SQLite file that keeps the objects; without it they are in memory.")
    ] = None,
    controller: Annotated[
        bool,
        typer.Option(
            "--controller", help="Run the controller, too, for nodes labelled dra-driver.io/allocator=controller."
        ),
    ] = False,
    log_level: LeastLevel = LogLevel.WARNING,
) -> None:
    """Run a sandbox."""
    from kubectl_dra.sandbox import SandboxSettings, run_sandbox  # noqa: PLC0415 - as above

    configure_logging(level=log_level)
    settings = SandboxSettings(nodes=nodes, profiles=tuple(profile or ("h100x8",)), data=data, controller=controller)
    try:
        asyncio.run(run_sandbox(settings))
    except DraError as error:
        typer.echo(f"kubectl-dra: {error}", err=True)
        raise typer.Exit(EXIT_SETTING) from error


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="kubectl-dra")
    except KeyboardInterrupt:  # before a command could look after it
        sys.exit(128 + signal.SIGINT)
