"""A matrix of real deaths: a process of the plugin is killed at each of its effects, and then each recovery is tried.

`python -m tests.crash` runs all of it and prints how many crash points there were and what came of them.
"""
