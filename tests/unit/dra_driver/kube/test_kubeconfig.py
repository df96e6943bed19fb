from typing import Any

import pytest
import yaml

from dra_driver.errors import SettingError
from dra_driver.kube.kubeconfig import parse_kubeconfig


def a_kubeconfig(**changes: Any) -> str:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return yaml.safe_dump(content | changes)


def test_the_current_user_is_found() -> None:
    parsed = parse_kubeconfig(a_kubeconfig(users=[{"name": "u", "user": {"tokenFile": "t"}}]), "kubeconfig 'k'")
    assert (parsed.token_file, parsed.exec_command, parsed.renews) == ("t", "", False)


@pytest.mark.parametrize(
    "user", [{"exec": {"command": "login", "apiVersion": "v1"}}, {"auth-provider": {"name": "oidc"}}]
)
def test_a_user_with_a_plugin_or_provider_renews(user: dict[str, Any]) -> None:
    assert parse_kubeconfig(a_kubeconfig(users=[{"name": "u", "user": user}]), "k").renews


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "k: not YAML (line 1, column 5), want a kubeconfig"),
        ("", "k: expected `object`, got `null`"),
        ("[]", "k: expected `object`, got `array`"),
        ("{}", "k: object missing required field `current-context`"),
        (
            a_kubeconfig(clusters=[{"name": "c", "cluster": {}}]),
            "k: clusters[0].cluster: object missing required field",
        ),
        (a_kubeconfig(**{"current-context": "y"}), "k: current-context: no context 'y', want 'x'"),
        (a_kubeconfig(clusters=[]), "k: contexts[x].context.cluster: no cluster 'c', want an entry of clusters"),
        (a_kubeconfig(users=None), "k: contexts[x].context.user: no user 'u', want an entry of users"),
    ],
)
def test_what_is_wrong_is_named(text: str, expected: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_kubeconfig(text, "k")
    assert str(caught.value).startswith(expected)


def test_no_text_quotes_the_token() -> None:
    with pytest.raises(SettingError) as caught:
        parse_kubeconfig(a_kubeconfig(users=[{"name": "u", "user": "s3cret"}]), "k")
    assert "s3cret" not in str(caught.value)
