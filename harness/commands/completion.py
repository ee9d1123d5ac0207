"""``harness completion``: completes commands, options and profiles in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from harness.profile.profile_loader import shipped_names

_PROFILE = {"bash": "_harness_profile", "zsh": "_harness_profile"}
_BY_METAVAR = {
    "PROFILE": _PROFILE,
    "DIR": shtab.DIRECTORY,
    "FILE": shtab.FILE,
    "NAME|FILE": shtab.FILE,
    "RUN": shtab.FILE,
    "SCHEME.toml": shtab.FILE,
    "TRACE": shtab.FILE,
}
"""What completes a value, by the name of the value in the help."""
_PREAMBLE = {
    "bash": """\
_harness_profile() {{
  compgen -W "{names}" -- "$1"
  compgen -f -X '!*.toml' -- "$1"
  compgen -d -S / -- "$1"
}}
""",
    "zsh": """\
_harness_profile() {{
  _alternative 'profiles:profile:({names})' 'files:file:_files -g "*.toml"'
}}
""",
}


class Completion:
    """Prints a script that completes commands, options, profiles and files in a shell.

    For bash, `harness completion bash > ~/.local/share/bash-completion/completions/harness`; for
    zsh, save it as `_harness` in a folder of $fpath. Open a new shell to use it. Repeat this
    after an update.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shell", choices=tuple(_PREAMBLE), help="the shell")

    def run(self, args: argparse.Namespace) -> int:
        """Print the script; ``args.whole`` makes the parser with all commands and options."""
        whole: argparse.ArgumentParser = args.whole()
        for action in _actions(whole):
            known = _BY_METAVAR.get(str(action.metavar))
            if known is not None and action.choices is None:
                vars(action)["complete"] = known
        preamble = _PREAMBLE[args.shell].format(names=" ".join(shipped_names()))
        print(shtab.complete(whole, shell=args.shell, preamble=preamble))
        return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action
