"""Certificates and keys of a federation, without openssl: TLS, and node authentication."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from fedassay.errors import FileInvalid, SettingInvalid

CERTIFICATE_DAYS = 365
_CLOCK_SLACK = timedelta(minutes=10)
_MOST_HOSTS = 100


def make_certificates(folder: Path, hosts: Sequence[str]) -> None:
    """Write a certificate authority, and a server certificate that it signs for these hosts.

    `ca.crt` goes to every site, `server.crt` and `server.key` stay with the SuperLink. The
    authority's key is forgotten, so that nobody can sign another certificate with it.
    """
    if not hosts or len(hosts) > _MOST_HOSTS or not all(hosts):
        raise SettingInvalid(
            f"a certificate is for 1 to {_MOST_HOSTS} host names or addresses; found "
            f"{len(hosts)}. Name the host as sites reach it."
        )
    # The SuperLink listens on loopback, behind its front, and its own processes reach it there.
    named = list(dict.fromkeys([*hosts, "localhost", "127.0.0.1"]))
    authority_key = ec.generate_private_key(ec.SECP384R1())
    server_key = ec.generate_private_key(ec.SECP384R1())
    authority_name = _name("fedassay federation")
    authority = (
        _certificate(authority_name, authority_key.public_key())
        .issuer_name(authority_name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA384())
    )
    server = (
        _certificate(_name(hosts[0][:64]), server_key.public_key())
        .issuer_name(authority_name)
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in named]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA384())
    )
    write_secret(
        folder / "server.key",
        server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    write_public(folder / "server.crt", server.public_bytes(Encoding.PEM))
    write_public(folder / "ca.crt", authority.public_bytes(Encoding.PEM))


def make_node_key(path: Path) -> None:
    """Write a SuperNode's key pair in OpenSSH format: `path`, and `path.pub` to register."""
    key = ec.generate_private_key(ec.SECP384R1())
    write_secret(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_public(path.with_name(f"{path.name}.pub"), public + b"\n")


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner reads; never over another."""
    _write(path, content, 0o600)


def write_public(path: Path, content: bytes) -> None:
    """Write a new file that anybody may read; never over another."""
    _write(path, content, 0o644)


def write_program(path: Path, text: str) -> None:
    """Write a new file that anybody may run; never over another."""
    _write(path, text.encode(), 0o755)


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise FileInvalid(
            f"{path}: this file is there already, and is never written over. Choose another "
            "folder, or move it away."
        ) from error
    except OSError as error:
        raise FileInvalid(
            f"{path}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)


def _certificate(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A site's clock may be behind.
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=CERTIFICATE_DAYS))
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise SettingInvalid(
            "a host is a DNS name or an IP address; found neither. Name the host as sites reach it."
        ) from error


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
