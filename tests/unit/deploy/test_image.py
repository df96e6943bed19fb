"""The image holds what the wheel holds."""

import re
import tomllib

from tests.support.manifest import DEPLOY

DOCKERFILE = (DEPLOY / "image" / "Dockerfile").read_text("utf-8")
PROJECT = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))


def copied() -> set[str]:
    """List what the build copies from the repository."""
    lines = re.findall(r"^COPY (?!--from)(.+) \./\S*$", DOCKERFILE, re.MULTILINE)
    return {source for line in lines for source in line.split()}


def test_it_is_built_from_the_packages_the_metadata_and_the_locked_dependencies() -> None:
    packages = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    metadata = {"pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    assert copied() == packages | metadata | {"requirements.txt"}


def test_nothing_else_is_sent_to_the_build() -> None:
    lines = (DEPLOY / "image" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == copied()


def test_dependencies_are_installed_by_hash_and_the_entry_point_is_a_console_script() -> None:
    assert "--require-hashes" in DOCKERFILE
    [entry_point] = re.findall(r'^ENTRYPOINT \["(.+)"\]$', DOCKERFILE, re.MULTILINE)
    assert entry_point in PROJECT["project"]["scripts"]
