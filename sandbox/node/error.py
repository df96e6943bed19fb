"""What goes wrong on a simulated node.

DraError
└── NodeError              the node cannot do now what a Pod needs; it is tried again
    └── DriverCallError    a driver did not answer, or not as the contract says
        └── NoHealthError  a driver offers a health stream that it does not have
"""

from dra_driver.errors import DraError


class NodeError(DraError):
    """The node cannot do now what a Pod needs."""


class DriverCallError(NodeError):
    """A driver did not answer, or not as the contract says."""


class NoHealthError(DriverCallError):
    """A driver offers a health stream that it does not have."""
