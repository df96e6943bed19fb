"""What the names of NVIDIA's products say: the short model, and the kind of memory, which NVML does not tell. Pure."""

import re
from typing import Final

import pynvml

FAMILIES: Final = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "ada",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "blackwell",
    pynvml.NVML_DEVICE_ARCH_RUBIN: "rubin",
}
"""Architectures by NVML's numbers."""

_BRANDS: Final = ("nvidia", "tesla", "geforce")
_SERIES: Final = ("rtx", "gtx", "pro", "titan", "quadro", "graphics")
_VARIANTS: Final = ("ada", "ti", "super", "d")

_MEMORY_TYPES: Final = (
    ("GDDR7", "RTX PRO [0-9]+|RTX 50[0-9]{2}"),
    ("GDDR6X", "RTX 40[789]0|RTX 30[789]0"),
    ("GDDR6", "L40S?|L20|L4|L2|A10G?|A2|A16|A40|T4G?|RTX A[0-9]+|RTX [0-9]{4}( Ada)?|Quadro RTX [0-9]+"),
    ("LPDDR5X", "GB10|Thor"),
    ("LPDDR5", "Orin"),
    ("HBM3e", "H200|GB200|GB300|B[123]00"),
    ("HBM3", "H20"),
    ("HBM2", "A30|A30X|V100S?|P100|TITAN V"),
    ("HBM2e", "A100X?|A800|H800 PCIe"),
)
"""Kind of memory, and the models that have it, for models that come with one kind alone."""

_NAMED: Final = re.compile(r"\b(HBM[23]e?|GDDR[567]X?)\b")
_CORES_OF_A_UNIT: Final = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""CUDA cores of a multiprocessor, by compute capability; 128 of all others since Maxwell."""


def parse_model(product_name: str) -> str:
    """The model, as short as it is unique: `H100` of `NVIDIA H100 80GB HBM3`, `RTX 6000 Ada` of its whole name.

    How a GPU is built in (SXM, PCIe) and how much memory it has stands in other attributes.
    """
    words = [word for word in product_name.split() if word.lower() not in _BRANDS]
    model: list[str] = []
    for word in words:
        if model and not _continues(model, word):
            break
        model.append(word.partition("-")[0])
    return " ".join(model) or product_name.strip()


def find_memory_type(product_name: str, memory: int | None) -> str | None:
    """The kind of memory that a product has; None if that is not known. `memory` is in bytes."""
    if named := _NAMED.search(product_name):
        return named.group(1)
    model = parse_model(product_name)
    if model == "A100" and memory is not None and memory < 50 << 30:
        return "HBM2"
    if model == "H100":
        return "HBM2e" if "PCIe" in product_name else "HBM3"
    return next((kind for kind, models in _MEMORY_TYPES if re.fullmatch(models, model)), None)


def count_compute_units(cores: int, capability: tuple[int, int]) -> int | None:
    """Multiprocessors, of CUDA cores; None if the cores do not divide evenly."""
    units, rest = divmod(cores, _CORES_OF_A_UNIT.get(capability, 128))
    return units if units and not rest else None


def _continues(model: list[str], word: str) -> bool:
    """Whether the model goes on: a series needs its number, and a few words after it tell models apart."""
    return model[-1].lower() in _SERIES or word.lower() in _VARIANTS
