"""Extended resources of DeviceClasses."""

from controller.placement import MisfitCode, Requested, find_misfit, name_class_resources
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import DeviceClass, DeviceClassSpec
from tests.support.placement import a_container, a_node, a_pod

PLAIN = DeviceClass(metadata=ObjectMeta(name="plain"), spec=DeviceClassSpec())
NAMED = DeviceClass(metadata=ObjectMeta(name="named"), spec=DeviceClassSpec(extended_resource_name="example.com/gpu"))


def test_every_class_has_a_resource_and_some_have_another() -> None:
    assert name_class_resources((PLAIN, NAMED)) == {
        "deviceclass.resource.kubernetes.io/plain",
        "deviceclass.resource.kubernetes.io/named",
        "example.com/gpu",
    }


def test_a_node_needs_none_of_them_itself() -> None:
    wanted = {"deviceclass.resource.kubernetes.io/plain": "1", "example.com/gpu": "2"}
    pod = a_pod(a_container(**wanted))
    assert find_misfit(pod, a_node(), Requested(), class_resources=name_class_resources((PLAIN, NAMED))) is None
    misfit = find_misfit(pod, a_node(), Requested(), class_resources=name_class_resources((PLAIN,)))
    assert misfit is not None
    assert (misfit.code, misfit.message) == (MisfitCode.RESOURCES, "example.com/gpu: 0 left, want 2")
