"""Which devices count as unwell: what backends see now (raw), weighed with what was seen before (a verdict)."""
