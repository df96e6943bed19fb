"""What sharing a device takes beyond its claims: turns of some length, or an MPS daemon, while it has shares."""
