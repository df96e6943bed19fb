"""A certificate authority and a server's certificate, made in pure Python, so that a sandbox needs no openssl.

ECDSA on P-256 with SHA-256 (FIPS 186-5), X.509 v3 (RFC 5280), keys as PKCS #8 (RFC 5958). The keys are for one server
on the loopback for as long as it runs: that signing takes a time which depends on the key does not matter there.
"""

import base64
import hashlib
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_PRIME: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE: Final = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_SIZE: Final = 32

_EC_PUBLIC_KEY: Final = "1.2.840.10045.2.1"
_P256: Final = "1.2.840.10045.3.1.7"
_ECDSA_SHA256: Final = "1.2.840.10045.4.3.2"
_COMMON_NAME: Final = "2.5.4.3"
_SUBJECT_KEY_ID: Final = "2.5.29.14"
_KEY_USAGE: Final = "2.5.29.15"
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_BASIC_CONSTRAINTS: Final = "2.5.29.19"
_AUTHORITY_KEY_ID: Final = "2.5.29.35"
_EXTENDED_KEY_USAGE: Final = "2.5.29.37"
_SERVER_AUTH: Final = "1.3.6.1.5.5.7.3.1"

_BACKDATED: Final = timedelta(hours=1)  # clocks differ
_VALID: Final = timedelta(days=365)

_Point = tuple[int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """Certificates and key of a server, as PEM. `ca` is what clients trust."""

    ca: str
    certificate: str
    key: str


def create_identity(names: Sequence[str], now: datetime | None = None) -> Identity:
    """Make an authority, and with it a certificate for `names` (DNS names and IP addresses). Needs 20 ms."""
    begin = (now or datetime.now(UTC)) - _BACKDATED
    authority, server = _Key(), _Key()
    ca = _certificate("sandbox-ca", authority, "sandbox-ca", authority, begin, _authority_extensions(authority))
    extensions = _server_extensions(server, authority, names)
    certificate = _certificate("kube-apiserver", server, "sandbox-ca", authority, begin, extensions)
    return Identity(_pem("CERTIFICATE", ca), _pem("CERTIFICATE", certificate), _pem("PRIVATE KEY", server.pkcs8()))


class _Key:
    """A private key, and what follows from it."""

    def __init__(self) -> None:
        self._secret = secrets.randbelow(_ORDER - 1) + 1
        x, y = _multiply(self._secret, _BASE)
        self.public = b"\x04" + x.to_bytes(_SIZE, "big") + y.to_bytes(_SIZE, "big")
        self.identifier = hashlib.sha256(self.public).digest()[:20]

    def sign(self, message: bytes) -> bytes:
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        while True:
            once = secrets.randbelow(_ORDER - 1) + 1
            r = _multiply(once, _BASE)[0] % _ORDER
            s = pow(once, -1, _ORDER) * (digest + r * self._secret) % _ORDER
            if r and s:
                return _sequence(_integer(r), _integer(s))

    def public_info(self) -> bytes:
        return _sequence(_algorithm(), _bits(self.public))

    def pkcs8(self) -> bytes:
        secret = self._secret.to_bytes(_SIZE, "big")
        inner = _sequence(_integer(1), _octets(secret), _tagged(1, _bits(self.public)))
        return _sequence(_integer(0), _algorithm(), _octets(inner))


def _multiply(factor: int, point: _Point) -> _Point:
    result: _Point | None = None
    while factor:
        if factor & 1:
            result = point if result is None else _add(result, point)
        point = _add(point, point)
        factor >>= 1
    assert result is not None  # noqa: S101 - factors are from 1 to the order
    return result


def _add(one: _Point, other: _Point) -> _Point:
    """Add points whose sum is not the point at infinity: factors below the order never meet it."""
    if one == other:
        slope = 3 * (one[0] * one[0] - 1) * pow(2 * one[1], -1, _PRIME)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, _PRIME)
    x = (slope * slope - one[0] - other[0]) % _PRIME
    return x, (slope * (one[0] - x) - one[1]) % _PRIME


def _certificate(  # noqa: PLR0913, PLR0917 - the parts of a certificate
    subject: str, key: _Key, issuer: str, issuer_key: _Key, begin: datetime, extensions: bytes
) -> bytes:
    signature_algorithm = _sequence(_object(_ECDSA_SHA256))
    to_be_signed = _sequence(
        _tagged(0, _integer(2)),
        _integer(secrets.randbits(127) | 1 << 126),
        signature_algorithm,
        _name(issuer),
        _sequence(_time(begin), _time(begin + _VALID)),
        _name(subject),
        key.public_info(),
        _tagged(3, extensions),
    )
    return _sequence(to_be_signed, signature_algorithm, _bits(issuer_key.sign(to_be_signed)))


def _authority_extensions(key: _Key) -> bytes:
    return _sequence(
        _extension(_BASIC_CONSTRAINTS, _sequence(_der(0x01, b"\xff")), critical=True),
        _extension(_KEY_USAGE, _der(0x03, b"\x01\x06"), critical=True),  # keyCertSign, cRLSign
        _extension(_SUBJECT_KEY_ID, _octets(key.identifier)),
    )


def _server_extensions(key: _Key, authority: _Key, names: Sequence[str]) -> bytes:
    return _sequence(
        _extension(_BASIC_CONSTRAINTS, _sequence(), critical=True),
        _extension(_KEY_USAGE, _der(0x03, b"\x07\x80"), critical=True),  # digitalSignature
        _extension(_EXTENDED_KEY_USAGE, _sequence(_object(_SERVER_AUTH))),
        _extension(_SUBJECT_KEY_ID, _octets(key.identifier)),
        _extension(_AUTHORITY_KEY_ID, _sequence(_der(0x80, authority.identifier))),
        _extension(_ALTERNATIVE_NAMES, _sequence(*map(_alternative_name, names))),
    )


def _alternative_name(name: str) -> bytes:
    try:
        return _der(0x87, ipaddress.ip_address(name).packed)
    except ValueError:
        return _der(0x82, name.encode("ascii"))


def _extension(identifier: str, value: bytes, *, critical: bool = False) -> bytes:
    return _sequence(_object(identifier), _der(0x01, b"\xff") if critical else b"", _octets(value))


def _name(common_name: str) -> bytes:
    return _sequence(_der(0x31, _sequence(_object(_COMMON_NAME), _der(0x0C, common_name.encode()))))


def _algorithm() -> bytes:
    return _sequence(_object(_EC_PUBLIC_KEY), _object(_P256))


def _time(moment: datetime) -> bytes:
    return _der(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def _der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:  # noqa: PLR2004 - the short form of DER
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _octets(content: bytes) -> bytes:
    return _der(0x04, content)


def _bits(content: bytes) -> bytes:
    return _der(0x03, b"\x00" + content)


def _tagged(number: int, content: bytes) -> bytes:
    return _der(0xA0 | number, content)


def _object(identifier: str) -> bytes:
    first, second, *rest = map(int, identifier.split("."))
    content = bytes((first * 40 + second,))
    for number in rest:
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.append(number & 0x7F | 0x80)
        content += bytes(reversed(septets))
    return _der(0x06, content)


def _pem(what: str, content: bytes) -> str:
    text = base64.encodebytes(content).decode().replace("\n", "")
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {what}-----\n{lines}\n-----END {what}-----\n"
