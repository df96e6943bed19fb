"""JSON that people read: what fits on a line stands on one. Pure."""

import json
from typing import Any, Final

_WIDTH: Final = 96
_STEP: Final = "  "


def format_json(value: Any, indent: str = "", lead: int = 0) -> str:
    """Write a value as JSON; `lead` is how much of the first line is taken already."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + lead + len(flat) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = indent + _STEP
    if isinstance(value, dict):
        names = {name: f"{json.dumps(name, ensure_ascii=False)}: " for name in value}
        parts = [f"{names[name]}{format_json(part, inner, len(names[name]))}" for name, part in value.items()]
        begin, end = "{", "}"
    else:
        parts = [format_json(part, inner) for part in value]
        begin, end = "[", "]"
    body = ",\n".join(f"{inner}{part}" for part in parts)
    return f"{begin}\n{body}\n{indent}{end}"
