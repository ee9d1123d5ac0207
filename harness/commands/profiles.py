"""``harness profiles``: lists the shipped profiles, or prints one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from harness.model.errors import SetupError, echoed
from harness.profile.profile_loader import resolve, shipped_directory, shipped_names
from harness.profile.settings.schema import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Profiles:
    name = "profiles"
    help = "list the shipped profiles with the question each answers, or print one"
    description = (
        "A profile is a TOML file that sets what is sent, to which keys, how fast and for how "
        "long. `harness run NAME` runs it. To write your own, save a shipped one with `harness "
        "profiles NAME > mine.toml`, change it, and start it with `harness run mine.toml`."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "profile", nargs="?", metavar="NAME", help="print the file of this profile"
        )
        parser.add_argument(
            "--schema",
            action="store_true",
            help="print a JSON Schema of profiles, for completion in editors",
        )

    def run(self, args: argparse.Namespace) -> int:
        if args.schema:
            if args.profile is not None:
                raise SetupError("--schema describes all profiles: leave NAME out")
            print(json.dumps(profile_schema(), indent=1))
            return 0
        directory = shipped_directory()
        names = shipped_names(directory)
        if args.profile is not None:
            if args.profile not in names:
                raise SetupError(
                    f"there is no profile {echoed(args.profile)}; there are: {', '.join(names)}"
                )
            print((directory / f"{args.profile}.toml").read_text(encoding="utf-8"), end="")
            return 0
        width = max(len(name) for name in names)
        for name in names:
            question = resolve(name, directory=directory).profile.question
            print(f"{name:{width}}  {question}")
        return 0


def profile_schema() -> dict[str, Any]:
    """JSON Schema of a profile. Rules that span several settings are not part of it."""
    schema = Profile.model_json_schema()
    # The question is usually the comment in the first line.
    schema["required"] = [name for name in schema["required"] if name != "question"]
    return {"$schema": _DIALECT, **schema}
