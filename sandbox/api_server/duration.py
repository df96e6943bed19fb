"""Ages as kubectl shows them: two or three digits that matter. Pure."""

from datetime import UTC, datetime
from typing import Any, Final

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_YEAR: Final = 365 * _DAY

# From how many seconds on an age is shown in which units; the second unit is left out where it is none.
_STEPS: Final = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def render_age(time: Any, now: datetime) -> str:
    """Give how long ago an API time is, such as `5m12s`."""
    if not isinstance(time, str) or not time:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return "<invalid>"
    return render_duration(int((now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds()))


def render_duration(seconds: int) -> str:
    """Give a duration in the units that matter."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    for limit, (size, unit), minor in _STEPS:
        if seconds < limit:
            rest = seconds % size // minor[0] if minor else 0
            return f"{seconds // size}{unit}" + (f"{rest}{minor[1]}" if minor and rest else "")
    return f"{seconds // _YEAR}y"
