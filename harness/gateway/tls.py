"""Certificates of the gateway: from files, or issued by an authority created at startup.

SDKs send bearer tokens over https only. The private key of the authority is never written, so that
nobody can sign with it later.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.model.errors import SetupError

_LASTS = dt.timedelta(days=30)
# Clocks of clients may be behind.
_BEFORE = dt.timedelta(days=1)


def given_certificate(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return the context of a certificate in files.

    Args:
        certificate: The certificate, with its chain, in PEM.
        key: The private key in PEM; None if ``certificate`` holds it.

    Raises:
        SetupError: the files cannot be read, or do not belong together.
    """
    for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
        if path is not None and not path.is_file():
            raise SetupError(f"{option} {path}: no such file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A password is never asked for: the process may have no terminal.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError) as error:
        raise SetupError(
            f"--tls-cert {certificate}: the certificate and its key cannot be used: "
            f"{error.strerror or error}"
        ) from error
    return context


def made_certificate(folder: Path, host: str) -> tuple[ssl.SSLContext, Path]:
    """Make an authority and a certificate for the names of this machine.

    Args:
        folder: A private folder; the authority's certificate and the server's files go there.
        host: Name or address that the gateway listens on.

    Returns:
        The context, and the file with the authority's certificate, which clients have to trust.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("Authority of a table gateway")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server_key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    server = (
        _builder(_name("Table gateway"), authority_name, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authority_file, server_file = folder / "authority.pem", folder / "server.pem"
    authority_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    key_bytes = server_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    server_file.touch(mode=0o600)
    server_file.write_bytes(key_bytes + server.public_bytes(serialization.Encoding.PEM))
    return given_certificate(server_file, None), authority_file


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _LASTS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _names(host: str) -> list[x509.GeneralName]:
    """The names of this machine, among them those of the production form for any account."""
    texts = ["localhost", "*.table.localhost", "127.0.0.1", "::1", socket.gethostname(), host]
    names: list[x509.GeneralName] = []
    for text in dict.fromkeys(texts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(text)))
        except ValueError:
            if text.isascii():
                names.append(x509.DNSName(text))
    return names
