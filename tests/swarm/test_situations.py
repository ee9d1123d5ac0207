"""Each situation of `situations.py`, played by a real run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import gevent
import gevent.lock
import pytest

from harness.endpoint.azurite.process import AzuriteProcess
from tests.support.locust_process import Stress
from tests.support.situation import Played
from tests.swarm.situations import SITUATIONS, Situation, Stage

pytestmark = pytest.mark.azurite

AT_ONCE = 3
"""So many situations at the same time: their processes mostly wait."""
TRIES = 3
BUSY = "Client-limited"
"""Where others keep the whole machine busy meanwhile, a run says so and nothing else."""
BY_NAME = {situation.name: situation for situation in SITUATIONS}


class Plays:
    """Plays situations, some at once, each once.

    Args:
        asked: Those that tests ask for.
    """

    def __init__(
        self, stress: Stress, azurite: AzuriteProcess, folder: Path, asked: Sequence[Situation]
    ) -> None:
        self._stress = stress
        self._azurite = azurite
        self._folder = folder
        self._asked = asked
        self._room = gevent.lock.Semaphore(AT_ONCE)
        self._playing: dict[str, gevent.Greenlet] = {}

    def __getitem__(self, situation: Situation) -> Played:
        """What became of it. It is begun with the others of its group, when all before are over."""
        if situation.name not in self._playing:
            gevent.joinall(list(self._playing.values()))
            for one in self._asked:
                if one.group == situation.group:
                    self._playing[one.name] = gevent.spawn(self._play, one)
        played: Played = self._playing[situation.name].get()
        return played

    def end(self) -> None:
        """End those that still go on."""
        gevent.killall(list(self._playing.values()))

    def _play(self, situation: Situation) -> Played:
        folder = self._folder / str(len(list(self._folder.iterdir())))
        folder.mkdir()
        with self._room:
            stage = Stage(stress=self._stress, azurite=self._azurite, folder=folder)
            for _ in range(TRIES):
                played = situation.cause(stage)
                slowed = played.sentence.startswith(BUSY) and any(situation.lacking(played))
                if not slowed and not (situation.idle and played.busy):
                    break
            return played


@pytest.fixture(scope="module")
def plays(
    stress: Stress,
    azurite: AzuriteProcess,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Plays]:
    """The situations that were asked for."""
    items = (item for item in request.session.items if item.path == request.path)
    called = (getattr(item, "callspec", None) for item in items)
    asked = [BY_NAME[one.params["name"]] for one in called if one is not None]
    made = Plays(stress, azurite, tmp_path_factory.mktemp("situations"), asked)
    yield made
    made.end()


def test_every_situation_has_a_name_of_its_own() -> None:
    """Two entries of one name would be played once."""
    assert len(BY_NAME) == len(SITUATIONS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one.name, marks=pytest.mark.serial) if one.alone else one.name
        for one in SITUATIONS
    ],
)
def test_what_is_concluded_from_a_situation(name: str, plays: Plays) -> None:
    """Sentence, first screen, conditions and exit code say what happened, and nothing else."""
    situation = BY_NAME[name]
    played = plays[situation]
    if situation.idle and played.busy:
        pytest.skip(played.busy)
    said = f"{played.sentence} {played.first_screen}"
    assert [*situation.lacking(played), *situation.false(played)] == [], said
