"""The queries of the panels. Every query is about one run.

Throttled attempts have a scope; other attempts have none.
"""

from __future__ import annotations

from harness.model.operation import Kind

RUN = 'run="$run"'
CHOSEN = f'{RUN},partition=~"$partition"'
ONE_PARTITION = r'partition!~"\\(other\\)|([^/]+/)?\\(table\\)"'
"""Leaves out the folded rest, and queries over several partitions."""
THROTTLED = 'scope!=""'


def rate(counter: str, labels: str) -> str:
    """The growth of a counter per second."""
    return f"rate({counter}{{{labels}}}[$__rate_interval])"


def total(of: str, *by: str) -> str:
    """A sum, by some labels or in total."""
    return f"sum by ({', '.join(by)}) ({of})" if by else f"sum({of})"


PHASE = f"aztables_run_phase{{{RUN}}} == 1"
VERDICT = f"aztables_verdict_info{{{RUN}}}"
_UNTARGETED = "|".join(kind for kind in Kind if kind.untargeted)
"""Operations that no target is for, such as those on blobs, also where partitions are folded."""
ENTITIES = total(rate("aztables_entities_total", f'{RUN},op!~"{_UNTARGETED}"'))
ENTITIES_BY_PARTITION = total(rate("aztables_entities_total", CHOSEN), "partition")
SHARE_OF_TARGET = (
    f"{ENTITIES_BY_PARTITION} / on (partition) "
    f"max by (partition) (aztables_partition_target_entities_per_second{{{RUN}}})"
)
HOTTEST = f"max({SHARE_OF_TARGET})"
HOTTEST_TEN = f"topk(10, {SHARE_OF_TARGET})"
ATTEMPTS = total(rate("aztables_attempts_total", RUN))
THROTTLED_RATIO = f"{total(rate('aztables_attempts_total', f'{RUN},{THROTTLED}'))} / {ATTEMPTS}"
ATTEMPTS_PER_OPERATION = f"{ATTEMPTS} / {total(rate('aztables_operations_total', RUN))}"
ATTEMPTS_PER_OPERATION_BY_PARTITION = (
    f"{total(rate('aztables_attempts_total', CHOSEN), 'partition')} / "
    f"{total(rate('aztables_partition_operations_total', CHOSEN), 'partition')}"
)
THROTTLED_BY_SCOPE = total(rate("aztables_attempts_total", f"{RUN},{THROTTLED}"), "scope")
OTHER_ANSWERS = total(
    rate("aztables_attempts_total", f'{CHOSEN},scope="",status!~"2.."'), "status", "error_code"
)
OUTCOMES = total(rate("aztables_operations_total", RUN), "outcome")
OFFERED = f"aztables_offered_entities_per_second{{{RUN}}}"
WAITING = f"aztables_operations_waiting{{{RUN}}}"
IN_FLIGHT = f"aztables_operations_in_flight{{{RUN}}}"
DROPPED = rate("aztables_operations_dropped_total", RUN)
BUDGET_LEFT = (
    f"aztables_billable_transactions_left{{{RUN}}} / aztables_billable_transactions_limit{{{RUN}}}"
)
BILLED = rate("aztables_billable_transactions_total", RUN)
CPU = f"aztables_generator_cpu_percent{{{RUN}}}"
USERS = f"aztables_users{{{RUN}}}"
WORKERS = f"aztables_workers{{{RUN}}}"
RANGE_ENTITIES = total(f"aztables_key_range_entities_per_second{{{RUN}}}", "range")
RANGE_THROTTLED = total(f"aztables_key_range_throttled_attempts_per_second{{{RUN}}}", "range")

UNITS = total(rate("aztables_request_units_total", RUN))
UNITS_BY_PARTITION = total(rate("aztables_request_units_total", CHOSEN), "partition")
_UNITS_OF_ONE = total(
    rate("aztables_request_units_total", f"{CHOSEN},{ONE_PARTITION}"), "partition"
)
UNIT_LIMIT = f'max(aztables_target_request_units_per_second{{{RUN},scope="partition"}})'
PROVISIONED = f'max(aztables_target_request_units_per_second{{{RUN},scope="account"}})'
COSTLIEST_TEN = f"topk(10, {_UNITS_OF_ONE} / on () group_left () {UNIT_LIMIT})"
UNITS_BY_OPERATION = total(rate("aztables_operation_request_units_total", RUN), "op")
UNITS_EACH = f"{UNITS_BY_OPERATION} / {total(rate('aztables_operations_total', RUN), 'op')}"
STARTED_MS = f"aztables_run_started_timestamp_seconds{{{RUN}}} * 1000"
"""In milliseconds, as Grafana expects."""
MEASURED = (
    f"aztables_measured_window_start_timestamp_seconds{{{RUN}}} <= time() "
    f"and aztables_measured_window_end_timestamp_seconds{{{RUN}}} > time()"
)
ENDED_MS = (
    f"aztables_run_ended_timestamp_seconds{{{RUN}}} * 1000 "
    f"* on (run) group_left (verdict, sentence) {VERDICT}"
)


def throttled(status: int) -> str:
    """Throttled attempts per second with one status."""
    labels = f'{CHOSEN},status="{status}",{THROTTLED}'
    return total(rate("aztables_attempts_total", labels), "partition", "scope")


def buckets(latency: str) -> str:
    """Operations per second by their latency, ``service`` or ``response``."""
    labels = f'{RUN},latency="{latency}"'
    return total(rate("aztables_operation_duration_seconds_bucket", labels), "le")


def percentiles(latency: str) -> str:
    """Exact percentiles of the window, in seconds."""
    return f'aztables_latency_seconds{{{RUN},latency="{latency}"}}'


def quantile(share: float, latency: str) -> str:
    """An interpolated percentile in seconds; ``share`` is 0 to 1."""
    return f"histogram_quantile({share:g}, {buckets(latency)})"
