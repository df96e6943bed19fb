"""The command `dra-controller`: flags and environment to settings, errors to one line and an exit code."""

import asyncio
import os
import socket
import sys
import uuid
from pathlib import Path
from typing import Annotated

import structlog
import typer

from controller.allocator import Policy
from controller.app import run_controller
from controller.setting import DEFAULT_NAMESPACE, LEASE_NAME, Settings, read_features, validate_settings
from dra_driver.errors import DraError
from dra_driver.log import LogFormat, LogLevel, configure_logging
from dra_driver.process import EXIT_SETTING, HttpAddress, LeastLevel, LineFormat, render_names, version_option

PROGRAM = "dra-controller"

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRA_DRIVER"},
)


@app.command(
    help="""Allocates ResourceClaims of whole Pods on the nodes that an administrator gave it, beside kube-scheduler.

    It allocates claims of DeviceClasses with the label dra-driver.io/allocator=controller, on Nodes with that label,
    for Pods with the scheduling gate dra-driver.io/allocation; then it removes the gate. Where a Pod does not fit, an
    Event on the Pod and on its claims says why.

    Each flag can also be set in the environment: --policy is DRA_DRIVER_POLICY, and so on.
    """,
    epilog="Example: dra-controller --kubeconfig ~/.kube/config --policy binpack --no-leader-elect",
)
def run(  # noqa: PLR0913  a flag each
    *,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the API server; default: the Pod's service account.")
    ] = None,
    policy: Annotated[
        Policy,
        typer.Option(
            metavar="<name>",
            help=f"Which nodes and devices are tried first, where neither claim nor class has the annotation "
            f"dra-driver.io/policy: {render_names(Policy)}.",
        ),
    ] = Policy.FIRST_FIT,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<gate>=<bool>",
            help="Kubernetes' DRA feature gates, where the cluster's differ from the defaults of 1.37. "
            "May be given several times.",
        ),
    ] = None,
    leader_elect: Annotated[
        bool, typer.Option(help="Work only while this replica holds the Lease; needed with more than one.")
    ] = True,
    identity: Annotated[
        str, typer.Option(help="This replica's name in the Lease; default: the host's name and a random part.")
    ] = "",
    lease_namespace: Annotated[str, typer.Option(help="The Lease's namespace.")] = DEFAULT_NAMESPACE,
    lease_name: Annotated[str, typer.Option(help="The Lease's name.")] = LEASE_NAME,
    lease_duration: Annotated[float, typer.Option(help="Seconds that others wait for a leader that is silent.")] = 15.0,
    renew_deadline: Annotated[float, typer.Option(help="Seconds after which a leader that cannot renew ends.")] = 10.0,
    retry_period: Annotated[float, typer.Option(help="Seconds between two renewals.")] = 2.0,
    http_address: HttpAddress = ":8080",
    log_level: LeastLevel = LogLevel.INFO,
    log_format: LineFormat = LogFormat.AUTO,
    _version: Annotated[bool, version_option(PROGRAM)] = False,
) -> None:
    """Run the controller until a signal ends it."""
    configure_logging(level=log_level, format_=log_format)
    try:
        settings = Settings(
            identity=identity or f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}",
            kubeconfig=kubeconfig,
            policy=policy,
            features=read_features(feature_gates or ()),
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            lease_name=lease_name,
            lease_duration_s=lease_duration,
            renew_deadline_s=renew_deadline,
            retry_period_s=retry_period,
            http_address=http_address,
        )
        validate_settings(settings)
        asyncio.run(run_controller(settings))
    except DraError as error:
        typer.echo(f"{PROGRAM}: {error}", err=True)
        raise typer.Exit(EXIT_SETTING) from error


def main() -> None:
    """Run the command; anything that nobody foresaw is logged and exits with 1."""
    try:
        app(prog_name=PROGRAM)
    except Exception:  # noqa: BLE001 - the last stop: whatever it is, it is logged as a whole
        structlog.get_logger(__name__).exception("controller ended")
        sys.exit(1)
