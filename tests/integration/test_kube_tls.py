"""TLS against a server with a certificate of its own authority, which the `openssl` program makes where it exists."""

import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.errors import ApiUnavailableError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import NODES
from tests.support.api_server import TestApiServer

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="makes certificates with the openssl program, which is missing")

Issue = Callable[[str], tuple[ssl.SSLContext, Path]]


@pytest.fixture
def issue(tmp_path: Path) -> Issue:
    """Make a server's TLS context and the authority that a client trusts; the argument is the server's name."""

    def run(*arguments: str | Path) -> None:
        subprocess.run((str(OPENSSL), *arguments), check=True, capture_output=True, timeout=30)

    def make(name: str) -> tuple[ssl.SSLContext, Path]:
        key, cert = tmp_path / "tls.key", tmp_path / "tls.crt"
        new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        extensions = ("-addext", f"subjectAltName={name}", "-addext", "keyUsage=digitalSignature,keyCertSign")
        run(*new, "-keyout", key, "-out", cert, "-subj", "/CN=test", *extensions)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(cert, key)
        return context, cert

    return make


async def test_a_server_of_the_trusted_authority_is_spoken_to(tmp_path: Path, issue: Issue) -> None:
    context, ca = issue("IP:127.0.0.1")
    async with TestApiServer(tls=context) as server:
        kubeconfig = server.kubeconfig(tmp_path / "k", ca=ca)
        async with ApiClient(await Credential.load(kubeconfig)) as client:
            assert (await client.list(NODES)).items == ()


async def test_a_server_of_another_authority_is_not(tmp_path: Path, issue: Issue) -> None:
    context, _ = issue("IP:127.0.0.1")
    async with TestApiServer(tls=context) as server:
        async with ApiClient(await Credential.load(server.kubeconfig(tmp_path / "k", token="s3cret"))) as client:
            with pytest.raises(ApiUnavailableError, match="certificate verify failed"):
                await client.list(NODES)
        assert server.requests == []


async def test_the_server_name_of_the_kubeconfig_is_the_one_that_is_checked(tmp_path: Path, issue: Issue) -> None:
    context, ca = issue("DNS:api.example")
    async with TestApiServer(tls=context) as server:
        named = server.kubeconfig(tmp_path / "k", ca=ca, **{"tls-server-name": "api.example"})
        async with ApiClient(await Credential.load(named)) as client:
            await client.list(NODES)
        unnamed = server.kubeconfig(tmp_path / "k", ca=ca)
        async with ApiClient(await Credential.load(unnamed)) as client:
            with pytest.raises(ApiUnavailableError, match="certificate"):
                await client.list(NODES)
