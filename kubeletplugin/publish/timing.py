"""How often what is published is looked at, tried and mended."""

from dataclasses import dataclass, field

from dra_driver.kube.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTiming:
    """How often, in seconds. Periods are shortened at random by up to a half, so that nodes do not act together.

    - `gather_s`: how long changes are gathered before they are looked at
    - `probe_s`: between two dry runs of everything where fields are dropped or devices refused, to find that they no
      longer are; an API server that was away is asked at once
    - `recheck_s`: the same where nothing is, to find gates that were disabled
    - `refused_s`: between two attempts where a person has to mend something
    - `passing`: so many refusals in a row by the server's roles, or conflicts, are retried soon, and without a word to
      a person: an API server that has just started knows no roles yet
    - `quiet_s`: changes by others that are further apart than this are mended at once
    - `turn_s`: how often a process that stands back looks whether it still has to
    - `patience`: so many failures in a row, and an older process may try
    - `retry_after_s`: a longer wait than this that the API server asks for is cut to it
    """

    gather_s: float = 0.05
    probe_s: float = 600.0
    recheck_s: float = 3600.0
    refused_s: float = 60.0
    passing: int = 5
    quiet_s: float = 60.0
    turn_s: float = 1.0
    patience: int = 5
    retry_after_s: float = 60.0
    retry: Backoff = field(default_factory=lambda: Backoff(initial_s=0.2, max_s=30.0))
    mend: Backoff = field(default_factory=lambda: Backoff(initial_s=0.1, max_s=30.0))
