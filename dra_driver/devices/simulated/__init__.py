"""Simulated accelerators: a node full of devices from a YAML profile, for tests and clusters without hardware."""

from dra_driver.devices.simulated.backend import SimulatedBackend
from dra_driver.devices.simulated.profile import Profile, parse_profile, profile_names, read_profile

__all__ = ["Profile", "SimulatedBackend", "parse_profile", "profile_names", "read_profile"]
