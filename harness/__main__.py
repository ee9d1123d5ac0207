"""The entry point of the command ``harness`` and of ``python -m harness``."""

from __future__ import annotations

import sys

from harness import startup


def main() -> int:
    if sys.argv[1:2] == ["run"]:
        startup.begin()
    else:
        startup.secure_streams()
    # Late: a Ctrl-C while it is imported gets its message too.
    from harness import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
