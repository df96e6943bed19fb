"""Measurements, side by side in one run. They print medians and ratios, and assert nothing."""
