"""The command `dra-kubeletplugin`: flags and environment to settings, errors to one line and an exit code."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.attribute import DEFAULT_SLOTS
from dra_driver.devices.partitioning import DEFAULT_PARTITION_MODE, PartitionMode
from dra_driver.devices.sharing import DEFAULT_STRATEGY
from dra_driver.errors import DraError
from dra_driver.log import LogFormat, LogLevel, configure_logging
from dra_driver.process import EXIT_SETTING, HttpAddress, LeastLevel, LineFormat, render_names, version_option
from kubeletplugin.app import run_plugin
from kubeletplugin.setting import (
    DEFAULT_DRIVER,
    DEFAULT_NAMESPACE,
    DEFAULT_SERVICE_ACCOUNT,
    BackendName,
    Settings,
    SimulatedSettings,
    validate_settings,
)

PROGRAM = "dra-kubeletplugin"

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRA_DRIVER"},
)


@app.command(
    help="""Publishes this node's accelerators as ResourceSlices and prepares ResourceClaims for the kubelet.

    Each flag can also be set in the environment: --node-name is DRA_DRIVER_NODE_NAME, and so on; what may be given
    several times is one value with spaces between.
    """,
    epilog="Example: dra-kubeletplugin --node-name node-a --backend simulated --simulated-profile h100x8",
)
def run(  # noqa: PLR0913  a flag each
    *,
    node_name: Annotated[str, typer.Option(help="The Node that this runs on; also the name of its pool.")],
    driver_name: Annotated[str, typer.Option(help="The driver's name in slices, classes and claims.")] = DEFAULT_DRIVER,
    pod_uid: Annotated[
        str,
        typer.Option(
            help="The UID of the Pod that this runs in, for an update during which two Pods run side by side on a node."
        ),
    ] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the API server; default: the Pod's service account.")
    ] = None,
    kubelet_dir: Annotated[Path, typer.Option(help="The kubelet's --root-dir.")] = Path("/var/lib/kubelet"),
    cdi_dir: Annotated[
        Path, typer.Option(help="Where CDI specs are written; one of the container runtime's cdi_spec_dirs.")
    ] = Path("/var/run/cdi"),
    backend: Annotated[
        list[BackendName] | None,
        typer.Option(
            metavar="<name>", help=f"Where devices come from: {render_names(BackendName)}. May be given several times."
        ),
    ] = None,
    driver_root: Annotated[
        Path, typer.Option(help="Where the vendor's driver is installed on the host, for instance /run/nvidia/driver.")
    ] = Path("/"),
    host_root: Annotated[
        Path, typer.Option(help="Where the host's root is seen from here; in a Pod the place that it is mounted at.")
    ] = Path("/"),
    simulated_profile: Annotated[
        str, typer.Option(help="Devices of the backend 'simulated': a built-in profile's name, or a YAML file.")
    ] = "",
    simulated_overrides: Annotated[
        Path | None, typer.Option(help="A YAML file that makes simulated devices unhealthy, removes or adds some.")
    ] = None,
    simulated_dev_dir: Annotated[Path, typer.Option(help="Where simulated device nodes are made.")] = Path("/dev"),
    slots: Annotated[int, typer.Option(help="The most sharers of one device.")] = DEFAULT_SLOTS,
    share_unenforced: Annotated[
        bool, typer.Option(help="Share devices that nothing holds to limits: accounted, not enforced.")
    ] = False,
    sharing_strategy: Annotated[
        Strategy,
        typer.Option(
            help="How the shares of a device get along: Shim, TimeSlicing, MPS or None. TimeSlicing and None limit "
            "nothing, so devices are shared by them only with --share-unenforced; MPS needs --mps-image."
        ),
    ] = DEFAULT_STRATEGY,
    sharing_strategy_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<device>=<strategy>",
            help="Another strategy for one device, by its name, UUID or serial number. May be given several times.",
        ),
    ] = None,
    mps_image: Annotated[
        str, typer.Option(help="The image of MPS daemons; without one, no device is shared by MPS.")
    ] = "",
    mps_namespace: Annotated[str, typer.Option(help="The namespace of the Pods of MPS daemons.")] = DEFAULT_NAMESPACE,
    mps_service_account: Annotated[
        str,
        typer.Option(help="The service account of these Pods, which pulls their image; they get no token of it."),
    ] = DEFAULT_SERVICE_ACCOUNT,
    partitions: Annotated[
        PartitionMode,
        typer.Option(
            help="Partitions of devices (MIG): none; static, those that exist; or dynamic, made when a claim has one."
        ),
    ] = DEFAULT_PARTITION_MODE,
    partitions_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<device>=<mode>",
            help="Another mode for one device, by its name, UUID or serial number. May be given several times.",
        ),
    ] = None,
    device_metadata: Annotated[
        bool, typer.Option(help="Give containers a file about the devices of each request (KEP-5304).")
    ] = False,
    discovery_interval: Annotated[float, typer.Option(help="Seconds between two looks at the devices.")] = 5.0,
    recovery_hold: Annotated[
        float,
        typer.Option(
            help="Seconds that a device must stay well until its unhealthy taint goes; doubled each time it falls ill "
            "again, up to an hour."
        ),
    ] = 60.0,
    ignore_xids: Annotated[
        list[int] | None,
        typer.Option(
            metavar="<number>",
            help="An XID (an error by NVIDIA's number) after which a device stays well. May be given several times.",
        ),
    ] = None,
    coexistence: Annotated[
        bool, typer.Option(help="Taint devices that a device plugin or another DRA driver of the vendor serves, too.")
    ] = True,
    http_address: HttpAddress = ":8080",
    log_level: LeastLevel = LogLevel.INFO,
    log_format: LineFormat = LogFormat.AUTO,
    _version: Annotated[bool, version_option(PROGRAM)] = False,
) -> None:
    """Run the plugin until a signal ends it."""
    configure_logging(level=log_level, format_=log_format)
    settings = Settings(
        node_name=node_name,
        driver_name=driver_name,
        pod_uid=pod_uid,
        kubeconfig=kubeconfig,
        kubelet_dir=kubelet_dir.absolute(),
        cdi_dir=cdi_dir.absolute(),
        backends=tuple(dict.fromkeys(backend or ())),
        simulated=SimulatedSettings(
            profile=simulated_profile, overrides=simulated_overrides, dev_dir=simulated_dev_dir.absolute()
        )
        if simulated_profile
        else None,
        driver_root=driver_root.absolute(),
        host_root=host_root.absolute(),
        slots=slots,
        share_unenforced=share_unenforced,
        sharing_strategy=sharing_strategy,
        sharing_strategy_of=tuple(sharing_strategy_of or ()),
        mps_image=mps_image,
        mps_namespace=mps_namespace,
        mps_service_account=mps_service_account,
        device_metadata=device_metadata,
        partitions=partitions,
        partitions_of=tuple(partitions_of or ()),
        discovery_interval_s=discovery_interval,
        recovery_hold_s=recovery_hold,
        ignore_xids=tuple(ignore_xids or ()),
        coexistence=coexistence,
        http_address=http_address,
    )
    try:
        validate_settings(settings)
        asyncio.run(run_plugin(settings))
    except DraError as error:
        typer.echo(f"{PROGRAM}: {error}", err=True)
        raise typer.Exit(EXIT_SETTING) from error


def main() -> None:
    """Run the command; anything that nobody foresaw is logged and exits with 1."""
    try:
        app(prog_name=PROGRAM)
    except Exception:  # noqa: BLE001 - the last stop: whatever it is, it is logged as a whole
        structlog.get_logger(__name__).exception("plugin ended")
        sys.exit(1)
