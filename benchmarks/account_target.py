"""Whether one core of the generator reaches the account's target of 20,000 entities/s.

A spread of transactions of 100 goes through the harness with the session on the wire, from one
process, to a gateway that holds the published limits and stores nothing. The verdict has to be
that the account throttled; "client-limited" would be the generator's own limit.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.parts.serving import PARTS, ROOT, CannotMeasure, environ
from harness.gateway.process import start_gateway
from harness.measure.record.record import RunRecord

_BOUND_S = 120.0


def main() -> int:
    """Run it once and say what came of it."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            limits = ROOT / "limits" / "published.toml"
            with start_gateway(upstream="none", limits=limits) as gateway:
                record = run(gateway.url, Path(folder))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    account, generator, verdict = record.account, record.generator, record.verdict
    print(
        f"served / the account's target: {account.ratio:.2f} (wanted: 1.00; "
        f"{account.entities_per_s.mean:,.0f} entities/s over {record.measured_s} s by one process "
        f"at {generator.cpu_percent_mean:.0f} % of a core); verdict: {verdict.result}, limited by "
        f"the {verdict.limited_by} (wanted: throttled, by the account)"
    )
    return 0


def run(url: str, folder: Path) -> RunRecord:
    """The record of a run against ``url``.

    Raises:
        CannotMeasure: it left none.
    """
    profile = PARTS / "transactions.toml"
    arguments = ["-f", str(ROOT / "locustfile.py"), "--headless", "--profile", str(profile)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "locust", *arguments, "-H", f"{url}/devstoreaccount1"),
            *("--out", str(folder), "--metrics-port", "0"),
        ],
        cwd=folder,
        env=environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_BOUND_S,
        check=False,
    )
    records = list(folder.glob("*/run.json"))
    if len(records) != 1:
        raise CannotMeasure(f"there is no record; the run said: {done.stderr[-500:].strip()}")
    return RunRecord.from_json(records[0].read_bytes())


if __name__ == "__main__":
    sys.exit(main())
