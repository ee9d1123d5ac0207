"""Decides whether limits pass, refuse or delay a request.

The model is pure: time is an argument, chance comes from the seeds in the limits, and there is no
I/O. A refused request takes nothing from any limit. A request that passes takes its entities at
once. The answer decides whether these entities are kept or given back, and whether more are taken.
Every request that passed must therefore be ended by one of `Model.answered`, `Model.not_done` and
`Model.lost`.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence, Set

from harness.gateway.contents import Contents, LookAhead
from harness.gateway.cosmos import RULES, CosmosLimits
from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits, InjectedFault
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.gateway.rules.counting import NO_ENTITIES, Count, count_of, query_count, received_count
from harness.gateway.rules.faults import FaultRule
from harness.gateway.rules.moving import Move
from harness.gateway.storage import StorageLimits
from harness.model.operation import Kind
from harness.model.outcome import Scope

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one request, which the proxy carries out.

    Attributes:
        status: HTTP status of a refusal.
        retry_after_ms: Wait before a retry, as stated in a refusal; 0 for none.
        rule: The rule that refused, as `StorageLimits` or `CosmosLimits` names it; empty for a
            request that passes.
        delay_s: Delay before the request is passed on or refused.
        fault: A fault that is applied although no limit is reached.
    """

    status: int = 503
    retry_after_ms: int = 0
    scope: Scope = Scope.NONE
    rule: str = ""
    delay_s: float = 0.0
    fault: InjectedFault | None = None


PASS = Decision()
"""The decision about a request that passes at once."""


class Model:
    """The limits of one account: those of Storage, or those of Cosmos DB.

    Args:
        now_s: The time now, on any steady clock.
        stored: False if there is no endpoint behind the gateway.
        looks_ahead: False if rows that were there before must not be read.
        shared: Whether other gateways pass writes to the same tables.

    Attributes:
        limits: All settings of the limits, as given.
        storage: The limits of Storage; None if there are none, or those of Cosmos DB.
        units: The limits of Cosmos DB, in request units; None for those of Storage.
    """

    def __init__(
        self,
        limits: GatewayLimits,
        now_s: float,
        *,
        stored: bool = True,
        looks_ahead: bool = True,
        shared: bool = False,
    ) -> None:
        self.limits = limits
        self.slow_s = limits.faults.slow_s
        self._started_s = now_s
        self._refusal = limits.refusal
        self._chance = random.Random(f"{limits.refusal.seed}/refusal")
        self._faults = FaultRule(limits.faults)
        self._contents = Contents(stored=stored)
        self.storage = self.units = None
        if limits.units is not None:
            self.units = CosmosLimits(limits.units, self._contents)
        elif not limits.unlimited:
            # Without limits, no bucket and no range has to be kept.
            self.storage = StorageLimits(limits, self._contents, now_s)
        self._looks_ahead = looks_ahead and not shared
        self._shared = shared

    @property
    def moves(self) -> Sequence[Move]:
        """The latest moves of ranges between servers, oldest first."""
        return () if self.storage is None else self.storage.moves

    @property
    def move_count(self) -> int:
        return 0 if self.storage is None else self.storage.move_count

    @property
    def alone(self) -> Set[Place]:
        """Places that `serve` returned last because of their own limit alone."""
        return frozenset() if self.storage is None else self.storage.alone

    def decide(self, asked: Asked, now_s: float) -> Decision:
        """Decide about a request that arrives now. A passing request takes its entities."""
        if not self._faults.any:
            return self._refusal_of(asked, now_s, 0.0) or PASS if asked.limited else PASS
        stalled_s = self._faults.stalled_for_s(now_s - self._started_s)
        fault, refused = None, None
        if asked.kind is not None:
            fault = self._faults.draw(writes=asked.writes)
        if asked.limited:
            refused = self._refusal_of(asked, now_s, stalled_s)
        return refused or Decision(delay_s=stalled_s, fault=fault)

    def serve(
        self, demand: Demand, since_s: float, until_s: float, more: Mapping[Place, int]
    ) -> Set[Place]:
        """Pass all requests of some time as a whole, unless a limit could refuse one of them.

        Args:
            demand: What is asked for: entities, or at the limits of Cosmos DB hundredths of an RU.
            since_s: The first request arrives at or after this time.
            until_s: The last request arrives before this time.
            more: What further requests ask for. Their partitions are always returned.

        Returns:
            Places whose requests might be refused, in some order of arrival: nothing is taken for
            them, and each of their requests has to be decided about.
        """
        if self.storage is not None:
            return self.storage.serve(demand, since_s, until_s, more)
        if self.units is not None:
            return self.units.serve(demand.entities, more, since_s)
        return more.keys()

    def admit(self, table: str, key: str | None, asked: int, now_s: float, scanned: int = 0) -> str:
        """Decide about a request that succeeds if it passes, and end it.

        Returns the rule that refuses it; empty if it passes. It asks for ``asked`` in the unit of
        the limits, and takes ``scanned`` besides, such as the entities that a query scans.
        """
        if self.storage is not None:
            return self.storage.admit(table, key, asked, now_s, scanned)
        return "" if self.units is None else self.units.admit(key, asked + scanned, now_s)

    def answered(self, asked: Asked, answered: Answered, now_s: float) -> Count:
        """End a request that the endpoint answered, and return its entity count.

        The entities of a refused request are given back. A query takes the entities that it
        scanned. Written keys are stored, so that the number of entities that later queries scan is
        known.
        """
        kind = asked.kind
        if kind is None:
            self._table_changed(asked, answered)
            return NO_ENTITIES
        scanned: Mapping[str | None, int] = {}
        if kind is _QUERY:
            count, scanned = query_count(asked, answered, self._contents)
        elif kind.receives:
            count, scanned = received_count(asked, answered)
        else:
            count = count_of(asked, answered)
            if kind.untargeted:
                return count
        if self.units is not None:
            charged = self.units.answered(asked, answered, scanned, now_s)
            count = dataclasses.replace(count, charged=charged)
        if self.storage is not None:
            if answered.succeeded:
                self.storage.served(asked, scanned, now_s)
            elif not count.entities:
                self.storage.give_back(asked, now_s)
        if asked.rows and answered.succeeded:
            self._contents.wrote(asked.table, asked.rows)
        return count

    def not_done(self, asked: Asked, now_s: float) -> None:
        """End a request that was not executed: its entities are given back."""
        if not asked.limited:
            return
        if self.units is not None:
            self.units.not_done(asked, now_s)
        if self.storage is not None:
            self.storage.give_back(asked, now_s)

    def lost(self, asked: Asked) -> None:
        """End a request whose answer was lost: it may have been executed."""
        if asked.writes:
            self._contents.doubt(asked.table)

    def look_ahead(self, asked: Asked, target: str) -> LookAhead | None:
        """Return the `LookAhead` that has to precede a query, or None."""
        if asked.in_batch or not self._looks_ahead:
            return None
        if not self._contents.begin_look_ahead(asked.table):
            return None
        return LookAhead(self._contents, asked.table, target)

    def cut(self, asked: Asked, answered: Answered) -> int | None:
        """Return the number of entities after which the page of a query ends, or None."""
        return None if self.storage is None else self.storage.cut(asked, answered)

    def _table_changed(self, asked: Asked, answered: Answered) -> None:
        if not answered.succeeded:
            return
        if asked.makes_table:
            self._contents.made(asked.table)
            if self._shared:
                self._contents.doubt(asked.table)
        elif asked.drops_table:
            self._contents.dropped(asked.table)
            if self.storage is not None:
                self.storage.drop_table(asked.ranged_table)
            if self.units is not None:
                self.units.drop_table(asked.table)

    def _refusal_of(self, asked: Asked, now_s: float, stalled_s: float) -> Decision | None:
        """Return the refusal of a request, or take its entities."""
        if self.storage is not None:
            rule = self.storage.refusal(asked, now_s)
            return self._refuse(rule, stalled_s) if rule else None
        if self.units is None:
            return None
        refused = self.units.refusal(asked, now_s)
        if refused is None:
            return None
        return Decision(
            status=RULES[refused.rule].status,
            retry_after_ms=refused.wait_ms,
            scope=Scope.PARTITION if refused.wait_ms else Scope.NONE,
            rule=refused.rule,
            delay_s=stalled_s,
        )

    def _refuse(self, rule: str, stalled_s: float) -> Decision:
        """Refuse a request: at once, or a share of those for one partition late with a time-out."""
        refusal = self._refusal
        account = rule == "account"
        if account or refusal.timeout_share == 0 or self._chance.random() >= refusal.timeout_share:
            return Decision(
                status=refusal.status,
                retry_after_ms=refusal.retry_after_ms,
                scope=Scope.ACCOUNT if account else Scope.PARTITION,
                rule=rule,
                delay_s=stalled_s,
            )
        statuses = refusal.timeout_statuses
        return Decision(
            status=statuses[0] if len(statuses) == 1 else self._chance.choice(statuses),
            scope=Scope.PARTITION,
            rule=rule,
            delay_s=stalled_s + refusal.timeout_after_s,
        )
