import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dra_driver.errors import SettingError
from dra_driver.kube.credential import Credential

ENVIRON = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}


async def load(kubeconfig: Path | None = None, **options: Any) -> Credential:
    """Load a credential that looks at its files before every request."""
    return await Credential.load(kubeconfig, look_every_s=0.0, **options)


def a_service_account(folder: Path, token: str = "first\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_text("a certificate")
    return folder


def a_kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content))
    return path


def a_plugin(folder: Path, expiry: str = "") -> dict[str, Any]:
    """Write an exec plugin that gives `token-1`, then `token-2`, and so on."""
    script, counter = folder / "plugin.py", folder / "counter"
    status = {"token": "TOKEN"} | ({"expirationTimestamp": expiry} if expiry else {})
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script.write_text(
        f"import pathlib\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        f"number = int(counter.read_text()) + 1 if counter.exists() else 1\n"
        f"counter.write_text(str(number))\n"
        f"print({json.dumps(answer)!r}.replace('TOKEN', f'token-{{number}}'))\n"
    )
    command = {"apiVersion": answer["apiVersion"], "command": sys.executable, "args": [str(script)]}
    return {"exec": command}


async def test_in_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    credential = await load(environ=ENVIRON, service_account=a_service_account(tmp_path))
    assert credential.configuration.host == "https://[fd00::1]:6443"
    assert credential.configuration.ssl_ca_cert == str(tmp_path / "ca.crt")
    assert (await credential.authorization()).lower() == "bearer first"


async def test_a_token_that_the_kubelet_rotates_is_read_again(tmp_path: Path) -> None:
    old, new = a_service_account(tmp_path / "1"), a_service_account(tmp_path / "2", "second")
    link, next_link = tmp_path / "data", tmp_path / "next"
    link.symlink_to(old)
    credential = await load(environ=ENVIRON, service_account=link)
    assert (await credential.authorization()).lower() == "bearer first"
    next_link.symlink_to(new)
    next_link.rename(link)
    assert (await credential.authorization()).lower() == "bearer second"


async def test_files_are_looked_at_once_a_second(tmp_path: Path) -> None:
    now = [0.0]
    folder = a_service_account(tmp_path)
    credential = await Credential.load(environ=ENVIRON, service_account=folder, monotonic=lambda: now[0])
    (folder / "token").write_text("second")
    now[0] = 0.9
    assert (await credential.authorization()).lower() == "bearer first"
    now[0] = 1.0
    assert (await credential.authorization()).lower() == "bearer second"


async def test_a_token_that_is_gone_for_a_moment_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    folder = a_service_account(tmp_path)
    credential = await load(environ=ENVIRON, service_account=folder)
    (folder / "token").unlink()
    assert (await credential.authorization()).lower() == "bearer first"
    (folder / "token").write_text("second")
    assert (await credential.authorization()).lower() == "bearer second"


async def test_a_new_authority_means_new_connections_and_a_new_token_does_not(tmp_path: Path) -> None:
    folder = a_service_account(tmp_path)
    credential = await load(environ=ENVIRON, service_account=folder)
    before = credential.transport_key
    (folder / "token").write_text("second token")
    await credential.authorization()
    assert credential.transport_key == before
    (folder / "ca.crt").write_text("another certificate")
    await credential.authorization()
    assert credential.transport_key != before


async def test_a_token_file_of_a_kubeconfig_is_relative_to_it_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("one")
    credential = await load(a_kubeconfig(tmp_path / "k", {"tokenFile": "t"}))
    assert await credential.authorization() == "Bearer one"
    (tmp_path / "t").write_text("another")
    assert await credential.authorization() == "Bearer another"


async def test_a_kubeconfig_that_is_written_anew_is_read_again(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path / "k", {"token": "one"})
    credential = await load(path)
    before = credential.transport_key
    a_kubeconfig(path, {"token": "two"}, **{"tls-server-name": "api.example", "proxy-url": "http://proxy:3128"})
    assert await credential.authorization() == "Bearer two"
    assert credential.configuration.tls_server_name == "api.example"
    assert credential.configuration.proxy == "http://proxy:3128"
    assert credential.transport_key != before


async def test_a_kubeconfig_that_is_half_written_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path / "k", {"token": "one"})
    credential = await load(path)
    path.write_text('{"clusters": [')
    assert await credential.authorization() == "Bearer one"


async def test_a_plugin_is_asked_again_only_after_a_refusal(tmp_path: Path) -> None:
    credential = await load(a_kubeconfig(tmp_path / "k", a_plugin(tmp_path)))
    assert await credential.authorization() == "Bearer token-1"
    assert await credential.authorization() == "Bearer token-1"
    await credential.reload("Bearer token-1")
    assert await credential.authorization() == "Bearer token-2"


async def test_several_refusals_of_one_token_reload_once(tmp_path: Path) -> None:
    credential = await load(a_kubeconfig(tmp_path / "k", a_plugin(tmp_path)))
    await asyncio.gather(*(credential.reload("Bearer token-1") for _ in range(5)))
    assert await credential.authorization() == "Bearer token-2"


async def test_a_plugin_whose_token_expires_is_asked_in_time(tmp_path: Path) -> None:
    now = [0.0]
    kubeconfig = a_kubeconfig(tmp_path / "k", a_plugin(tmp_path, expiry="2020-01-01T00:00:00Z"))
    credential = await load(kubeconfig, monotonic=lambda: now[0])
    assert await credential.authorization() == "Bearer token-1"
    now[0] = 61.0
    assert await credential.authorization() == "Bearer token-2"


async def test_a_user_without_credential_is_anonymous(tmp_path: Path) -> None:
    assert await (await load(a_kubeconfig(tmp_path / "k", {}))).authorization() == ""


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
async def test_outside_of_a_pod_the_message_says_what_to_set(tmp_path: Path, missing: str) -> None:
    with pytest.raises(SettingError) as caught:
        await load(environ=ENVIRON | {missing: ""}, service_account=a_service_account(tmp_path))
    assert str(caught.value) == f"in-cluster credential: {missing} not set, want a Pod, or --kubeconfig outside of one"


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("missing", [True, False])
async def test_a_missing_or_empty_file_of_the_service_account_is_named(
    tmp_path: Path, name: str, *, missing: bool
) -> None:
    folder = a_service_account(tmp_path)
    (folder / name).write_text("")
    if missing:
        (folder / name).unlink()
    with pytest.raises(SettingError, match=rf"{tmp_path}/{name}'"):
        await load(environ=ENVIRON, service_account=folder)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no such file, want a kubeconfig"),
        ("a: [", "not YAML"),
        ("{}", "object missing required field"),
        ("\x00", "not YAML"),
    ],
)
async def test_an_unusable_kubeconfig_is_named(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingError) as caught:
        await load(path)
    assert str(caught.value).startswith(f"kubeconfig '{path}': {problem}")


async def test_a_folder_in_place_of_a_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=f"kubeconfig '{tmp_path}': is a directory, want"):
        await load(tmp_path)


async def test_a_certificate_file_that_is_missing_is_named(tmp_path: Path) -> None:
    kubeconfig = a_kubeconfig(tmp_path / "k", {}, **{"certificate-authority": "gone.crt"})
    with pytest.raises(SettingError, match=f"{tmp_path}/gone.crt"):
        await load(kubeconfig)


async def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    with pytest.raises(SettingError, match="plugin '/bin/false' gave no token and no certificate"):
        await load(a_kubeconfig(tmp_path / "k", user))


async def test_a_token_that_no_header_carries_is_refused_and_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        await load(a_kubeconfig(tmp_path / "k", {"token": "s3c\nret"}))
    assert "s3c" not in str(caught.value)
    assert "token has characters" in str(caught.value)
