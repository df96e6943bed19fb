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
