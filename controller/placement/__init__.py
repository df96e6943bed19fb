"""Placement: whether a Pod as a whole fits a node, apart from its claims, as kube-scheduler's filters would say.

Pure. Covers the filters NodeUnschedulable, NodeName, TaintToleration, NodeAffinity and NodeResourcesFit of Kubernetes
1.37. Host ports, volumes, spreading and affinity between Pods are not looked at: kube-scheduler has the last word, and
the controller allocates again when it disagrees.

    from controller.placement import Requested, find_misfit

    misfit = find_misfit(pod, node, requested)  # None: it fits
"""

from controller.placement.class_resource import name_class_resources
from controller.placement.misfit import Misfit, MisfitCode, find_misfit
from controller.placement.requested import Requested, sum_requests

__all__ = ["Misfit", "MisfitCode", "Requested", "find_misfit", "name_class_resources", "sum_requests"]
