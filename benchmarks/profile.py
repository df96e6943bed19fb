"""The devices of a simulated node that is measured."""

from pathlib import Path


def write_profile(folder: Path, devices: int) -> Path:
    """Write a profile of so many devices that can be shared, and return its path."""
    path = folder / "profile.yaml"
    group = f"{{count: {devices}, vendor: nvidia, type: gpu, model: H100, memory: 80Gi, shareEnforcement: shim}}"
    path.write_text(f"description: many\ndevices:\n  - {group}\n", encoding="utf-8")
    return path
