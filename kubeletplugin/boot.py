"""Which boot of the kernel this is: what was set up before a reboot has to be set up again, even if files survived."""

from pathlib import Path
from typing import Final

BOOT_ID_PATH: Final = Path("/proc/sys/kernel/random/boot_id")
"""The kernel's own word, a UUID; in a container it is the host's."""


def read_boot_id(path: Path = BOOT_ID_PATH) -> str | None:
    """Return the id of this boot; None where the kernel does not tell, and then no reboot is ever noticed by it."""
    try:
        return path.read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
