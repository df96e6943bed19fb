"""What a running process takes of the machine, as Linux tells it."""

import time
from pathlib import Path


def read_cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used: its clock by clock_getcpuclockid(3), as Linux numbers it."""
    return time.clock_gettime(~pid << 3 | 2)


def read_memory_kib(pid: int, name: str = "VmRSS", file: str = "status") -> int:
    """Return one of the amounts of memory that proc_pid_status(5) or proc_pid_smaps_rollup tell of a process."""
    lines = Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
