"""What can go wrong with an expression.

    DraError
    ├── CompileError       the expression is wrong, whatever the device
    └── EvaluationError    it cannot be decided for a device
        ├── LimitError     it costs more than a selector may
        └── InterruptError the caller asked to stop

`Fault` and `Abort` are inside: a fault is an error that `||` and `&&` may absorb, an abort ends the evaluation.
"""

from dataclasses import dataclass

from dra_driver.errors import DraError


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong in an expression. `line` counts from 1, `column` from 0, `offset` in code points."""

    line: int
    column: int
    offset: int
    found: str
    wanted: str = ""

    def __str__(self) -> str:
        wanted = f", {self.wanted}" if self.wanted else ""
        return f"line {self.line} column {self.column + 1}: {self.found}{wanted}"


class CompileError(DraError):
    """The expression cannot be used. `issues` holds all that is wrong, `expression` what was written."""

    def __init__(self, expression: str, issues: tuple[Issue, ...]) -> None:
        super().__init__("; ".join(map(str, issues)))
        self.expression = expression
        self.issues = issues


class EvaluationError(DraError):
    """The expression cannot be decided. `device` is the driver's name of the device, if the caller gave one."""

    def __init__(self, message: str, *, expression: str = "", device: str = "", cost: int = 0) -> None:
        super().__init__(message)
        self.expression = expression
        self.device = device
        self.cost = cost


class LimitError(EvaluationError):
    """The evaluation costs more than it may."""


class InterruptError(EvaluationError):
    """The caller asked to stop."""


class Fault(Exception):  # noqa: N818 - an error value of the language, caught by its logical operators
    """An error value: `||`, `&&`, `all` and `exists` absorb it where another operand decides."""


class Abort(Exception):  # noqa: N818 - ends an evaluation, whatever stands around it
    """Ends the evaluation. Nothing absorbs it."""


class OverLimit(Abort):
    """The cost limit, or a limit on the size of a value."""


class Interrupted(Abort):
    """The caller asked to stop."""


def no_such_overload(function: str = "") -> Fault:
    """Tell that a function does not exist for the values it got."""
    return Fault(f"no such overload: {function}" if function else "no such overload")


def issue_at(expression: str, offset: int, found: str, wanted: str = "") -> Issue:
    """Make an issue for what stands at a place."""
    line = expression.count("\n", 0, offset) + 1
    column = offset - (expression.rfind("\n", 0, offset) + 1)
    return Issue(line, column, offset, found, wanted)
