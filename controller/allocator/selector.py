"""Selectors and derived attributes: compiled once, evaluated once a device."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from controller.allocator.candidate import Candidate
from controller.allocator.error import AllocationError, ErrorClass, Fault
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceSelector

_CACHE_SIZE: Final = 1024
_T = TypeVar("_T")

Eye: TypeAlias = Callable[[Candidate], Hashable]
"""Gives what an expression sees of a device: where that is equal, so is what comes out."""


class CompileFailureError(ValueError):
    """An expression is not valid. `issues` are (what was found and where, what to write instead)."""

    def __init__(self, message: str, issues: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.issues = tuple(issues) or ((message, ""),)


class EvaluationFailureError(ValueError):
    """An expression could not be evaluated on a device. `advice` is what to write instead."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Selector(Protocol):
    """A compiled expression that gives a bool."""

    def evaluate(self, candidate: Candidate) -> bool:
        """Tell whether the device matches. Raises EvaluationFailureError."""

    def key(self, candidate: Candidate) -> Hashable:
        """Give what the expression sees of the device: where that is equal, so is the verdict."""

    def describe(self, candidate: Candidate) -> str:
        """Say what the expression sees of the device: `model "A100", no memory`; nothing where that is too much."""


class Derivation(Protocol):
    """A compiled expression that gives an attribute value."""

    def evaluate(self, candidate: Candidate) -> DeviceAttribute:
        """Compute the attribute. Raises EvaluationFailureError."""

    def key(self, candidate: Candidate) -> Hashable:
        """Give what the expression sees of the device: where that is equal, so is the value."""


class Compiler(Protocol):
    """Makes selectors and derivations of expressions. Both methods raise CompileFailureError."""

    def compile_selector(self, expression: str) -> Selector:
        """Compile a selector."""

    def compile_attribute(self, expression: str) -> Derivation:
        """Compile a derived attribute."""


class SelectorCache:
    """Compiled expressions, the `size` that were used last. What does not compile is tried again each time."""

    def __init__(self, compiler: Compiler, size: int = _CACHE_SIZE) -> None:
        self._compiler = compiler
        self._size = size
        self._selectors: OrderedDict[str, Selector] = OrderedDict()
        self._derivations: OrderedDict[str, Derivation] = OrderedDict()
        self._numbers: dict[Hashable, int] = {}
        self._last = 0

    def number(self, signature: Hashable) -> int:
        """Give the number of a signature; equal ones have the same for a while, different ones never."""
        number = self._numbers.get(signature)
        if number is None:
            if len(self._numbers) >= self._size:
                self._numbers.clear()
            self._last += 1
            number = self._numbers[signature] = self._last
        return number

    def matches(self, candidate: Candidate, selectors: tuple[DeviceSelector, ...], subject: str) -> bool:
        """Tell whether all selectors match. Raises AllocationError; `subject` is the claim or class that has them."""
        return self.first_mismatch(candidate, selectors, subject) is None

    def first_mismatch(self, candidate: Candidate, selectors: tuple[DeviceSelector, ...], subject: str) -> int | None:
        """Give the index of the first selector that is false; those after it are not evaluated."""
        for index, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            verdict = candidate.verdicts.get(expression)
            if verdict is None:
                verdict = self._evaluate(candidate, expression, f"{subject}: selector #{index}")
                candidate.verdicts[expression] = verdict
            if not verdict:
                return index
        return None

    def derive(self, candidate: Candidate, name: str, expression: str) -> DeviceAttribute:
        """Compute a derived attribute. Raises AllocationError."""
        found = candidate.derived.get(expression)
        if found is not None:
            return found
        try:
            attribute = self._derivation(expression).evaluate(candidate)
        except CompileFailureError as error:
            raise _compile_error(f"derived attribute {name}", error) from error
        except EvaluationFailureError as error:
            raise _runtime_error(f"derived attribute {name}", candidate, error) from error
        candidate.derived[expression] = attribute
        return attribute

    def describe(self, candidate: Candidate, expression: str) -> str:
        """Say what a selector sees of the device; nothing where it does not compile."""
        try:
            return self._selector(expression).describe(candidate)
        except CompileFailureError:
            return ""

    def eyes(self, selectors: Iterable[str], derived: Iterable[str]) -> list[Eye]:
        """Give for each expression what tells what it sees of a device; nothing for one that does not compile."""
        eyes: list[Eye] = []
        for find, expressions in ((self._selector, selectors), (self._derivation, derived)):
            for expression in expressions:
                try:
                    eyes.append(find(expression).key)
                except CompileFailureError:
                    continue
        return eyes

    def _evaluate(self, candidate: Candidate, expression: str, subject: str) -> bool:
        try:
            return self._selector(expression).evaluate(candidate)
        except CompileFailureError as error:
            raise _compile_error(subject, error) from error
        except EvaluationFailureError as error:
            raise _runtime_error(subject, candidate, error) from error

    def _selector(self, expression: str) -> Selector:
        selector = self._selectors.get(expression)
        if selector is None:
            selector = self._compiler.compile_selector(expression)
            _remember(self._selectors, expression, selector, self._size)
        return selector

    def _derivation(self, expression: str) -> Derivation:
        derivation = self._derivations.get(expression)
        if derivation is None:
            derivation = self._compiler.compile_attribute(expression)
            _remember(self._derivations, expression, derivation, self._size)
        return derivation


def _compile_error(subject: str, error: CompileFailureError) -> AllocationError:
    faults = [Fault(subject, found, wanted) for found, wanted in error.issues]
    return AllocationError(f"{subject}: {error}", ErrorClass.COMPILE, faults=faults)


def _runtime_error(subject: str, candidate: Candidate, error: EvaluationFailureError) -> AllocationError:
    found = str(error).removesuffix(f"; {error.advice}")
    fault = Fault(f"{subject} on device {candidate.subject}", found, error.advice)
    return AllocationError(f"{fault.subject}: {error}", ErrorClass.RUNTIME, faults=[fault])


def _remember(cache: OrderedDict[str, _T], expression: str, value: _T, size: int) -> None:
    cache[expression] = value
    if len(cache) > size:
        cache.popitem(last=False)
