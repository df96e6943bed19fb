"""Allocation: which devices serve which claims on a node (KEP-4381 and what followed it).

Pure: objects in, an allocation or a refusal out. The default policy gives the devices that the structured allocator of
Kubernetes 1.37 gives, and errors of the same class.

    from controller.allocator import Allocated, Problem, allocate, explain

    problem = Problem(node=…, claims=…, slices=…, classes=…, allocated=…, new_share_id=…)
    answer = allocate(problem)
    if not isinstance(answer, Allocated):
        reasons = explain(problem)

The objects are those of `dra_driver.api`, as the API server gives them: with its defaults, such as an allocationMode.
`dra_driver.api.codec.decode` makes them from JSON.
"""

from controller.allocator.alike import explain_nodes
from controller.allocator.allocation import Allocated, Answer, Problem, Refused, Undecided, allocate
from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.cluster import Cluster, Placed, Unplaced
from controller.allocator.error import AllocationError, ErrorClass
from controller.allocator.explanation import Explanation, explain, fits_without
from controller.allocator.expression import CelCompiler
from controller.allocator.feature import Features, features_of_gates, features_of_names, features_of_version
from controller.allocator.gang import Gathered, Member, Scattered, gather
from controller.allocator.joining import Joined
from controller.allocator.policy import Policy, parse_policy
from controller.allocator.reason import Reason, ReasonCode
from controller.allocator.selector import (
    CompileFailureError,
    Compiler,
    EvaluationFailureError,
    SelectorCache,
)
from controller.allocator.summary import summarize

__all__ = [
    "Allocated",
    "AllocationError",
    "Answer",
    "Blocker",
    "BlockerCode",
    "CelCompiler",
    "Cluster",
    "CompileFailureError",
    "Compiler",
    "ErrorClass",
    "EvaluationFailureError",
    "Explanation",
    "Features",
    "Gathered",
    "Joined",
    "Member",
    "Placed",
    "Policy",
    "Problem",
    "Reason",
    "ReasonCode",
    "Refused",
    "Scattered",
    "SelectorCache",
    "Undecided",
    "Unplaced",
    "allocate",
    "explain",
    "explain_nodes",
    "features_of_gates",
    "features_of_names",
    "features_of_version",
    "fits_without",
    "gather",
    "parse_policy",
    "summarize",
]
