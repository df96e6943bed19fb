"""Waiting in tests: for a condition, with a deadline, never for a time."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], *, within_s: float = 10.0) -> None:
    """Return when the condition holds; fail after `within_s`."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - the condition is arbitrary, so there is no event to wait for
            await asyncio.sleep(0.002)
