import os
from pathlib import Path

from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.spec import Names

DRIVER = "accel.dra-driver.io"


def test_a_leftover_of_a_killed_spec_writer_is_cleared_away(tmp_path: Path) -> None:
    leftover = tmp_path / "cdi" / f".{DRIVER}-claim_uid-1.json.0123456789abcdef.tmp"
    leftover.parent.mkdir()
    leftover.write_text("half")
    Artifacts(names=Names(DRIVER), cdi_dir=leftover.parent, shim_dir=tmp_path / "shim").ensure_directories()
    assert not leftover.exists()


def test_folders_that_are_named_like_no_claim_are_nobodys(tmp_path: Path) -> None:
    artifacts = Artifacts(names=Names(DRIVER), cdi_dir=tmp_path / "cdi", shim_dir=tmp_path / "shim")
    for name in ("uid-1", "lost+found", ".hidden", os.fsdecode(b"\xff")):
        (tmp_path / "shim" / name).mkdir(parents=True)
    assert artifacts.read_claims() == ("uid-1",)
