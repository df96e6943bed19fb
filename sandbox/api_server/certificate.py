"""A certificate authority and a server's certificate, made at start, so that clients have something to check."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED: Final = timedelta(hours=1)  # clocks differ
_VALID: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """Certificates and key of a server, as PEM. `ca` is what clients trust."""

    ca: str
    certificate: str
    key: str


def create_identity(names: Sequence[str], now: datetime | None = None) -> Identity:
    """Make an authority, and with it a certificate for `names` (DNS names and IP addresses)."""
    begin = (now or datetime.now(UTC)) - _BACKDATED
    authority_key, server_key = _create_key(), _create_key()
    subject = _name("sandbox-ca")
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _start(subject, subject, authority_key, begin)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority_key, SHA256())
    )
    server = (
        _start(_name("kube-apiserver"), subject, server_key, begin)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(name) for name in names]), critical=False)
        .sign(authority_key, SHA256())
    )
    key = server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(_render_pem(authority), _render_pem(server), key.decode())


def _create_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _start(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _render_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
