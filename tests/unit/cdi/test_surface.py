import ast
import sys
from pathlib import Path

import cdi

SOURCE = Path(cdi.__file__).parent


def test_everything_public_exists_once_and_in_order() -> None:
    assert len(set(cdi.__all__)) == len(cdi.__all__)
    assert all(hasattr(cdi, name) for name in cdi.__all__)


def test_the_library_needs_nothing_but_msgspec_and_pyyaml() -> None:
    imported = set()
    for path in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == {"cdi", "msgspec", "yaml"}


def test_all_errors_have_one_base() -> None:
    errors = [getattr(cdi, name) for name in cdi.__all__ if name.endswith("Error")]
    assert len(errors) == 5
    assert all(issubclass(error, cdi.CdiError) for error in errors)
