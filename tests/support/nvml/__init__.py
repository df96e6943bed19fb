"""A fake of the NVIDIA management library, at the level of its functions."""
