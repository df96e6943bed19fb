"""Types: every node gets one, every call its overloads, before a device is seen."""

from collections.abc import Iterable
from difflib import get_close_matches

from dra_driver.cel import type as t
from dra_driver.cel.advice import advise_call, describe_call
from dra_driver.cel.environment import DEVICE, Environment
from dra_driver.cel.error import CompileError, Issue, issue_at
from dra_driver.cel.function import Function, Overload
from dra_driver.cel.habit import advise_function, advise_name
from dra_driver.cel.message import find_message
from dra_driver.cel.tree import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
)
from dra_driver.cel.type import Kind, Mapping, Type
from dra_driver.cel.value import TypeValue, Uint

_LITERALS: dict[type, Type] = {
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
}


class Checked:
    """A tree with types. `overloads` are the possible overloads of a call, `constants` the names that are values."""

    __slots__ = ("constants", "expression", "overloads", "root", "types")

    def __init__(self, expression: str, root: Node) -> None:
        self.expression = expression
        self.root = root
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, list[str]] = {}
        self.constants: dict[int, TypeValue | int] = {}

    @property
    def type(self) -> Type:
        """The type of the whole."""
        return self.types[self.root.id]


def check(expression: str, root: Node, environment: Environment) -> Checked:
    """Give types to all nodes. Raises CompileError with everything that does not fit."""
    checker = _Checker(expression, root, environment)
    checker.checked.root = checker.check(root)
    if checker.issues:
        raise CompileError(expression, tuple(checker.issues))
    types = checker.checked.types
    for number, type_ in types.items():
        types[number] = checker.mapping.substitute(type_, to_dyn=True)
    return checker.checked


class _Checker:
    __slots__ = ("checked", "environment", "free", "issues", "mapping", "scopes")

    def __init__(self, expression: str, root: Node, environment: Environment) -> None:
        self.checked = Checked(expression, root)
        self.environment = environment
        self.mapping = Mapping()
        self.issues: list[Issue] = []
        self.scopes: list[dict[str, Type]] = []
        self.free = 0

    def report(self, node: Node, found: str, wanted: str = "") -> None:
        self.issues.append(issue_at(self.checked.expression, node.offset, found, wanted))

    def type_of(self, node: Node) -> Type:
        return self.checked.types[node.id]

    def set_type(self, node: Node, type_: Type) -> Node:
        self.checked.types[node.id] = type_
        return node

    def new_parameter(self) -> Type:
        self.free += 1
        return t.parameter(f"_var{self.free}")

    def check(self, node: Node) -> Node:  # noqa: PLR0911 - a case of each kind
        match node:
            case Literal():
                return self.set_type(node, _LITERALS[type(node.value)])
            case Ident():
                return self.check_ident(node)
            case Select():
                return self.check_select(node)
            case Call():
                return self.check_call(node)
            case ListNode():
                return self.check_list(node)
            case MapNode():
                return self.check_map(node)
            case Comprehension():
                return self.check_comprehension(node)
            case MessageNode():
                return self.check_message(node)
            case _:
                raise TypeError(node)

    def local(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def check_ident(self, node: Ident) -> Node:
        local = self.local(node.name)
        if local is not None:
            return self.set_type(node, local)
        if self.set_global(node, node.name):
            return node
        names = ["device", *(name for scope in self.scopes for name in scope if name.isidentifier())]
        self.report(node, f"unknown name {node.name!r}", _suggest(node.name, names) or advise_name(node.name))
        return self.set_type(node, t.ERROR)

    def set_global(self, node: Ident, name: str) -> bool:
        """Give the node the type of a variable or of a type that has this name."""
        bare = name.removeprefix(".")
        if bare == "device":
            hidden = self.local("device") is not None
            node.name = ".device" if hidden else "device"
            self.set_type(node, DEVICE)
            return True
        constant = self.environment.find_constant(bare)
        if constant is not None:
            self.checked.constants[node.id] = constant
            self.set_type(node, t.INT)
            return True
        found = self.environment.find_type(bare)
        if found is None:
            return False
        if found.kind is Kind.TYPE:
            self.checked.constants[node.id] = TypeValue(found.parameters[0].name)
        node.name = bare
        self.set_type(node, found)
        return True

    def check_select(self, node: Select) -> Node:
        name = None if node.test else _qualified(node)
        if name is not None and (name.startswith(".") or self.local(name.split(".")[0]) is None):
            ident = Ident(node.id, node.offset, name)
            if self.set_global(ident, name):
                return ident
        type_ = self.check_field(node, node.field, optional=False)
        return self.set_type(node, self.mapping.substitute(t.BOOL if node.test else type_))

    def check_field(self, node: Select | Call, field: str, *, optional: bool) -> Type:
        operand = node.operand if isinstance(node, Select) else node.arguments[0]
        operand = self.check(operand)
        if isinstance(node, Select):
            node.operand = operand
        else:
            node.arguments[0] = operand
        type_, is_optional = t.unwrap_optional(self.mapping.substitute(self.type_of(operand)))
        result = self.field_type(node, type_, field)
        return t.optional_of(result) if is_optional or optional else result

    def field_type(self, node: Node, type_: Type, field: str) -> Type:
        match type_.kind:
            case Kind.MAP:
                return type_.parameters[1]
            case Kind.STRUCT:
                message = find_message(type_.name, self.environment)
                fields = {} if message is None else message.fields
                if field in fields:
                    return fields[field]
                wanted = _suggest(field, fields) or ("want " + ", ".join(fields) if fields else _suggest_method(type_))
                what = f"device.{field}: no such field" if type_ == DEVICE else f"{type_} has no field {field!r}"
                self.report(node, what, wanted)
                return t.ERROR
            case Kind.PARAMETER:
                self.mapping.unify((t.DYN,), (type_,))
                return t.DYN
            case _:
                if not t.is_dyn_or_error(type_):
                    self.report(node, f"a {type_} has no field {field!r}")
                return t.DYN

    def check_call(self, node: Call) -> Node:
        if node.function == "_?._":
            key = node.arguments[1]
            assert isinstance(key, Literal)  # noqa: S101 - the parser makes it
            self.check(key)
            type_ = self.check_field(node, key.value, optional=True)
            self.checked.overloads[node.id] = ["select_optional_field"]
            return self.set_type(node, self.mapping.substitute(type_))
        for place, argument in enumerate(node.arguments):
            node.arguments[place] = self.check(argument)
        functions = self.environment.functions
        if node.target is None:
            name = node.function.removeprefix(".")
            function = functions.get(name)
            node.function = name
        else:
            prefix = _qualified(node.target)
            function = None if prefix is None else functions.get(f"{prefix.removeprefix('.')}.{node.function}")
            if function is not None:
                node.function = function.name
                node.target = None
            else:
                node.target = self.check(node.target)
                function = functions.get(node.function)
        if function is None:
            wanted = advise_function(node.function) or _suggest(node.function, functions)
            self.report(node, f"unknown function {node.function!r}", wanted)
            return self.set_type(node, t.ERROR)
        return self.resolve(node, function)

    def resolve(self, node: Call, function: Function) -> Node:
        """Find the overloads that the arguments fit."""
        operands = tuple(self.type_of(each) for each in node.operands)
        if function.name in ("_&&_", "_||_"):
            return self.resolve_logic(node, operands)
        result: Type | None = None
        for overload in function.overloads:
            if overload.member is (node.target is None):
                continue
            found = self.match(overload, operands)
            if found is None:
                continue
            self.checked.overloads.setdefault(node.id, []).append(overload.id)
            if result is None:
                result = found
            elif not t.is_dyn(result) and found != result:
                result = t.DYN
        if result is None:
            types = [self.mapping.substitute(each, to_dyn=True) for each in operands]
            if not any(each.kind is Kind.ERROR for each in types):
                self.report(node, describe_call(node, types), advise_call(node, types, function))
            else:
                self.report(node, describe_call(node, types))
            result = t.ERROR
        return self.set_type(node, result)

    def match(self, overload: Overload, operands: tuple[Type, ...]) -> Type | None:
        """Give the result of an overload if the operands fit."""
        if len(operands) != len(overload.parameters):
            return None
        if not overload.free:
            return overload.result if self.mapping.unify(operands, overload.parameters) else None
        fresh = Mapping({name: self.new_parameter() for name in overload.free})
        parameters = tuple(fresh.substitute(each) for each in overload.parameters)
        if not self.mapping.unify(operands, parameters):
            return None
        return self.mapping.substitute(fresh.substitute(overload.result))

    def resolve_logic(self, node: Call, operands: tuple[Type, ...]) -> Node:
        self.checked.overloads[node.id] = ["logical_and" if node.function == "_&&_" else "logical_or"]
        for operand, type_ in zip(node.arguments, operands, strict=True):
            if not self.mapping.unify((type_,), (t.BOOL,)):
                self.report(operand, f"a {self.mapping.substitute(type_, to_dyn=True)}", "want a bool")
        return self.set_type(node, t.BOOL)

    def check_list(self, node: ListNode) -> Node:
        joined: Type | None = None
        for place, element in enumerate(node.elements):
            checked = node.elements[place] = self.check(element)
            type_ = self.type_of(checked)
            if place in node.optional:
                type_ = self.check_optional(checked, type_)
            joined = self.join(joined, type_)
        return self.set_type(node, t.list_of(joined or self.new_parameter()))

    def check_optional(self, node: Node, type_: Type) -> Type:
        value, is_optional = t.unwrap_optional(type_)
        if is_optional:
            return value
        # Kubernetes dies of a dyn here.
        self.report(node, f"`?` before a {type_}", "want an optional value, as obj.?field gives")
        return t.ERROR

    def check_map(self, node: MapNode) -> Node:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            keys = self.join(keys, self.type_of(entry.key))
            entry.value = self.check(entry.value)
            type_ = self.type_of(entry.value)
            if entry.optional:
                type_ = self.check_optional(entry.value, type_)
            values = self.join(values, type_)
        if keys is None or values is None:
            keys, values = self.new_parameter(), self.new_parameter()
        return self.set_type(node, t.map_of(keys, values))

    def check_message(self, node: MessageNode) -> Node:
        node.name = node.name.removeprefix(".")
        message = find_message(node.name, self.environment)
        if message is None:
            self.report(node, f"{node.name!r} is no message that an expression can make")
            return self.set_type(node, t.ERROR)
        for each in node.fields:
            each.value = self.check(each.value)
            wanted = message.fields.get(each.name)
            if wanted is None:
                issue = issue_at(
                    self.checked.expression,
                    each.offset,
                    f"{node.name} has no field {each.name!r}",
                    _suggest(each.name, message.fields) or "want " + ", ".join(message.fields),
                )
                self.issues.append(issue)
                continue
            type_ = self.type_of(each.value)
            if each.optional:
                type_, is_optional = t.unwrap_optional(type_)
                if not is_optional and not t.is_dyn(type_):
                    self.report(each.value, f"`?` before a {type_}", "want an optional value, as obj.?field gives")
            if not self.mapping.unify((wanted,), (type_,)):
                shown = self.mapping.substitute(type_, to_dyn=True)
                self.report(each.value, f"a {shown} for {each.name}", f"want a {wanted}")
        return self.set_type(node, message.type)

    def join(self, previous: Type | None, current: Type) -> Type:
        """Give the type of elements so far; that they are of one type is checked later, since formats need not be."""
        if previous is None:
            return current
        if self.mapping.unify((previous,), (current,)):
            return t.most_general(previous, current)
        return t.DYN

    def check_comprehension(self, node: Comprehension) -> Node:
        node.range = self.check(node.range)
        node.initial = self.check(node.initial)
        accumulated = self.type_of(node.initial)
        self.scopes.append({node.accumulator: accumulated})
        self.scopes.append(self.loop_variables(node))
        node.condition = self.check(node.condition)
        self.assert_type(node.condition, t.BOOL)
        node.step = self.check(node.step)
        self.assert_type(node.step, accumulated)
        self.scopes.pop()
        node.result = self.check(node.result)
        self.scopes.pop()
        return self.set_type(node, self.mapping.substitute(self.type_of(node.result)))

    def loop_variables(self, node: Comprehension) -> dict[str, Type]:
        range_ = self.mapping.substitute(self.type_of(node.range))
        two = bool(node.variable2)
        match range_.kind:
            case Kind.LIST:
                types = (t.INT, range_.parameters[0]) if two else (range_.parameters[0], t.DYN)
            case Kind.MAP:
                types = (range_.parameters[0], range_.parameters[1])
            case Kind.DYN | Kind.ERROR | Kind.PARAMETER:
                self.mapping.unify((t.DYN,), (range_,))
                types = (t.DYN, t.DYN)
            case _:
                self.report(node.range, f"a loop over a {range_}", "want a list or a map")
                types = (t.ERROR, t.ERROR)
        variables = {node.variable: types[0]}
        if two:
            variables[node.variable2] = types[1]
        return variables

    def assert_type(self, node: Node, type_: Type) -> None:
        if not self.mapping.unify((type_,), (self.type_of(node),)):
            shown = [self.mapping.substitute(each, to_dyn=True) for each in (self.type_of(node), type_)]
            self.report(node, f"a {shown[0]}", f"want a {shown[1]}")


def _qualified(node: Node) -> str | None:
    """Give `a.b.c` if the node is that."""
    fields = []
    while isinstance(node, Select) and not node.test:
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else None


def _suggest(name: str, names: Iterable[str]) -> str:
    matches = get_close_matches(name, list(names), 1, 0.6)
    return f"did you mean {matches[0]!r}?" if matches else ""


def _suggest_method(type_: Type) -> str:
    return "" if type_ != t.QUANTITY else "compare it with .compareTo(quantity(…))"
