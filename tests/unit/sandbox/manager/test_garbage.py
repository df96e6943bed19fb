"""Which owners are gone, so that what they owned is collected."""

import pytest

from dra_driver.kube.resource import ObjectKey
from sandbox.manager.garbage import find_gone

POD = ObjectKey("default", "pod")


@pytest.mark.parametrize(
    ("known", "seen", "is_gone"),
    [
        ({}, "uid-1", False),
        ({POD: "uid-1"}, "uid-1", False),
        ({POD: "uid-1"}, None, True),
        ({}, None, True),
        ({POD: "uid-1"}, "uid-2", True),
    ],
    ids=["new", "changed", "deleted", "deleted before it was seen", "deleted and made again"],
)
def test_an_owner_is_gone_with_its_uid(known: dict[ObjectKey, str], seen: str | None, *, is_gone: bool) -> None:
    assert find_gone(known, {POD: seen}) == ({POD} if is_gone else set())
