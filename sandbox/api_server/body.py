"""Bodies of requests as values: JSON, YAML where the API takes it, and what a client may have got wrong about them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.protobuf import MEDIA_TYPE, read_protobuf
from sandbox.api_server.refusal import Refusal, bad_request, unsupported_media_type
from sandbox.api_server.schema import WrongTypeError, prune

MAX_BYTES: Final = 3 * 1024 * 1024
_MAX_DEPTH: Final = 200
_MAX_YAML_BYTES: Final = 512 * 1024  # PyYAML takes a second for that

_JSON: Final = "application/json"
_YAML: Final = "application/yaml"


def read_value(body: bytes, content_type: str = _JSON) -> Any:
    """Read JSON or YAML. Raises Refusal."""
    if content_type in (_JSON, ""):
        return _read_json(body)
    if content_type == _YAML:
        return _read_yaml(body)
    if content_type == MEDIA_TYPE:
        return read_protobuf(body)
    raise unsupported_media_type((_JSON, _YAML, MEDIA_TYPE))


def read_apply(body: bytes) -> Any:
    """Read what is applied: the content type says YAML, and most clients send JSON, which is YAML too."""
    try:
        return _read_json(body)
    except Refusal:
        return _read_yaml(body)


def read_object(kind: Kind, value: Any, validation: str = "Warn") -> tuple[Object, tuple[str, ...]]:
    """Check that a value is an object of the kind; give what of it the kind has, and warnings. Raises Refusal.

    `validation` says what to do about fields that the kind does not have: `Strict` refuses them, `Warn` warns.
    """
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _unreadable(kind, f"json: cannot unmarshal {type(value).__name__} into Go value of type {kind.kind}")
    version, name = value.get("apiVersion", kind.api_version), value.get("kind", kind.kind)
    if not isinstance(version, str) or not isinstance(name, str):
        raise bad_request("couldn't get version/kind; json parse error: kind and apiVersion must be strings")
    if version not in (kind.api_version, ""):
        problem = f"the API version in the data ({version}) does not match the expected API version "
        raise bad_request(f"{problem}({kind.api_version})")
    if name not in (kind.kind, ""):
        problem = f"no kind {name!r} is registered here, want {kind.kind!r}"
        raise bad_request(f'{name} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')
    if not isinstance(value.get("metadata") or {}, dict):
        raise _unreadable(kind, "json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta")
    try:
        pruned, unknown = prune(kind, value)
    except WrongTypeError as error:
        raise _unreadable(kind, str(error)) from None
    problems = tuple(f'unknown field "{path}"' for path in unknown)
    if problems and validation == "Strict":
        raise _unreadable(kind, f"strict decoding error: {', '.join(problems)}")
    return pruned, problems if validation == "Warn" else ()


def field_validation(query: Mapping[str, str]) -> str:
    """Give the wanted treatment of unknown fields. Raises Refusal."""
    wanted = query.get("fieldValidation", "Warn")
    if wanted not in ("Strict", "Warn", "Ignore", ""):
        problem = f'fieldValidation: Unsupported value: "{wanted}": supported values: "Ignore", "Strict", "Warn"'
        causes = [{"reason": "FieldValueNotSupported", "message": problem, "field": "fieldValidation"}]
        raise Refusal(422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: {problem}', {"causes": causes})
    return wanted or "Warn"


def _unreadable(kind: Kind, problem: str) -> Refusal:
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')


def _read_json(body: bytes) -> Any:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except RecursionError:
        raise bad_request("couldn't get version/kind; json parse error: nested too deeply") from None
    check_depth(value)
    return value


def _read_yaml(body: bytes) -> Any:
    if len(body) > _MAX_YAML_BYTES:
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_YAML_BYTES} for YAML")
    try:
        value = yaml.load(body, _Loader)  # noqa: S506 - it is a safe loader, without aliases
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise bad_request(f"error decoding YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise bad_request("error decoding YAML: nested too deeply") from None
    check_depth(value)
    return value


class _Loader(yaml.SafeLoader):
    """No aliases, which make little text a huge value; no times, which JSON does not have."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken here")
        return super().compose_node(parent, index)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        self._refuse_sixties(node)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        self._refuse_sixties(node)
        return float(super().construct_yaml_float(node))

    def _refuse_sixties(self, node: yaml.ScalarNode) -> None:
        if ":" in str(node.value):  # `1:30`, which is slow to read when it is long, and no number elsewhere
            raise yaml.YAMLError(f"{node.value[:40]!r}: not a number, want quotes around text")


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def check_depth(value: Any) -> None:
    """Refuse what would exhaust the stack of those who walk it; strings as keys only, as JSON has them."""
    level, depth = [value], 0
    while level := [child for parent in level for child in _children(parent)]:
        depth += 1
        if depth > _MAX_DEPTH:
            raise bad_request("couldn't get version/kind; json parse error: nested too deeply")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise bad_request("error decoding YAML: keys must be strings")
        return [child for child in value.values() if isinstance(child, dict | list)]
    return [child for child in value if isinstance(child, dict | list)] if isinstance(value, list) else []
