"""A node and an API server for one trial after the other."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.crash.node import Node
from tests.crash.recovery import Clean
from tests.crash.scenario import Scenario, build_scenarios
from tests.crash.server import Server
from tests.crash.session import Session


class Bench:
    """A node and an API server, each trial from the start."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.node = Node(folder, self.server)
        self.scenarios = build_scenarios(self.node)
        self.server.keep(claim for each in self.scenarios for claim in (each.claim, each.rival))
        self._settings = self.node.settings

    def find(self, name: str) -> Scenario:
        """Return the scenario of a name."""
        return next(each for each in self.scenarios if each.name == name)

    def reset(self, scenario: Scenario | None = None) -> None:
        """Begin anew, with the settings that a scenario takes."""
        self.node.settings = replace(self._settings, **scenario.settings) if scenario else self._settings
        self.node.reset()
        self.server.reset()

    def go_back(self, *, is_boot: bool) -> None:
        """Put back the disk that was saved, before or after the boot that follows."""
        self.node.restore()
        if is_boot:
            self.node.reboot()

    @contextlib.contextmanager
    def begun(self, scenario: Scenario, operation: str) -> Iterator[Session]:
        """Give a process on a new node that is about to do the operation."""
        self.reset(scenario)
        session = Session(self.node)
        try:
            session.start()
            if operation == "unprepare":
                answer = session.call("prepare", scenario.ref)
                assert isinstance(answer, list), answer
            yield session
        finally:
            session.close()

    def read_clean(self, scenario: Scenario) -> Clean:
        """Return how it looks where nobody dies."""
        with self.begun(scenario, "prepare") as session:
            return Clean(session.call("prepare", scenario.ref), self.node.look())
