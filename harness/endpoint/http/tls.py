"""Whose certificates are trusted: the authorities the environment names, else the machine's.

`SSL_CERT_FILE` is what OpenSSL reads, `REQUESTS_CA_BUNDLE` what `requests` reads. Both are
honoured, and where one of them is set nothing else is trusted.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from harness.model.errors import SetupError

CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def trust_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """A context that checks certificate and host name.

    Args:
        environ: The environment. A variable may name a file of certificates or a folder.

    Raises:
        SetupError: a variable names something that holds no certificates.
    """
    named = {name: value for name in CA_VARIABLES if (value := environ.get(name, "").strip())}
    if not named:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, value in named.items():
        try:
            if Path(value).is_dir():
                context.load_verify_locations(capath=value)
            else:
                context.load_verify_locations(cafile=value)
        except (OSError, ssl.SSLError) as error:
            raise SetupError(
                f"{name} names {value}, which holds no certificates: {error}"
            ) from None
    return context
