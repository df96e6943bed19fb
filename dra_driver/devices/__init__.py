"""Devices of every vendor in one model, and the backends that find them."""
