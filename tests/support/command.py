"""The command line of the harness in this process, for tests of what it says."""

from __future__ import annotations

import pytest

from harness.cli import main


class Command:
    """Runs ``harness`` with arguments, which may be paths.

    Attributes:
        err: What the last call wrote to standard error.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object, code: int = 0) -> str:
        """What a command that ends with this code prints."""
        try:
            ended: object = main(list(map(str, arguments)))
        except SystemExit as exit_:
            ended = exit_.code
        printed = self._capsys.readouterr()
        self.err = printed.err
        assert ended == code, printed.err
        return printed.out

    def refused(self, *arguments: object) -> str:
        """Why a command is refused, with exit code 2."""
        self(*arguments, code=2)
        return self.err

    def words(self, *arguments: object) -> str:
        """What a command prints, without its line breaks."""
        return " ".join(self(*arguments).split())
