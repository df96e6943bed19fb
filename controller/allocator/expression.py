"""The real compiler of selectors: CEL, as Kubernetes' allocator has it."""

import json
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final

from controller.allocator.candidate import Candidate
from controller.allocator.selector import CompileFailureError, Derivation, EvaluationFailureError, Selector
from dra_driver.api.resource_v1 import DeviceAttribute
from dra_driver.api.semver import Semver
from dra_driver.cel import (
    CompileError,
    DerivedAttribute,
    EvaluationError,
    Read,
    compile_attribute,
    compile_selector,
)
from dra_driver.cel import Selector as Program
from dra_driver.cel.value import Value

_VERDICTS_MAX: Final = 4096
_DESCRIBED_MAX: Final = 3


class CelCompiler:
    """Compiles expressions in the environment of stored objects, whatever the gates."""

    def compile_selector(self, expression: str) -> Selector:
        """See Compiler."""
        try:
            return _CelSelector(compile_selector(expression))
        except CompileError as error:
            raise _compile_failure(error) from error

    def compile_attribute(self, expression: str) -> Derivation:
        """See Compiler."""
        try:
            return _CelDerivation(compile_attribute(expression))
        except CompileError as error:
            raise _compile_failure(error) from error


@dataclass(slots=True, eq=False)
class _CelSelector:
    """A selector that is evaluated once for all devices in which it reads the same."""

    program: Program
    verdicts: dict[object, bool] = field(default_factory=dict)

    def key(self, candidate: Candidate) -> Hashable:
        return self.program.key(candidate.input)

    def describe(self, candidate: Candidate) -> str:
        reads = sorted(self.program.reads)
        if len(reads) > _DESCRIBED_MAX or not all(read.name for read in reads):
            return ""
        return ", ".join(_describe(read, candidate) for read in reads)

    def evaluate(self, candidate: Candidate) -> bool:
        device = candidate.input
        key = self.program.key(device)
        verdict = self.verdicts.get(key)
        if verdict is None:
            try:
                verdict = self.program.evaluate(device)
            except EvaluationError as error:
                raise _evaluation_failure(error) from error
            if len(self.verdicts) >= _VERDICTS_MAX:
                self.verdicts.clear()
            self.verdicts[key] = verdict
        return verdict


@dataclass(slots=True, eq=False)
class _CelDerivation:
    program: DerivedAttribute

    def key(self, candidate: Candidate) -> Hashable:
        return self.program.key(candidate.input)

    def evaluate(self, candidate: Candidate) -> DeviceAttribute:
        try:
            value = self.program.evaluate(candidate.input)
        except EvaluationError as error:
            raise _evaluation_failure(error) from error
        return _build_attribute(value)


def _compile_failure(error: CompileError) -> CompileFailureError:
    issues = [(str(replace(issue, wanted="")), issue.wanted) for issue in error.issues]
    return CompileFailureError(str(error), issues)


def _evaluation_failure(error: EvaluationError) -> EvaluationFailureError:
    """Tell what to write instead, which comes last in the text, from what is wrong."""
    problem = str(error).removeprefix(f"{error.expression!r}: ")
    return EvaluationFailureError(str(error), problem.partition("; ")[2])


def _describe(read: Read, candidate: Candidate) -> str:
    """Name a value that an expression reads, or say that there is none."""
    view = candidate.input.view
    domains = view.attributes if read.field == "attributes" else view.capacity
    name = read.name if read.domain == candidate.id[0] else f"{read.domain}/{read.name}"
    value = domains.get(read.domain, {}).get(read.name)
    if value is None:
        return f"no {name}"
    return f"{name} {_show(value)}"


def _show(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"[{', '.join(map(_show, value))}]"
        case _:
            return str(value)


def _build_attribute(value: object) -> DeviceAttribute:
    """Give the attribute that a value stands for; an empty list has no value, as upstream has it."""
    if not isinstance(value, tuple):
        value, is_list = (value,), False
    else:
        is_list = True
    match value:
        case (bool(), *_):
            return DeviceAttribute(bools=value) if is_list else DeviceAttribute(bool=value[0])
        case (int(), *_):
            return DeviceAttribute(ints=value) if is_list else DeviceAttribute(int=value[0])
        case (str(), *_):
            return DeviceAttribute(strings=value) if is_list else DeviceAttribute(string=value[0])
        case (Semver(), *_):
            texts = tuple(map(str, value))
            return DeviceAttribute(versions=texts) if is_list else DeviceAttribute(version=texts[0])
        case _:
            return DeviceAttribute()
