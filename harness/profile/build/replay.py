"""The trace that a profile replays: read before the run, and compared by every worker."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from harness.model.errors import SetupError, cut
from harness.model.files import read_toml_file
from harness.profile.build.pace import counts_operations
from harness.profile.profile_loader import NamedProfile
from harness.profile.settings.schema import Profile, at_a_rate
from harness.trace.replay.preparation import Preparation, fingerprint
from harness.trace.replay.source import ReplaySource
from harness.trace.sources import Tell, opened
from harness.trace.whatif.scheme import Scheme, parse_scheme


def read_trace(
    named: NamedProfile, tell: Tell = lambda done, total: None, *, into_one_table: bool = False
) -> tuple[NamedProfile, Preparation | None]:
    """The profile with what its trace holds, and the rows to load; other profiles stay as they are.

    ``into_one_table`` sends all operations to a table that exists, whatever the recorded one is
    named.

    Raises:
        SetupError: the trace cannot be read, or nothing of it can be replayed.
    """
    replay = named.profile.replay
    if replay is None:
        return named, None
    path = Path(replay.trace)
    _require_there(path)
    content: dict[str, Any] = {}
    scheme = None
    if replay.keys is not None:
        _, content = read_toml_file(Path(replay.keys), "key scheme")
        scheme = _scheme(replay.keys, content)
    with opened(path, tell) as trace:
        preparation = Preparation(
            trace,
            path.name,
            fingerprint(path),
            entity_bytes=named.profile.entity.size_bytes,
            scheme=scheme,
            into_one_table=into_one_table,
            tell=tell,
        )
    speed = None if at_a_rate(named.profile) else replay.speed
    found = preparation.part.model_copy(
        update={"speed": speed, "share": replay.share, "scheme": content}
    )
    profile = named.profile.model_copy(
        update={"replay": replay.model_copy(update={"found": found})}
    )
    return dataclasses.replace(named, profile=profile), preparation


def replay_of(
    profile: Profile, run_id: str, preparation: Preparation | None = None
) -> ReplaySource:
    """What a process of a replay sends; ``preparation`` where it also loads.

    Raises:
        SetupError: the trace cannot be read.
    """
    replay = profile.replay
    assert replay is not None
    assert replay.found is not None
    return ReplaySource(
        Path(replay.trace),
        replay.found,
        run_id,
        # A worker has it from the master, and reads no file.
        scheme=_scheme(replay.keys, replay.found.scheme) if replay.keys else None,
        by_operation=counts_operations(profile),
        preparation=preparation,
    )


def _scheme(path: str, content: dict[str, Any]) -> Scheme:
    return parse_scheme(Path(path).stem, content, Path(path).name)


def require_same_trace(profile: Profile) -> None:
    """Check that the trace of this process is the one that the master read.

    Raises:
        SetupError: it is another one, or missing.
    """
    replay = profile.replay
    if replay is None or replay.found is None:
        return
    path = Path(replay.trace)
    _require_there(path)
    if fingerprint(path) != replay.found.fingerprint:
        raise SetupError(
            f"the trace {cut(replay.trace)} of this worker differs from the master's; give both "
            "the same file"
        )


def _require_there(path: Path) -> None:
    if not path.exists():
        raise SetupError(
            f"there is no trace {cut(str(path))}. Record one with `harness watch --trace FILE -- "
            "COMMAND` or with --trace on a run, and name it with --set replay.trace=FILE"
        )
