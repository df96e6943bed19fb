"""Documentation for people; the reference page is generated from the code."""
