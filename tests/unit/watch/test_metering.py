"""The reports of metering processes come over the pipe as they were."""

from __future__ import annotations

import io

import pytest

from harness.measure.counts.ledger import Ledger
from harness.model.services.service import Server
from harness.watch.metering import MeteringReport, MeteringSettings, settings_of, text_of
from harness.watch.observer import Observer
from tests.unit.watch.test_observer import START_S, busy, end, query, upsert

URLS: dict[Server, str] = {"table": "http://127.0.0.1:1", "queue": "http://127.0.0.1:2"}


def report_of(observer: Observer, *, final: bool) -> MeteringReport:
    return MeteringReport.of(observer, URLS, START_S, final=final)


def test_reports_are_read_as_they_were_written() -> None:
    """Two reports in one stream, merged, have the counts of the process."""
    sender, whole = Observer("gateway-1"), Observer("gateway-1")
    pipe, receiver = io.BytesIO(), Ledger("watch")
    for final in (False, True):
        for observer in (sender, whole):
            for number in range(30):
                key, at_s = f"ü{number % 7}", float(number)
                busy(observer, upsert(f"{number}", key=key, id="a"), at_s=at_s)
                end(observer, upsert(f"{number}", key=key, id="a"), "204", at_s=at_s + 0.5)
            end(observer, query(), "200", at_s=31.0)
            busy(observer, upsert("late", id="b"), at_s=32.0)
        report_of(sender, final=final).write(pipe)
    pipe.seek(0)
    first, last = MeteringReport.read(pipe), MeteringReport.read(pipe)
    assert first is not None
    assert last is not None
    assert MeteringReport.read(pipe) is None
    assert (first.final, last.final) == (False, True)
    assert (first.in_flight, first.attempts_in_flight) == (1, 1)
    for report in (first, last):
        assert report.urls == URLS
        assert report.counted.tally.succeeded_after == {2: 30}
        receiver.merge(report.counted.delta)
    merged, expected = (
        receiver.snapshot(start=0, end=0),
        whole.books.ledger.snapshot(start=0, end=0),
    )
    assert merged.counts == expected.counts
    assert merged.outcomes == expected.outcomes
    assert [part.attempts_by_status for part in merged.partitions] == [
        part.attempts_by_status for part in expected.partitions
    ]


def test_a_broken_stream_is_its_end() -> None:
    """A process that was killed in the middle of a report has sent no report."""
    pipe = io.BytesIO()
    report_of(Observer("gateway-1"), final=False).write(pipe)
    content = pipe.getvalue()
    for length in (0, 2, 4, len(content) - 1):
        assert MeteringReport.read(io.BytesIO(content[:length])) is None


@pytest.mark.parametrize("path", ["/a b/ü.toml", "/of \udcff bytes.toml"])
def test_settings_are_read_as_they_were_written(path: str) -> None:
    """The settings of a process pass its command line, also with a path that is no UTF-8."""
    settings = MeteringSettings(
        name="gateway-1",
        upstream="http://127.0.0.1:1",
        listen="[::1]:0",
        limits=path,
        properties=("customer", "region"),
        beside=(("queue", "http://127.0.0.1:2", "[::1]:0"),),
    )
    assert settings_of(text_of(settings)) == settings
