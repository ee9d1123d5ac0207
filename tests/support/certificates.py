"""Files of certificates, and of the authority that issued them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import trustme


class CertificateFiles(NamedTuple):
    authority: Path
    cert: Path
    key: Path


def certificate(folder: Path, *names: str, authority: trustme.CA | None = None) -> CertificateFiles:
    """A certificate for these hosts, or for 127.0.0.1, of an ``authority`` or of a new one."""
    authority = authority or trustme.CA()
    issued = authority.issue_cert(*(names or ("127.0.0.1",)))
    files = CertificateFiles(*(folder / f"{name}.pem" for name in CertificateFiles._fields))
    authority.cert_pem.write_to_path(files.authority)
    issued.cert_chain_pems[0].write_to_path(files.cert)
    issued.private_key_pem.write_to_path(files.key)
    return files
