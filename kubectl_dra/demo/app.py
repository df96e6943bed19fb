"""Runs the demo: a sandbox, the scenes in it, and the end of both, however it comes."""

import asyncio
import contextlib
import logging
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

import structlog

from dra_driver.errors import DraError
from kubectl_dra.demo.ending import Ending
from kubectl_dra.demo.scene import PROFILES, SCENES, Scene, show_deletion
from kubectl_dra.demo.screen import Screen
from kubectl_dra.demo.stage import Stage, read_manifest
from sandbox.cluster import Sandbox, build_nodes

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1

_LOG: Final = "sandbox.log"
_WELCOME: Final = (
    "A Kubernetes cluster in this process: an API server, three nodes with 24 simulated accelerators of two vendors, "
    "the real node plugin on each, and a kubelet that calls it over real sockets. No GPU, no cluster, no root."
)
_TRY: Final = """\
In another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes,pods,resourceclaims
  kubectl get resourceslices
  kubectl describe pod too-large
  kubectl delete pod pair          # too-large runs a moment later

Files of the nodes: {folder}/0 to /2; more to try: docs/demo.md
Press Ctrl-C to end it and to clean up."""


def run_demo(stream: TextIO, *, keep: bool) -> int:
    """Run the demo and return the exit code. SIGINT, SIGTERM or SIGHUP end it at any moment, without a trace."""
    screen = Screen(stream)
    ending = Ending()
    with ending.watched(), tempfile.TemporaryDirectory(prefix="dra-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with _logging_to(folder / _LOG):
                asyncio.run(_run(screen, folder, ending, keep=keep))
        except (KeyboardInterrupt, asyncio.CancelledError):
            ending.note(signal.SIGINT)
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            return EXIT_FAILED
        except (DraError, ExceptionGroup) as error:
            screen.fail(f"The demo failed: {_flatten(error)}")
            screen.say(_read_log(folder / _LOG))
            return EXIT_FAILED
        finally:
            ending.ignore()
    if ending.signal is None:
        return EXIT_OK
    screen.end("Everything is cleaned up.")
    return EXIT_OK if keep and ending.is_wanted else 128 + ending.signal


async def _run(screen: Screen, folder: Path, ending: Ending, *, keep: bool) -> None:
    begun = time.monotonic()
    screen.begin("dra-driver demo", _WELCOME)
    scenes = [scene for scene in SCENES if not (keep and scene.act is show_deletion)]
    with ending.cancelling():
        async with Sandbox(build_nodes(len(PROFILES), PROFILES), folder=folder) as sandbox:
            stage = Stage(sandbox)
            for number, scene in enumerate(scenes, start=1):
                await _play(screen, stage, scene, (number, len(scenes)))
            if keep:
                ending.is_wanted = True
                screen.end("The cluster keeps running.")
                screen.say(_TRY.format(kubeconfig=sandbox.kubeconfig, folder=folder))
                await asyncio.Event().wait()
    took_s = time.monotonic() - begun
    screen.end(f"All {len(scenes)} scenes happened as shown, in {took_s:.1f} s. Nothing is left behind.")


async def _play(screen: Screen, stage: Stage, scene: Scene, place: tuple[int, int]) -> None:
    screen.scene(*place, scene.title, scene.why)
    if scene.manifest:
        screen.manifest(scene.manifest, read_manifest(scene.manifest))
        await stage.apply(scene.manifest)
    with screen.waiting(scene.wait):
        exhibits = await scene.act(stage)
    for exhibit in exhibits:
        screen.exhibit(exhibit)


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send what the parts of the cluster log to a file, so that it does not get into the picture."""
    with path.open("w", encoding="utf-8") as file:
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            logger_factory=structlog.PrintLoggerFactory(file),
        )
        try:
            yield
        finally:
            structlog.reset_defaults()


def _flatten(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_flatten(each) for each in error.exceptions)
    return str(error) or type(error).__name__


def _read_log(path: Path) -> str:
    """Return the last lines of the log that tell of trouble."""
    lines = path.read_text("utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if "level='info'" not in line][-10:])
