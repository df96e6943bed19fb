"""The sandbox has the classes that the chart installs."""

import re

from sandbox.device_class import build_device_classes
from tests.support.manifest import CHART

DRIVER = "accel.dra-driver.io"


def test_classes_have_the_names_and_selectors_of_the_chart() -> None:
    templates = "".join(path.read_text("utf-8") for path in (CHART / "templates").glob("*") if path.is_file())
    conditions = re.findall(r'"(accelerator|gpu|npu|partition)" \(printf "((?:[^"\\]|\\.)+)"', templates)
    attributes = f'device.attributes["{DRIVER}"]'
    wanted = {
        f"{name}.dra-driver.io": f'device.driver == "{DRIVER}" && '
        + condition.replace('\\"', '"').replace("%s", attributes)
        for name, condition in conditions
    }
    assert len(wanted) == 4
    built = {
        each.metadata.name: selector.cel.expression
        for each in build_device_classes(DRIVER)
        for selector in each.spec.selectors
        if selector.cel is not None
    }
    assert built == wanted
