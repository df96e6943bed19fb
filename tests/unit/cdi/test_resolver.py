import errno
from pathlib import Path

import pytest

from cdi import DEFAULT_DIRECTORIES, InvalidSpecError, Resolver, SpecStore, StoreError, UnresolvableError, encode_spec
from tests.support.cdi_spec import a_device, a_spec


def write(path: Path, *names: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode_spec(a_spec(*map(a_device, names))))
    return path


def names_in(*directories: Path) -> list[str]:
    return [name.partition("=")[2] for name in Resolver(directories).read_inventory().devices]


def test_what_a_store_writes_is_resolved_until_it_is_removed(tmp_path: Path) -> None:
    store, resolver = SpecStore(tmp_path), Resolver([tmp_path])
    store.write_spec("claim", a_spec())
    assert resolver.resolve(["vendor.com/gpu=gpu-0"]).edits.env == ("GPU=0",)
    assert resolver.missing(["vendor.com/gpu=gpu-0", "vendor.com/gpu=gpu-1"]) == ("vendor.com/gpu=gpu-1",)
    store.remove_spec("claim")
    with pytest.raises(UnresolvableError, match=r"device 'vendor\.com/gpu=gpu-0': not defined by any spec"):
        resolver.resolve(["vendor.com/gpu=gpu-0"])


def test_later_directories_win(tmp_path: Path) -> None:
    static, dynamic = write(tmp_path / "etc" / "x.json", "a", "b"), write(tmp_path / "run" / "y.json", "b", "c")
    inventory = Resolver([static.parent, dynamic.parent]).read_inventory()
    assert {name: definition.file.path for name, definition in inventory.devices.items()} == {
        "vendor.com/gpu=a": static,
        "vendor.com/gpu=b": dynamic,
        "vendor.com/gpu=c": dynamic,
    }


def test_json_and_yaml_files_are_read_dotfiles_too_and_nothing_else(tmp_path: Path) -> None:
    for number, name in enumerate(("a.json", "b.yaml", ".c.json", ".json", "d.yml", "e.json.tmp", "f", "g.JSON")):
        write(tmp_path / name, f"gpu-{number}")
    write(tmp_path / "deep.json" / "h.json", "gpu-8")
    assert names_in(tmp_path) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert Resolver([tmp_path]).read_inventory().faults == ()


def test_the_extension_does_not_decide_about_the_format(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n- name: a\n  containerEdits: {env: [A=b]}\n"
    )
    write(tmp_path / "y.yaml", "b")
    assert names_in(tmp_path) == ["a", "b"]


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    target = write(tmp_path / "real" / "x.json", "a")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "link.json").symlink_to(target)
    assert names_in(tmp_path / "specs") == ["a"]


def test_a_file_that_cannot_be_used_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / "z.json", "good")
    (tmp_path / "a.json").write_bytes(b"{")
    (tmp_path / "b.json").symlink_to("nowhere")
    (tmp_path / "c.json").symlink_to(".")
    inventory = Resolver([tmp_path]).read_inventory()
    assert tuple(inventory.devices) == ("vendor.com/gpu=good",)
    broken, dangling, directory = inventory.faults
    assert (broken.path, type(broken.error)) == (tmp_path / "a.json", InvalidSpecError)
    assert str(dangling.error) == f"{tmp_path}/b.json: no such file or directory, want a readable spec"
    assert isinstance(directory.error, StoreError)
    assert directory.error.errno == errno.EISDIR


def test_a_missing_directory_is_as_good_as_an_empty_one(tmp_path: Path) -> None:
    write(tmp_path / "there" / "x.json", "a")
    assert names_in(tmp_path / "gone", tmp_path / "there") == ["a"]
    assert Resolver([tmp_path / "gone"]).read_inventory().faults == ()


def test_a_directory_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / "there" / "x.json", "a")
    (tmp_path / "file").touch()
    inventory = Resolver([tmp_path / "file", tmp_path / "there"]).read_inventory()
    assert tuple(inventory.devices) == ("vendor.com/gpu=a",)
    assert [str(fault.error) for fault in inventory.faults] == [
        f"{tmp_path}/file: not a directory, want a readable spec"
    ]


def test_the_usual_directories_are_the_static_and_then_the_dynamic_one() -> None:
    assert Resolver().directories == DEFAULT_DIRECTORIES == (Path("/etc/cdi"), Path("/var/run/cdi"))
