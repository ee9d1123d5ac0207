"""``harness profiles``: which questions there are, and what one of them says."""

from __future__ import annotations

import argparse
import json
from typing import Any

from harness.model.errors import SetupError
from harness.profile.load import resolve, shipped_directory, shipped_names
from harness.profile.schema import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Profiles:
    """List the profiles, or show one."""

    name = "profiles"
    help = "list the profiles with the question each answers, or show one"
    description = (
        "A profile is a TOML file that says what is sent, to which keys, and for how long; "
        "`locust --profile NAME` runs it. To make one of your own, save a shipped one with "
        "`harness profiles NAME > mine.toml`, change it, and run `locust --profile mine.toml`."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Which one to show, or the schema of all."""
        parser.add_argument("profile", nargs="?", metavar="NAME", help="show this profile's file")
        parser.add_argument(
            "--schema",
            action="store_true",
            help="print a JSON Schema of profiles, with which editors complete them",
        )

    def run(self, args: argparse.Namespace) -> int:
        """List them all, or print the text of one, or what any may say."""
        if args.schema:
            if args.profile is not None:
                raise SetupError("--schema is of all profiles; leave the name out")
            print(json.dumps(profile_schema(), indent=1))
            return 0
        directory = shipped_directory()
        names = shipped_names(directory)
        if args.profile is not None:
            if args.profile not in names:
                raise SetupError(
                    f"there is no profile {args.profile!r}; there are: {', '.join(names)}"
                )
            print((directory / f"{args.profile}.toml").read_text(encoding="utf-8"), end="")
            return 0
        width = max(len(name) for name in names)
        for name in names:
            question = resolve(name, directory=directory).profile.question
            print(f"{name:{width}}  {question}")
        return 0


def profile_schema() -> dict[str, Any]:
    """JSON Schema of a profile's file. What parts of it say together, it cannot hold."""
    schema = Profile.model_json_schema()
    # The question may be the file's first line, a comment.
    schema["required"] = [name for name in schema["required"] if name != "question"]
    return {"$schema": _DIALECT, **schema}
