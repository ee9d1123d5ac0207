"""What the command ``harness`` starts; ``python -m harness`` is the same."""

from __future__ import annotations

import sys

from harness import startup


def main() -> int:
    """Run the command line, and return its exit code."""
    if sys.argv[1:2] == ["run"]:
        startup.begin()
    # Late, because it takes a second, in which Ctrl-C has to be understood too.
    from harness import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
