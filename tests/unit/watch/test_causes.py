"""What a watch says when no request about entities arrived."""

from __future__ import annotations

import pytest

from harness.watch.watched_run import Circumstances

EVERY = ("--listen 127.0.0.1:10002", "--tls", "--proxy", "--env NAME")


@pytest.mark.parametrize(
    ("known", "unreadable", "says", "options"),
    [
        ({}, 0, "Possible causes: ", EVERY),
        ({"tls": True}, 0, "Possible causes: ", (EVERY[0], *EVERY[2:])),
        ({"proxy": True, "at_emulator": True}, 0, "Possible causes: ", EVERY[3:]),
        ({"failed": "exit code 1"}, 0, "The command failed (exit code 1)", EVERY),
        ({"to_emulator": True}, 0, "connected to 127.0.0.1:10002", EVERY[:1]),
        ({}, 2, "2 requests could not be read as http", EVERY[1:2]),
        ({"removed": ["KEY", "NAME"]}, 0, "did not get KEY, NAME", EVERY[2:3]),
        ({"removed": ["K"], "failed": "exit code 1"}, 0, "failed (exit code 1)", EVERY[2:3]),
        ({"removed": ["SETTINGS"], "proxy": True}, 0, "Possible causes", (*EVERY[:1], EVERY[3])),
    ],
)
def test_a_cause_and_the_option_that_helps(
    known: dict[str, object], unreadable: int, says: str, options: tuple[str, ...]
) -> None:
    """What was seen is said alone; else what is possible, without options that are in use."""
    text = Circumstances(**known).cause(unreadable)  # type: ignore[arg-type]
    assert says in text
    assert [option for option in EVERY if option in text] == list(options)
    guessed = "auses" in text
    assert ("sends none" in text) is guessed
    assert ("certificate" in text) is (guessed and bool({"tls", "proxy"} & known.keys()))
