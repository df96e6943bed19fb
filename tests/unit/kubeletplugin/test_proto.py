import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("kubeletplugin/proto", "tests/cluster/proto")
CONTRACTS = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.proto"))


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda path: path.stem)
def test_the_generated_code_is_fresh(contract: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, contract], cwd=ROOT, check=True)
    for suffix in ("_pb2.py", "_pb2.pyi"):
        generated = contract.with_name(contract.stem + suffix)
        assert (ROOT / generated).read_bytes() == (tmp_path / generated).read_bytes(), "run `make proto`"
