"""Takes part in plain ``locust`` before a locustfile is loaded: its help, and Ctrl-C.

Locust prints its help before it loads a locustfile, so that a locustfile cannot add to it. It does
import a module of this name, if there is one, "to allow for registering custom arguments". Where
the package locust-plugins is installed too, Python imports that package and not this module; then
only ``harness run --help`` shows the options.
"""

from __future__ import annotations

import sys
from pathlib import Path


def _is_a_run_of_ours(program: str, arguments: list[str]) -> bool:
    """Whether this is ``locust`` with a locustfile, named or the default, that uses the harness."""
    path = Path(program)
    # `python -m locust` runs the file __main__.py of the package.
    if "locust" not in (path.name, path.parent.name):
        return False
    from locust.argument_parser import get_empty_argument_parser

    found, _ = get_empty_argument_parser(add_help=False).parse_known_args(arguments)
    try:
        return "harness" in Path(found.locustfile).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


if _is_a_run_of_ours(sys.argv[0], sys.argv[1:]):
    from harness import startup

    startup.begin()
    if {"-h", "--help"} & set(sys.argv[1:]):
        from locust import events

        from harness.swarm.command_line import add_options

        events.init_command_line_parser.add_listener(lambda parser, **_: add_options(parser))
