import pytest

from dra_driver.devices.nvidia.product import count_compute_units, find_memory_type, parse_model

GIB = 1 << 30


@pytest.mark.parametrize(
    ("product", "model", "memory_type"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", "HBM3"),
        ("NVIDIA H100 PCIe", "H100", "HBM2e"),
        ("NVIDIA H200", "H200", "HBM3e"),
        ("NVIDIA B200", "B200", "HBM3e"),
        ("NVIDIA A100-SXM4-80GB", "A100", "HBM2e"),
        ("NVIDIA A30", "A30", "HBM2"),
        ("Tesla V100-SXM2-32GB", "V100", "HBM2"),
        ("Tesla T4", "T4", "GDDR6"),
        ("NVIDIA A10G", "A10G", "GDDR6"),
        ("NVIDIA L40S", "L40S", "GDDR6"),
        ("NVIDIA RTX A6000", "RTX A6000", "GDDR6"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "GDDR6"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000", "GDDR7"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090", "GDDR6X"),
        ("NVIDIA GeForce RTX 4090 D", "RTX 4090 D", None),
        ("NVIDIA GeForce GTX 1080 Ti", "GTX 1080 Ti", None),
        ("NVIDIA GB10", "GB10", "LPDDR5X"),
        ("NVIDIA Graphics Device", "Graphics Device", None),
        ("NVIDIA", "NVIDIA", None),
        ("", "", None),
    ],
)
def test_the_name_of_a_product_tells_its_model_and_memory(product: str, model: str, memory_type: str | None) -> None:
    assert parse_model(product) == model
    assert find_memory_type(product, 80 * GIB) == memory_type


def test_the_small_a100_has_the_older_memory() -> None:
    assert find_memory_type("NVIDIA A100-SXM4-40GB", 40 * GIB) == "HBM2"


@pytest.mark.parametrize(
    ("cores", "capability", "units"),
    [(16896, (9, 0), 132), (6912, (8, 0), 108), (18176, (8, 9), 142), (2560, (7, 5), 40), (100, (9, 0), None)],
)
def test_multiprocessors_follow_from_cores(cores: int, capability: tuple[int, int], units: int | None) -> None:
    assert count_compute_units(cores, capability) == units
