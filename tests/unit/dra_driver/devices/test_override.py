from dra_driver.devices.override import explain_overrides
from dra_driver.devices.partitioning import PartitionMode
from tests.support.builder import a_device

ONE = a_device("GPU-1", uuid="GPU-1", serial="17")
TWO = a_device("GPU-2", uuid="GPU-2")


def explain(**overrides: PartitionMode) -> list[str]:
    named = {key.replace("_", "-"): mode for key, mode in overrides.items()}
    return list(explain_overrides(named, [ONE, TWO], flag="--partitions-of"))


def test_an_override_of_a_device_that_is_there_is_fine_by_any_of_its_names() -> None:
    for key in (ONE.name, "GPU-1", "17"):
        assert not list(explain_overrides({key: PartitionMode.NONE}, [ONE, TWO], flag="--partitions-of"))


def test_an_override_of_a_device_that_is_not_there_names_those_that_are() -> None:
    (problem,) = explain(GPU_11=PartitionMode.NONE)
    assert problem == (
        f"--partitions-of: 'GPU-11': no device of this node, want {ONE.name} (GPU-1) or {TWO.name} (GPU-2); "
        "did you mean 'GPU-1'?"
    )


def test_a_node_with_many_devices_does_not_name_them_all() -> None:
    devices = [a_device(f"GPU-{index}") for index in range(10)]
    (problem,) = explain_overrides({"tpu": PartitionMode.NONE}, devices, flag="--partitions-of")
    assert "or one of 2 more" in problem
    assert devices[7].name in problem
    assert devices[8].name not in problem


def test_an_override_that_another_of_the_same_device_goes_over_is_named() -> None:
    overrides = {"17": PartitionMode.NONE, "GPU-1": PartitionMode.STATIC}
    assert list(explain_overrides(overrides, [ONE, TWO], flag="--partitions-of")) == [
        "--partitions-of: '17=none': has no effect, since 'GPU-1=static' is of the same device"
    ]
