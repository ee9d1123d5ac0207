"""What one core makes through the whole harness with the session on the wire.

Upserts of about 900 bytes, with and without TLS, point queries of 1 KiB, and transactions of 100,
each held against the upserts of plain Locust around azure-data-tables in the same run. All of them
are `locust` commands with ten users that take turns at one server, which only answers. Figures
wanted are those of a machine on which plain Locust makes 800 upserts a second.
"""

from __future__ import annotations

import signal
import statistics
import sys
from pathlib import Path

import trustme

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import CannotMeasure
from benchmarks.parts.turns import by_turns, folder_of_its_own, harness, plain, server

WANTED = {"upserts": 25.0, "upserts over TLS": 12.5, "point queries": 25.0, "transactions": 75.0}
TURNS = 6


def main() -> int:
    """Measure by turns and say the ratios."""
    try:
        with folder_of_its_own() as folder:
            authority, *certificate = certified(folder)
            with server(folder, *certificate) as (answering, (port, tls_port)):
                url, tls_url = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
                reads = ("--set", "mix.upsert_merge=0", "--set", "mix.point_query=1")
                together = ("--set", "mix.upsert_merge=0", "--set", "mix.transaction=1")
                size = ("--set", "transaction.operations=100")
                wire = ("--session", "wire")
                generators = {
                    "plain": plain(port),
                    "upserts": harness(url, folder, *wire),
                    "upserts over TLS": harness(tls_url, folder, *wire),
                    "point queries": harness(url, folder, *wire, *reads),
                    "transactions": harness(url, folder, *wire, *together, *size),
                }
                found = by_turns(
                    answering, port, generators, folder, TURNS, SSL_CERT_FILE=authority
                )
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    theirs = found.pop("plain")
    for name, ours in found.items():
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        print(
            f"wire / plain Locust, {name}: {statistics.median(ratios):.1f} times the entities of "
            f"one core, {WANTED[name]:g} wanted ({TURNS} turns from {min(ratios):.1f} to "
            f"{max(ratios):.1f}; {statistics.median(ours):,.0f} against "
            f"{statistics.median(theirs):,.0f} a CPU second)"
        )
    return 0


def certified(folder: Path) -> tuple[str, str, str]:
    """Files of an authority, of a certificate by it for 127.0.0.1, and of the certificate's key."""
    authority, files = trustme.CA(), [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(files[0]))
    issued.cert_chain_pems[0].write_to_path(str(files[1]))
    issued.private_key_pem.write_to_path(str(files[2]))
    first, second, third = map(str, files)
    return first, second, third


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
