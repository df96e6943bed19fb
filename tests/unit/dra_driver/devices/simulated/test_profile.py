from pathlib import Path

import pytest

from dra_driver.devices.simulated.profile import parse_memory, parse_profile, profile_names, read_profile
from dra_driver.errors import InvalidError, SettingError

GROUP = """
devices:
  - count: {count}
    vendor: nvidia
    type: gpu
    model: A100
    memory: {memory}
    {more}
"""
PARTITIONING = """partitioning:
      slices: 2
      counters: {{compute: 2{counters}}}
      profiles:
        - {{profile: {profile}, size: {size}, starts: [{starts}], memory: 1Gi, counters: {{{taken}}}}}
"""


def group(count: int = 1, memory: str = "80Gi", more: str = "") -> str:
    return GROUP.format(count=count, memory=memory, more=more)


def partitioning(
    profile: str = "1g", size: int = 1, starts: str = "0, 1", counters: str = "", taken: str = "compute: 1"
) -> str:
    return group(more=PARTITIONING.format(profile=profile, size=size, starts=starts, counters=counters, taken=taken))


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidError) as caught:
        parse_profile(text)
    return [str(error) for error in caught.value.errors]


def test_the_package_has_the_profiles_that_the_documentation_names() -> None:
    assert profile_names() == ("a100x8", "ascend910b3x8", "h100x8", "l40sx4", "mixed")


@pytest.mark.parametrize("name", profile_names())
def test_each_profile_of_the_package_is_valid(name: str) -> None:
    assert read_profile(name).devices


def test_a_profile_that_is_unknown_gets_a_suggestion() -> None:
    with pytest.raises(SettingError, match=r"profile 'h100x9': unknown, want .* did you mean 'h100x8'\?"):
        read_profile("h100x9")


def test_a_profile_is_read_from_a_path(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(group(count=3))
    assert read_profile(str(tmp_path / "mine.yaml")).devices[0].count == 3


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"profile .*/mine\.yaml: no such file or directory"):
        read_profile(str(tmp_path / "mine.yaml"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match="not UTF-8 text"):
        read_profile(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(group(count=0), "devices[0].count: got 0, want at least 1 (line 3)", id="no devices"),
        pytest.param(group(count=121), "devices: 121 devices, want at most 120 (line 2)", id="too many"),
        pytest.param(group(memory="8Gib"), "devices[0].memory: '8Gib': not a quantity", id="unit"),
        pytest.param(group(memory="-1Gi"), "devices[0].memory: '-1Gi': not an amount of memory", id="negative"),
        pytest.param(group(memory="100m"), "devices[0].memory: '100m': not an amount of memory", id="part of a byte"),
        pytest.param(group(more="computeUnits: 0"), "devices[0].computeUnits: got 0", id="no units"),
        pytest.param(group(more="link: {type: NVLink, size: 0}"), "devices[0].link.size: got 0", id="link of nothing"),
        pytest.param(
            group(count=2, more='slots: [{address: "0000:01:00.0"}]'), "devices[0].slots: 1 slots, want 2", id="slots"
        ),
        pytest.param(
            group(count=2, more='slots: [{address: "0000:01:00.0"}, {address: "0000:01:00.0"}]'),
            "devices[0].slots[1].address: '0000:01:00.0' is taken already",
            id="two in one slot",
        ),
        pytest.param(
            group(more="slots: [{address: 01:00.0}]"), "devices[0].slots[0].address: got ", id="short address"
        ),
        pytest.param(
            group(more='slots: [{address: "0000:01:00.0", root: pci1}]'), "slots[0].root: got 'pci1'", id="root"
        ),
        pytest.param(
            group(more='slots: [{address: "0000:01:00.0", numaNode: -1}]'), "slots[0].numaNode: got -1", id="numa"
        ),
        pytest.param(partitioning(starts="2"), "starts[0]: slices 2 to 2, want them in 0 to 1", id="beyond the end"),
        pytest.param(partitioning(starts="0, 0"), "starts[1]: 0 is there already", id="placement twice"),
        pytest.param(partitioning(size=0), "size: got 0", id="no size"),
        pytest.param(partitioning(profile="1g 1"), "profile: got '1g 1', want a name", id="profile name"),
        pytest.param(partitioning(taken="compote: 1"), "no such counter; did you mean 'compute'?", id="counter name"),
        pytest.param(partitioning(taken="compute: 3"), "counters.compute: got 3, want 1 to 2", id="counter amount"),
        pytest.param(partitioning(counters=", memory-slice-0: 1"), "want a DNS label that is no slice's", id="slice"),
    ],
)
def test_what_no_node_could_have_is_refused(text: str, problem: str) -> None:
    (found,) = problems(text)
    assert problem in found
    assert "(line " in found


def test_every_impossible_value_is_told() -> None:
    assert len(problems(group(count=0, memory="x", more="computeUnits: -1"))) == 3


@pytest.mark.parametrize(("text", "size"), [("1024", 1024), ("81559Mi", 81559 << 20), ("64Gi", 64 << 30), ("1k", 1000)])
def test_memory_is_exact(text: str, size: int) -> None:
    assert parse_memory(text) == size
