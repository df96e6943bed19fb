"""What to write instead of a call that fits no overload."""

from collections.abc import Sequence
from typing import Final

from dra_driver.cel import type as t
from dra_driver.cel.function import Function
from dra_driver.cel.tree import Call, Literal
from dra_driver.cel.type import Kind, Type

_ORDERS: Final = ("<", "<=", ">=", ">")
_SYMBOLS: Final = {
    "@in": "in",
    "_[_]": "[…]",
    "_[?_]": "[?…]",
    "_?_:_": "? :",
    "!_": "!",
    "-_": "-",
    "@not_strictly_false": "condition",
}


def symbol(function: str) -> str:
    """Give how a function is written."""
    if function in _SYMBOLS:
        return _SYMBOLS[function]
    return function[1:-1] if function.startswith("_") and function.endswith("_") else function


def describe_call(node: Call, types: Sequence[Type]) -> str:
    """Say what was found."""
    shown = [str(type_) for type_ in types]
    name = symbol(node.function)
    if node.target is not None:
        return f"no {shown[0]}.{name}({', '.join(shown[1:])})"
    if not name[0].isalpha():
        return f"no {f' {name} '.join(shown)}" if len(shown) > 1 else f"no {name}{shown[0]}"
    return f"no {name}({', '.join(shown)})"


def advise_call(node: Call, types: Sequence[Type], function: Function) -> str:
    """Say what to write, if that is known."""
    name = symbol(node.function)
    if name in (*_ORDERS, "==", "!=") and t.QUANTITY in types:
        return f"write a.compareTo(quantity({_amount(node)})) {name} 0"
    if t.SEMVER in types and name in (*_ORDERS, "==", "!="):
        return f'write a.compareTo(semver("1.2.3")) {name} 0'
    if name in ("==", "!=", "+", "-", "*", "/") and _are_numbers(types):
        return f"numbers of two types; convert one with {types[0]}(…)"
    if name == "sign" and node.target is not None:
        return "write sign(a)"
    advice = _advise_operands(name, types) or _advise_argument(node, name, types)
    if advice:
        return advice
    wanted = _wanted(node, function)
    return f"want {wanted}" if wanted else ""


def _advise_operands(name: str, types: Sequence[Type]) -> str:
    if name == "in" and types[1] == t.STRING:
        return "write text.contains(part)"
    if name not in (*_ORDERS, "==", "!=") or len(types) != 2:  # noqa: PLR2004 - both sides
        return ""
    if any(t.unwrap_optional(type_)[1] for type_ in types):
        return f"write a.orValue(…) {name} b"
    if any(type_.kind is Kind.MAP for type_ in types):
        return 'name the domain and then the attribute, as in device.attributes["gpu.example.com"].model'
    return f"want {types[0]} {name} {types[0]}" if name in ("==", "!=") else ""


def _advise_argument(node: Call, name: str, types: Sequence[Type]) -> str:
    """Say what to put around a text that is to be compared with a quantity or a version."""
    if node.target is None or types[-1] != t.STRING or name not in ("compareTo", "isGreaterThan", "isLessThan"):
        return ""
    if types[0] == t.QUANTITY:
        return f"write a.{name}(quantity({_amount(node)}))"
    return f'write a.{name}(semver("1.2.3"))' + ("" if types[0] == t.SEMVER else f' or a.{name}(quantity("80Gi"))')


def _amount(node: Call) -> str:
    for operand in node.operands:
        if isinstance(operand, Literal) and type(operand.value) in (str, int):
            return f'"{operand.value}"'
    return '"80Gi"'


def _are_numbers(types: Sequence[Type]) -> bool:
    numbers = (Kind.INT, Kind.UINT, Kind.DOUBLE)
    return len(types) > 1 and all(type_.kind in numbers for type_ in types)


def _wanted(node: Call, function: Function) -> str:
    """Name a few overloads."""
    forms = []
    for overload in function.overloads:
        if overload.member is (node.target is None):
            continue
        shown = [str(type_) for type_ in overload.parameters]
        name = symbol(function.name)
        if overload.member:
            forms.append(f"{shown[0]}.{name}({', '.join(shown[1:])})")
        elif not name[0].isalpha():
            forms.append(f" {name} ".join(shown))
        else:
            forms.append(f"{name}({', '.join(shown)})")
    if not forms:
        others = [str(overload.parameters[0]) for overload in function.overloads if overload.parameters]
        if node.target is None and others:
            return f"value.{function.name}(…)"
        return f"{function.name}(…) without a value before it" if others else ""
    return " or ".join(forms[:4]) + (" …" if len(forms) > 4 else "")  # noqa: PLR2004 - enough to see
