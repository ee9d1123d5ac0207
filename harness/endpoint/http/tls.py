"""Trusted certificate authorities: those that the environment names, else the machine's."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from harness.model.errors import SetupError

CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""The variables of OpenSSL and ``requests``. Where one is set, no other authority is trusted."""


def trust_context(environ: Mapping[str, str], library: ModuleType = ssl) -> ssl.SSLContext:
    """A context of ``library`` (``ssl`` or ``gevent.ssl``) that checks certificate and host name.

    A variable of ``environ`` may name a file or a folder of certificates; a `SetupError` says that
    they cannot be loaded.
    """
    named = {name: value for name in CA_VARIABLES if (value := environ.get(name, "").strip())}
    context: ssl.SSLContext
    if not named:
        context = library.create_default_context()
        return context
    context = library.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, value in named.items():
        try:
            if Path(value).is_dir():
                context.load_verify_locations(capath=value)
            else:
                context.load_verify_locations(cafile=value)
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"{name}={value} holds no certificates: {error}") from None
    return context
