"""How long to wait before the next attempt, so that many clients of one API server do not come back all at once."""

from dataclasses import dataclass

_LARGEST_EXPONENT = 64  # beyond it every sensible `max_s` is reached, and floats would overflow


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential growth from `initial_s` to `max_s` seconds; `jitter` (0 … 1) is the random share of a delay."""

    initial_s: float = 0.2
    max_s: float = 30.0
    factor: float = 2.0
    jitter: float = 0.5

    def delay_s(self, attempt: int, random: float) -> float:
        """Seconds to wait after failure number `attempt` (from 0), given a `random` number in [0, 1).

        The result lies in ((1 - jitter) * d, d], where d is the capped exponential delay of this attempt.
        """
        exponent = min(max(attempt, 0), _LARGEST_EXPONENT)
        ceiling = min(self.initial_s * self.factor**exponent, self.max_s)
        return ceiling * (1.0 - self.jitter * random)
