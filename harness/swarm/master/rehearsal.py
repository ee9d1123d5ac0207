"""Compares the counts of the gateway with the record of a run.

The gateway counts its responses, the harness the responses that it received. The record does not
count loading, so the gateway's counts are read when the load begins and when it is over.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from harness.endpoint.accounts import Accounts
from harness.endpoint.endpoint import as_kind
from harness.endpoint.http.pool import trust_context
from harness.gateway.addresses import NO_UPSTREAM, on_this_machine
from harness.gateway.limits import GatewayLimits
from harness.gateway.process import FoundGateway, GatewayProcess, gateway_at
from harness.measure.record.enforced import EnforcedPart, moves_of, refusals_of
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.model.figures import counted, number
from harness.model.operation import FOLDED, WHOLE_TABLE
from harness.model.partition import is_beside
from harness.model.request_units import HUNDREDTHS, RU
from harness.model.services.service import Service
from harness.profile.profile_loader import NamedProfile
from harness.report.answers import attempts_words
from harness.swarm.master.master_run import MasterRun

NO_ANSWER = "no whole answer"
_SHOWN = 24
_MOST_SPLITS = 5

Counts = collections.Counter[tuple[str, str]]
"""Number of requests by partition and status; or hundredths of request units, without a status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What the gateway's page says.

    Attributes:
        charged: Request units of answers that were sent.
        lost: Those of answers that were not sent whole, which no client can know.
        exact: Partitions whose row has all of their requests.
        moves: The latest moves, as ``splits`` are of physical partitions.
        refusals: Requests that a limit refused, by its rule.
        others: The rows of tables that are not the run's, by table and key.
    """

    counts: Counts = dataclasses.field(default_factory=Counts)
    charged: Counts = dataclasses.field(default_factory=Counts)
    lost: int = 0
    exact: frozenset[str] = frozenset()
    moves: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    refusals: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    splits: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    others: dict[tuple[str, str | None], list[Any]] = dataclasses.field(default_factory=dict)


class Rehearsal:
    """One run through a gateway; ``name`` returns a partition's name in the record."""

    def __init__(
        self,
        gateway: GatewayProcess | FoundGateway,
        service: Service,
        table: str,
        suffixes: Iterable[str],
        name: Callable[[str], str],
    ) -> None:
        self._gateway, self._service = gateway, service
        self._name = name
        self._suffixes = {table + suffix: suffix for suffix in suffixes}
        self._before, self._after = _Counted(), _Counted()
        self._began_s = 0.0
        self._problem = ""

    def begin(self, now_s: float) -> None:
        self._before = self._read()
        self._began_s = now_s

    def end(self) -> None:
        self._after = self._read()

    def follow(self) -> None:
        """Read the counts so far; the earlier ones stay if the gateway does not answer."""
        with contextlib.suppress(SetupError):
            self._after = self._page()

    def enforced(self) -> EnforcedPart | None:
        """The limits that the run is held to, and the moves up to its end.

        None before a stand-in for Cosmos DB: what is provisioned there is a setting of the profile.
        """
        if self._gateway.limits.units is not None:
            return None
        # Those before the load are of loading.
        return self._enforced(self._after.moves, self._after.refusals - self._before.refusals)

    def _enforced(
        self, moves: Iterable[Mapping[str, Any]], refusals: Mapping[str, int]
    ) -> EnforcedPart:
        return EnforcedPart(
            **self._gateway.limits.rates(self._service),
            moves=moves_of(moves, self._began_s, self._named),
            refusals=dict(refusals),
        )

    def text(self, record: RunRecord, *, full: bool) -> str:
        """Whether both counts are equal; ``full`` also shows them, by partition and status."""
        described = record.endpoint.described
        if self._problem:
            return f"{described}: the counts of the gateway cannot be read: {self._problem}"
        # Above `EXACT_PARTITIONS`, gateway and record have rows for different ones, and some begin
        # late: only partitions that both have counted from the start are compared one by one.
        kept = self._after.exact & {part.key for part in record.partitions if part.exact}
        recorded = _folded(recorded_counts(record), kept)
        counted_there = _folded(self._after.counts, kept) - _folded(self._before.counts, kept)
        rows = sorted(counted_there.keys() | recorded.keys())
        wrong = sum(abs(counted_there[row] - recorded[row]) for row in rows)
        lines = [f"{described}: counts of the gateway and of the record"]
        if full or wrong:
            lines.append(f"  {'partition':24} {'answer':16} {'gateway':>12} {'record':>12}")
            lines += [
                f"  {row[0][:24]:24} {row[1]:16} {counted_there[row]:12,} {recorded[row]:12,}"
                for row in rows[:_SHOWN]
            ]
            if len(rows) > _SHOWN:
                lines.append(f"  and {counted(len(rows) - _SHOWN, 'row')} more")
            lines.append(f"  {'all':41} {counted_there.total():12,} {recorded.total():12,}")
        lines.append(
            "  all counts are equal" if not wrong else f"  {counted(wrong, 'request')} apart"
        )
        lines += self._charged_lines(record, kept)
        lines += self._split_lines()
        counts = record.counts
        if full and counts.operations:
            lines.append(f"  {attempts_words(record)[0]}")
        return "\n".join(lines)

    def _charged_lines(self, record: RunRecord, kept: Container[str]) -> list[str]:
        """Both sums of request units, where the service charges them."""
        if record.request_units is None:
            return []
        recorded = _folded(recorded_charges(record), kept)
        there = _folded(self._after.charged, kept)
        there.subtract(_folded(self._before.charged, kept))
        lost = self._after.lost - self._before.lost
        apart = sum(recorded[key] != there[key] for key in recorded.keys() | there.keys())
        return [
            f"  {'request units':41} {there.total() / RU:12,.2f} {recorded.total() / RU:12,.2f}",
            *([f"  {'request units of lost answers':41} {lost / RU:12,.2f}"] if lost else []),
            "  request units of each partition are equal"
            if not apart
            else f"  request units of {counted(apart, 'partition')} differ",
        ]

    def _split_lines(self) -> list[str]:
        """The splits of physical partitions since the load began."""
        units = self._gateway.limits.units
        if units is None:
            return []
        splits = [split for split in self._after.splits if split["at_s"] > self._began_s]
        if not splits:
            return []
        lines = [
            f"  physical partition {split['number']} was split "
            f"{split['at_s'] - self._began_s:.0f} s after the load began"
            for split in splits[:_MOST_SPLITS]
        ]
        if len(splits) > _MOST_SPLITS:
            lines.append(f"  and {counted(len(splits) - _MOST_SPLITS, 'split')} more")
        count = splits[-1]["count"]
        share = min(units.provisioned_ru_per_s / count, units.partition_ru_per_s)
        lines.append(f"  {counted(count, 'physical partition')} with {number(share)} RU/s each now")
        return lines

    def _read(self) -> _Counted:
        try:
            return self._page()
        except SetupError as error:
            self._problem = str(error)
            return _Counted()

    def _page(self) -> _Counted:
        try:
            found = self._counted(json.loads(self._gateway.counters()))
            # So that an invalid page is found here.
            self._enforced(found.moves, found.refusals)
            self._leave_out_folded(found)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise SetupError(f"its page is invalid ({type(error).__name__})") from error
        return found

    def _counted(self, page: Mapping[str, Any]) -> _Counted:
        counts, charged, lost, exact = Counts(), Counts(), 0, set()
        rows, others = [], collections.defaultdict(list)
        for row in page["counts"]:
            table, key = row["table"], row["partition"]
            if not self._counts(table, key):
                others[table, key].append(row)
                continue
            rows.append(row)
            if table:
                key = self._named(table, WHOLE_TABLE if key is None else key)
            status = _status(row["sent"])
            counts[key, status] += row["requests"]
            if status == NO_ANSWER:
                lost += row.get(HUNDREDTHS, 0)
            else:
                charged[key, ""] += row.get(HUNDREDTHS, 0)
            if row["exact"]:
                exact.add(key)
        return _Counted(
            counts=counts,
            charged=charged,
            lost=lost,
            exact=frozenset(exact),
            moves=[
                move for move in page["moves"] if self._counts(move["table"], move["partition_key"])
            ],
            refusals=refusals_of(rows),
            splits=page.get("splits", []),
            others=others,
        )

    def _leave_out_folded(self, found: _Counted) -> None:
        """Leave out the rows of other tables, such as earlier runs', that were folded since."""
        for name in self._before.others.keys() - found.others.keys():
            gone = self._before.others[name]
            for row in gone:
                found.counts[FOLDED, _status(row["sent"])] -= row["requests"]
                found.charged[FOLDED, ""] -= row.get(HUNDREDTHS, 0)
            found.refusals.subtract(refusals_of(gone))

    def _counts(self, table: str, key: str | None) -> bool:
        """Whether a row is of the run; partitions without one of their own have an empty table."""
        store = key if is_beside(table) else table
        return store in self._suffixes or (table, key) == ("", FOLDED)

    def _named(self, table: str, key: str) -> str:
        if is_beside(table):
            # Its name ends with a hyphen and the partition.
            return self._name(self._suffixes.get(key, f"-{key}")[1:])
        suffix = self._suffixes.get(table)
        return self._name(f"{suffix}/{key}" if suffix else key)


def found_gateway(run: MasterRun) -> FoundGateway | None:
    """The gateway that a run with -H on this machine meets; the run gets its kind.

    Its answers have told that there is one. Of one that charges request units the answers tell what
    a run is held to, and a gateway before another machine is not Azurite. Gateways of several
    accounts give their kind, if it is one; their limits may differ.
    """
    accounts, kinds = tuple(run.accounts), set()
    if run.plan.embedded or not all(one.behind_gateway and not one.remote for one in accounts):
        return None
    for one in accounts:
        trusted = trust_context(os.environ) if one.url.startswith("https") else None
        found = gateway_at(f"{urlsplit(one.url).scheme}://{one.host}", trusted)
        if found is None or not on_this_machine(found.before):
            return None
        keeps_writes = found.before != NO_UPSTREAM
        kinds.add(found.limits.service(one.kind.server, keeps_writes=keeps_writes))
    if len(kinds) > 1 or (kind := kinds.pop()) is None:
        return None
    run.recognise(Accounts(tuple(as_kind(one, kind) for one in accounts)))
    return None if kind.charges or len(accounts) > 1 else found


def provisioned(named: NamedProfile, limits: GatewayLimits) -> NamedProfile:
    """The profile with what is provisioned at the stand-in; a `SetupError` if it says otherwise."""
    if limits.units is None:
        return named
    there, endpoint = limits.units.throughput, named.profile.endpoint
    if limits.provisioned(endpoint.throughput) != limits:
        raise SetupError(
            f"the profile {named.name} is for {endpoint.provisioned_ru_per_s:,.0f} RU/s, and the "
            f"stand-in was started with {there.ru_per_s:,.0f} RU/s over "
            f"{counted(there.physical_partitions or 1, 'physical partition')}: start the harness "
            "with this profile"
        )
    known = endpoint.model_copy(
        update={
            "provisioned_ru_per_s": there.ru_per_s,
            "physical_partitions": there.physical_partitions,
        }
    )
    profile = named.profile.model_copy(update={"endpoint": known})
    return dataclasses.replace(named, profile=profile)


def _folded(counts: Counts, kept: Container[str]) -> Counts:
    folded = Counts()
    for (key, status), count in counts.items():
        folded[key if key in kept else FOLDED, status] += count
    return folded


def recorded_charges(record: RunRecord) -> Counts:
    """The request units in a record."""
    parts = [(part.key, part.request_units) for part in record.partitions]
    if record.partitions_folded is not None:
        parts.append((FOLDED, record.partitions_folded.request_units))
    return Counts({(key, ""): round(units.total * RU) for key, units in parts if units is not None})


def recorded_counts(record: RunRecord) -> Counts:
    found = Counts()
    parts: list[tuple[str, Mapping[str, int]]] = [
        (part.key, part.attempts_by_status) for part in record.partitions
    ]
    if record.partitions_folded is not None:
        parts.append((FOLDED, record.partitions_folded.attempts_by_status))
    for key, attempts in parts:
        for name, count in attempts.items():
            found[key, _status(name.partition(" ")[0])] += count
    return found


def _status(answer: str) -> str:
    return answer if answer.isdigit() else NO_ANSWER
