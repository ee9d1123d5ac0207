"""Certificates of the gateway: from files, or issued by an authority created at startup.

SDKs send bearer tokens over https only. The private key of the authority is never written, so that
nobody can sign with it later.
"""

from __future__ import annotations

import datetime as dt
import re
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import trustme

from harness.model.errors import SetupError

_LASTS = dt.timedelta(days=30)
# Clocks of clients may be behind.
_BEFORE = dt.timedelta(days=1)
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = re.compile(rf"[0-9A-Fa-f.:]+|(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
"""An address or a name of DNS; a machine may have another name, which no certificate can hold."""


def given_certificate(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return the context of a certificate with its chain, and its private key, in PEM files.

    Without ``key`` the first file holds both. A `SetupError` says that they cannot be used.
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


def made_certificate(
    folder: Path, host: str, more: Sequence[str] = ()
) -> tuple[ssl.SSLContext, Path]:
    """Make an authority and a certificate for the names of this machine, ``host`` and ``more``.

    The files go into ``folder``, which has to be private. A name may begin with ``*.``. Returns the
    context, and the file with the authority's certificate, which clients have to trust.
    """
    authority = trustme.CA(path_length=0, organization_name="Authority of a table gateway")
    # Among them are those of the production form for any account.
    names = ["localhost", "*.table.localhost", "127.0.0.1", "::1", socket.gethostname()]
    now = dt.datetime.now(dt.UTC)
    server = authority.issue_cert(
        *filter(_NAME.fullmatch, dict.fromkeys([*names, host, *more])),
        organization_name="Table gateway",
        not_before=now - _BEFORE,
        not_after=now + _LASTS,
    )
    authority_file, server_file = folder / "authority.pem", folder / "server.pem"
    authority.cert_pem.write_to_path(authority_file)
    server_file.touch(mode=0o600)
    server.private_key_and_cert_chain_pem.write_to_path(server_file)
    return given_certificate(server_file, None), authority_file
