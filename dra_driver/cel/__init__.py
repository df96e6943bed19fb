"""The expression language (CEL) as Kubernetes gives it to Dynamic Resource Allocation.

    from dra_driver.api.resource_v1 import DeviceAttribute
    from dra_driver.cel import DeviceInput, compile_selector

    selector = compile_selector('device.attributes["gpu.example.com"].model == "H100"')
    selector.evaluate(DeviceInput("gpu.example.com", {"model": DeviceAttribute(string="H100")}))

Same types, functions, limits, costs and verdicts as Kubernetes 1.37; errors say what was found and what to write.
No cluster and no Kubernetes client is needed. Facts and sources: KEP-4381, cel-go 0.29, k8s.io/apiserver/pkg/cel.
"""

from dra_driver.cel.device import DeviceInput
from dra_driver.cel.error import CompileError, EvaluationError, InterruptError, Issue, LimitError
from dra_driver.cel.reads import Read
from dra_driver.cel.selector import (
    MAX_COST,
    MAX_LENGTH,
    DerivedAttribute,
    Options,
    Selector,
    compile_attribute,
    compile_selector,
    validate_selector,
)

__all__ = [
    "MAX_COST",
    "MAX_LENGTH",
    "CompileError",
    "DerivedAttribute",
    "DeviceInput",
    "EvaluationError",
    "InterruptError",
    "Issue",
    "LimitError",
    "Options",
    "Read",
    "Selector",
    "compile_attribute",
    "compile_selector",
    "validate_selector",
]
