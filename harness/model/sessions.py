"""The kinds of sessions, which send the operations of a run, with what is special to each.

A further kind is a class in `harness.endpoint.sessions`, and an entry here.
"""

from __future__ import annotations

import dataclasses

from harness.model.services import service_of_session


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SessionKind:
    """A kind of session.

    Attributes:
        name: Its name in profiles, options and records.
        described: What it is, for users.
        by_sdk: Whether an SDK makes its requests, which takes most of the CPU.
        as_is: Whether a library is used as applications use it: retries and connections are its
            own and not those of a profile, and bytes are those of bodies.
    """

    name: str
    described: str = ""
    by_sdk: bool = False
    as_is: bool = False


SDK = SessionKind(
    name="sdk",
    described="azure-data-tables on a fast transport, with every retry visible.",
    by_sdk=True,
)
SESSIONS = {
    kind.name: kind
    for kind in (
        SDK,
        SessionKind(
            name="wire",
            described="the same requests built without the SDK, faster on one core.",
        ),
        SessionKind(
            name="sdk-default",
            described="azure-data-tables as an application uses it.",
            by_sdk=True,
            as_is=True,
        ),
        SessionKind(
            name="blob",
            described="inserts, whole partitions and ranges of rows as lines of append blobs.",
        ),
        SessionKind(
            name="queue",
            described="messages of Queue Storage, or of the queues of the embedded Azurite.",
        ),
    )
}
TABLE_SESSIONS = tuple(name for name in SESSIONS if service_of_session(name) is None)


def session_named(name: str) -> SessionKind:
    """The kind of a name; of a watched application, or of a later version, one without traits."""
    return SESSIONS.get(name, SessionKind(name=name))
