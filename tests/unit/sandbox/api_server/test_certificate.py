import ssl
from datetime import UTC, datetime
from pathlib import Path

from sandbox.api_server.certificate import create_identity

NAMES = ("127.0.0.1", "::1", "localhost")


def connect(identity_folder: Path, ca: str, name: str) -> None:
    """Shake hands in memory."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity_folder / "crt", identity_folder / "key")
    client = ssl.create_default_context(cadata=ca)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ours.version() == "TLSv1.3"
    assert theirs.cipher()


def test_clients_that_are_strict_trust_the_certificate_for_each_name(tmp_path: Path) -> None:
    identity = create_identity(NAMES)
    (tmp_path / "crt").write_text(identity.certificate)
    (tmp_path / "key").write_text(identity.key)
    for name in NAMES:
        connect(tmp_path, identity.ca, name)


def test_two_authorities_are_never_the_same() -> None:
    assert create_identity(NAMES).ca != create_identity(NAMES).ca


def test_it_is_valid_from_a_little_before_now(tmp_path: Path) -> None:
    identity = create_identity(NAMES, datetime(2026, 1, 1, 12, tzinfo=UTC))
    (tmp_path / "crt").write_text(identity.certificate)
    context = ssl.create_default_context(cafile=str(tmp_path / "crt"))
    context.load_verify_locations(cadata=identity.ca)
    (found,) = context.get_ca_certs()
    assert found["notBefore"] == "Jan  1 11:00:00 2026 GMT"
