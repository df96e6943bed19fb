"""The command's help, version and completion."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kubectl_dra.cli import app


def test_help_teaches_what_the_demo_shows_and_how_it_ends() -> None:
    result = CliRunner().invoke(app, ["demo", "--help"])
    assert result.exit_code == 0
    for word in ("--keep", "NVLink", "partition", "exit code", "Ctrl-C"):
        assert word in result.output


def test_without_a_command_it_shows_its_help() -> None:
    assert "demo" in CliRunner().invoke(app, []).output


def test_it_tells_its_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.startswith("kubectl-dra ")


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        ([], ["demo", "sandbox"]),
        (["de"], ["demo"]),
        (["demo", "--k"], ["--keep"]),
        (["sandbox", "--pro"], ["--profile"]),
        (["nothing"], []),
    ],
    ids=["nothing typed", "a command", "a flag", "a flag of the sandbox", "no match"],
)
def test_kubectl_completes_it(words: list[str], candidates: list[str]) -> None:
    program = "from kubectl_dra.completion import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True, timeout=30
    )
    assert [line for line in done.stdout.splitlines() if line] == [*candidates, ":4"]


def test_all_that_is_wrong_with_a_sandbox_is_said_at_once() -> None:
    # A process of its own: it configures logging, which would last.
    command = [sys.executable, "-m", "kubectl_dra", "sandbox", "--nodes", "0", "--profile", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "--nodes: 0 nodes, want 1 to 1000; --profile: " in done.stderr
    assert "'none'" in done.stderr
