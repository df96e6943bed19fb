"""The parts of a kubeconfig that are looked at before it is loaded, so that what is wrong in it has a clear message."""

from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from dra_driver.errors import SettingError


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _Exec(msgspec.Struct, rename="camel"):
    command: str
    api_version: str


class _User(msgspec.Struct, rename="camel"):
    token_file: str | None = None
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = msgspec.field(default=None, name="auth-provider")


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _Context(msgspec.Struct):
    cluster: str
    user: str = ""


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Content(msgspec.Struct, rename="kebab"):
    current_context: str
    clusters: list[_NamedCluster]
    contexts: list[_NamedContext]
    users: list[_NamedUser] | None = None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig whose current context leads to a cluster. `content` is all of it, for the loader.

    `token_file` and `exec_command` are those of the current user, or empty; `renews` says that its credential comes
    from something that gives a new one when it expires.
    """

    content: dict[str, Any]
    token_file: str
    exec_command: str
    renews: bool


def parse_kubeconfig(text: str, subject: str) -> Kubeconfig:
    """Read a kubeconfig. Raises SettingError that begins with `subject`; texts never quote the content."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise SettingError(f"{subject}: not YAML{where}, want a kubeconfig") from None
    try:
        checked = msgspec.convert(content, _Content)
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `$")
        at = at.strip("`.")
        raise SettingError(f"{subject}: {at + ': ' if at else ''}{problem[:1].lower()}{problem[1:]}") from None
    user = _current_user(checked, subject)
    return Kubeconfig(
        content=content,
        token_file=user.token_file or "",
        exec_command=user.exec.command if user.exec else "",
        renews=user.exec is not None or user.auth_provider is not None,
    )


def _current_user(content: _Content, subject: str) -> _User:
    contexts = {named.name: named.context for named in content.contexts}
    if content.current_context not in contexts:
        known = ", ".join(map(repr, contexts)) or "a context"
        raise SettingError(f"{subject}: current-context: no context {content.current_context!r}, want {known}")
    context = contexts[content.current_context]
    path = f"contexts[{content.current_context}].context"
    if context.cluster not in {named.name for named in content.clusters}:
        raise SettingError(f"{subject}: {path}.cluster: no cluster {context.cluster!r}, want an entry of clusters")
    users = {named.name: named.user for named in content.users or ()}
    if context.user and context.user not in users:
        raise SettingError(f"{subject}: {path}.user: no user {context.user!r}, want an entry of users")
    return users.get(context.user) or _User()
