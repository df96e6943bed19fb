from dra_driver.allocator import Allocator
from kubeletplugin.publish.drop import DroppedField
from kubeletplugin.publish.feature import Features, Gate
from kubeletplugin.publish.report import render_dropped


def test_dropped_fields_are_told_with_their_gates_and_what_it_means() -> None:
    fields = (DroppedField("spec.devices[*].taints", Gate.DEVICE_TAINTS), DroppedField("spec.odd", None))
    assert render_dropped(fields, Features(taints=False)) == (
        "the API server does not keep spec.devices[*].taints, spec.odd; "
        "enable the feature gate DRADeviceTaints in kube-apiserver, kube-scheduler and kubelet; "
        "until then unhealthy devices are not published"
    )


def test_a_gate_that_several_fields_need_is_named_once() -> None:
    fields = (
        DroppedField("a", Gate.CONSUMABLE_CAPACITY),
        DroppedField("b", Gate.CONSUMABLE_CAPACITY),
        DroppedField("c", Gate.DEVICE_TAINTS),
    )
    text = render_dropped(fields, Features(sharing=False, taints=False))
    assert "enable the feature gates DRAConsumableCapacity, DRADeviceTaints in" in text
    assert text.endswith("until then a device is given to one claim at a time, unhealthy devices are not published")


def test_a_field_of_no_known_gate_is_told_by_its_path() -> None:
    assert render_dropped((DroppedField("spec.odd", None),), Features()) == "the API server does not keep spec.odd"


def test_without_taints_a_node_of_the_controller_publishes_nothing_and_says_so() -> None:
    fields = (DroppedField("spec.devices[*].taints", Gate.DEVICE_TAINTS),)
    text = render_dropped(fields, Features(taints=False), Allocator.CONTROLLER)
    assert text.endswith("until then no device of this node is published, since they are the controller's")
