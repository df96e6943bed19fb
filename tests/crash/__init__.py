"""A matrix of real deaths: a process of the plugin is killed at each of its effects, and then each recovery is tried.

A process that is killed leaves all that it wrote. A power cut does not, so what only a power cut takes is taken, too:
`durability` says what that is.

`python -m tests.crash` runs all of it and prints how many crash points there were and what came of them.
"""
