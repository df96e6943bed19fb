"""Watches: every change of a selection as a line of JSON, from a queue that is bounded.

Nothing polls. The store tells each watch of a change as it is written; a watch whose client does not keep up is ended
with 410 rather than remembered, and the client lists again.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from sandbox.api_server.kind import Kind
from sandbox.api_server.refusal import Refusal, expired
from sandbox.api_server.selector import Matches
from sandbox.api_server.store import Change, Store, Stored

MAX_WAITING_BYTES: Final = 2**26
BOOKMARK_EVERY_S: Final = 60.0
_INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}

Render = Callable[[Stored], bytes]
"""Writes an object as the client wants it."""


class Watch:
    """A watch in progress. `send` and `end` may be called from outside."""

    def __init__(  # noqa: PLR0913 - what a watch selects and how it is shown
        self,
        request: web.BaseRequest,
        kind: Kind,
        namespace: str,
        matches: Matches | None,
        render: Render,
        *,
        revision: Callable[[], int],
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.request = request
        self.kind = kind
        self._revision = revision
        self.silent = False
        self.bookmarks = 0
        self._namespace = namespace
        self._matches = matches
        self._render = render
        self.max_waiting_bytes = max_waiting_bytes
        self._lines: list[bytes] = []
        self._waiting_bytes = 0
        self._ended = False
        self._woken = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Take a change into the queue, if it concerns this watch."""
        if self._namespace and change.current.key.namespace != self._namespace:
            return
        before = change.previous is not None and self._is_selected(change.previous)
        after = not change.deleted and self._is_selected(change.current)
        if after:
            self.send(line("MODIFIED" if before else "ADDED", self._render(change.current)))
        elif before:
            self.send(line("DELETED", self._render(self._last(change))))

    def add(self, stored: Stored) -> None:
        """Take an object that was there before into the queue."""
        if self._is_selected(stored):
            self.send(line("ADDED", self._render(stored)))

    def send(self, data: bytes) -> None:
        """Take a line into the queue. If the client does not keep up, the queue becomes the end of the watch."""
        if self._ended:
            return
        self._lines.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > self.max_waiting_bytes:
            self._lines = [error_line(expired("too old resource version: the watch did not keep up"))]
            self._ended = True
        self._woken.set()

    def bookmark(self, *, initial_events_end: bool = False) -> None:
        """Tell the client how far it is: everything before is sent or in the queue."""
        metadata: dict[str, Any] = {"resourceVersion": str(self._revision())}
        if initial_events_end:
            metadata["annotations"] = _INITIAL_EVENTS_END
        value = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata}
        self.bookmarks += 1
        self.send(line("BOOKMARK", json.dumps(value).encode()))

    def end(self) -> None:
        """Send what is waiting, and end."""
        self._ended = True
        self._woken.set()

    def cut(self) -> None:
        """Reset the connection."""
        if self.request.transport is not None:
            self.request.transport.abort()

    async def serve(self, response: web.StreamResponse, timeout_s: float, bookmark_every_s: float | None) -> None:
        """Write to the response until the watch ends. Raises ConnectionError when the client goes away."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        next_bookmark = loop.time() + bookmark_every_s if bookmark_every_s else None
        while True:
            lines, self._lines, self._waiting_bytes = self._lines, [], 0
            if lines and not self.silent:
                await response.write(b"".join(lines))
                continue
            if self._ended and not self.silent:
                return
            self._woken.clear()
            until = min(deadline, next_bookmark or deadline)
            try:
                async with asyncio.timeout_at(until):
                    await self._woken.wait()
            except TimeoutError:
                if loop.time() >= deadline:
                    return
                if bookmark_every_s:
                    self.bookmark()
                    next_bookmark = loop.time() + bookmark_every_s

    def _is_selected(self, stored: Stored) -> bool:
        if self._namespace and stored.key.namespace != self._namespace:
            return False
        return self._matches is None or self._matches(stored.value)

    def _last(self, change: Change) -> Stored:
        """Give the last state that the client knew, with the version of its end."""
        if change.deleted or change.previous is None:
            return change.current
        previous = change.previous
        value = previous.value | {"metadata": previous.value["metadata"] | {"resourceVersion": str(change.revision)}}
        return Stored(previous.key, change.revision, value, json.dumps(value).encode())


def begin(watch: Watch, store: Store, revision: int | None, *, initial_events: bool, marks_end: bool) -> None:
    """Fill the queue with what there is, or with what happened since `revision`, and listen from now on.

    Raises Refusal (410, 504) where the history does not reach back, or is not that far yet.
    """
    if initial_events:
        store.check_revision(watch.kind, store.revision if revision is None else max(revision, store.revision))
        for stored in store.all(watch.kind):
            watch.add(stored)
    elif revision is not None:
        for change in store.since(watch.kind, revision):
            watch.offer(change)
    if marks_end:
        watch.bookmark(initial_events_end=True)
    store.listen(watch.kind, watch.offer)


def line(event: str, body: bytes) -> bytes:
    """Write an event of a watch."""
    return b'{"type":"' + event.encode() + b'","object":' + body + b"}\n"


def error_line(refusal: Refusal) -> bytes:
    """Write the event that ends a watch which cannot go on."""
    return line("ERROR", json.dumps(refusal.status).encode())
