"""Preparing claims: from an allocation to a CDI spec and shim config on disk, and back.

`plan` and `room` decide, `spec` builds, `checkpoint` and `artifact` write, `preparer` ties them together.
"""
