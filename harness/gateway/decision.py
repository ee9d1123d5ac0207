"""The decision of the model about a request, which the proxy carries out."""

from __future__ import annotations

import dataclasses
import enum

from harness.gateway.rules.faults import InjectedFault
from harness.model.outcome import Scope


class GatewayAction(enum.Enum):
    """What the proxy does with a request."""

    PASS = enum.auto()
    BUSY = enum.auto()
    TIMED_OUT = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one request.

    Attributes:
        action: Pass, or the kind of refusal.
        status: HTTP status of a refusal.
        retry_after_ms: Wait before a retry, as stated in a refusal; 0 for none.
        scope: Scope of a refusal: partition or account.
        rule: The rule that refused: partition, server, moving or account; of Cosmos DB throughput,
            key_length, request_size or verb.
        delay_s: Delay before the action.
        fault: A fault that is applied although no limit is reached.
    """

    action: GatewayAction = GatewayAction.PASS
    status: int = 503
    retry_after_ms: int = 0
    scope: Scope = Scope.NONE
    rule: str = ""
    delay_s: float = 0.0
    fault: InjectedFault | None = None
