"""What ends a demo early."""

from dra_driver.errors import DraError


class DemoError(DraError):
    """Something that the demo was to show did not happen."""
