"""``harness init``: writes a small folder of the user's own, which starts the installed package."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.resources
import json
import os
import shlex
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2

from harness import __version__
from harness.endpoint.address import is_account_name
from harness.model.errors import SetupError, cut, echoed
from harness.model.files import shipped
from harness.profile.profile_loader import DEFAULT_PROFILE, shipped_directory, shipped_names

PLACES = {
    "local": "this machine, and any other with Python",
    "azure-load-testing": "a folder without subfolders, as Azure Load Testing needs it",
    "kubernetes": "manifests of master and workers, and of the Locust Kubernetes operator",
    "github-actions": "a workflow that logs in by OIDC; DIR is the root of your repository",
    "azure-pipelines": "a pipeline that logs in by OIDC; DIR is the root of your repository",
}
COPIES = {
    "grafana": "dashboards for Grafana, rules for Prometheus, and a compose file of both",
    "examples": "recorded traffic of three applications, to try commands with",
}
"""What has nothing to do with a run of the user's own."""
IN_REPOSITORY = ("github-actions", "azure-pipelines")
"""Places that are a part of a repository: the test gets a folder of its own in it."""
FOLDER = "stress"
"""The name of that folder."""
AUTH_MODES = ("login", "key")
PACKAGE = "table-stress-harness"
ACCOUNT = "ACCOUNT"
"""The placeholder for an account that the user did not name."""
_LONGEST_PLACE = max(map(len, PLACES))
_ALL_PLACES = PLACES | COPIES
_EPILOG = """\
places:
{places}

examples:
  harness init stress                                       a folder for this machine
  harness init --for azure-load-testing --account mytables stress
  harness init --for github-actions --profile key-spread .  into your repository
  harness init --for grafana dashboards                     dashboards for runs on this machine

Nothing is sent, and no secret is written. A profile with comments, `profile.toml`, says what
the test sends; README.md in the folder names the next steps.
"""
_TEMPLATES = jinja2.Environment(
    variable_start_string="[[",
    variable_end_string="]]",
    block_start_string="[%",
    block_end_string="%]",
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)
"""Other signs than usual: the files of a place have their own templates."""


class Init:
    """Writes a small folder of your own, from which runs of the installed package are started.

    It holds a locustfile, a profile, the requirements, a README, and the files of the place where
    the load is started. Change the profile, add user classes to the locustfile, and keep the folder
    in version control.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.epilog = _EPILOG.format(
            places="\n".join(
                f"  {name:{_LONGEST_PLACE}}  {text}" for name, text in _ALL_PLACES.items()
            )
        )
        parser.add_argument(
            "folder",
            metavar="DIR",
            type=Path,
            help="folder to write to; created if it does not exist",
        )
        parser.add_argument(
            "--for",
            dest="place",
            choices=_ALL_PLACES,
            default="local",
            metavar="PLACE",
            help="where the load is started (default: %(default)s)",
        )
        parser.add_argument(
            "--profile",
            metavar="NAME",
            default=DEFAULT_PROFILE,
            help="begin with this shipped profile; `harness profiles` lists them "
            "(default: %(default)s)",
        )
        parser.add_argument(
            "--account",
            metavar="NAME",
            default=ACCOUNT,
            help="storage account to stress, which may be loaded and billed; the files name it as "
            f"endpoint and as confirmation (default: the word {ACCOUNT}, for you to replace)",
        )
        parser.add_argument(
            "--auth-mode",
            choices=AUTH_MODES,
            default=AUTH_MODES[0],
            help="sign in with Entra ID, or with a key or SAS from the place's store of secrets "
            "(default: %(default)s)",
        )
        parser.add_argument(
            "--package",
            metavar="WHEEL|ADDRESS",
            help="what requirements.txt installs: a wheel, which is copied into the folder, or a "
            "git address such as git+https://HOST/REPOSITORY@COMMIT (default: where this "
            "installation came from; no version is published yet)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite existing files")

    def run(self, args: argparse.Namespace) -> int:
        if args.profile not in shipped_names():
            raise SetupError(
                f"there is no profile {echoed(args.profile)}; `harness profiles` lists them"
            )
        if args.account != ACCOUNT and not is_account_name(args.account):
            raise SetupError(
                "--account is not the name of a storage account: lower case letters and digits"
            )
        if args.place in COPIES:
            copied = copies(args.place)
            _write(args.folder, copied, overwrite=args.force)
            _say_written(args.folder, copied)
            print(f"\n{args.folder / 'README.md'} has the next steps.")
            return 0
        if args.package is None:
            args.package = _installed_from()
        wheel = _wheel(args.package)
        files: dict[str, str | bytes] = {
            **rendered(args.place, args.profile, args.account, args.auth_mode, args.package)
        }
        if wheel is not None:
            files[_path(args.place, wheel.name)] = wheel.read_bytes()
        _write(args.folder, files, overwrite=args.force)
        _say_written(args.folder, files)
        print(f"\n{_next_steps(args)}")
        return 0


def _say_written(folder: Path, files: Iterable[str]) -> None:
    print(f"Wrote to {folder}:")
    print("\n".join(f"  {name}" for name in files))


def copies(place: str) -> dict[str, bytes]:
    """The files of a place that are copied as they are."""
    if place == "examples":
        return _read(shipped(place), shipped(place))
    # A checkout has more, for those who change the dashboard.
    kept = ("prometheus.yml", "rules.yml", "partition-stress.json", "provisioning")
    root = shipped("dashboards")
    files = [_read(root.parent, root / name) for name in kept]
    files.append(_read(_templates() / place, _templates() / place))
    return {name: content for found in files for name, content in found.items()}


def _read(root: Path, folder: Path) -> dict[str, bytes]:
    """The files of a folder, or the file itself, by their paths from ``root``."""
    files = folder.rglob("*") if folder.is_dir() else [folder]
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(files)
        if path.is_file() and "__pycache__" not in path.parts
    }


def _templates() -> Path:
    return Path(str(importlib.resources.files("harness"))) / "templates"


def _installed_from() -> str:
    """The wheel or git address from which this package was installed; empty if it is neither.

    Installers note it as the specification of direct URL origins says (PEP 610).
    """
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
        noted = importlib.metadata.distribution(PACKAGE).read_text("direct_url.json")
        origin = json.loads(noted or "{}")
        address = str(origin.get("url", ""))
        if (source := origin.get("vcs_info")) is not None:
            return f"{source['vcs']}+{address}@{source['commit_id']}"
        wheel = urllib.request.url2pathname(urllib.parse.urlsplit(address).path)
        if wheel.endswith(".whl") and Path(wheel).is_file():
            return wheel
    return ""


def _wheel(package: str) -> Path | None:
    """The wheel that is to be copied; None for an address or nothing, else a `SetupError`."""
    if not package or "://" in package:
        return None
    path = Path(package)
    if not path.name.startswith(PACKAGE.replace("-", "_")) or path.suffix != ".whl":
        raise SetupError(
            f"--package {echoed(package)} is neither a wheel of {PACKAGE} nor an address such as "
            "git+https://HOST/REPOSITORY"
        )
    if not path.is_file():
        raise SetupError(f"there is no wheel {cut(package)}")
    return path


def rendered(
    place: str, profile: str, account: str, auth_mode: str, package: str = ""
) -> dict[str, str]:
    """The files of a place but for a wheel: each path in the user's folder, and its content."""
    wheel = _wheel(package)
    facts = {place, auth_mode, *(["wheel"] if wheel else [])}
    if wheel is not None:
        requirement = f"./{wheel.name}"
    elif package:
        requirement = f"{PACKAGE} @ {package}"
    else:
        requirement = (
            "# Name the package here: a wheel, or its git address. No version is published yet."
        )
    values = {
        "VERSION": __version__,
        "ACCOUNT": account,
        "REQUIREMENT": requirement,
        "WHEEL": wheel.name if wheel else "",
    }
    files = {}
    for root in (_templates() / "common", _templates() / place):
        for file in sorted(root.rglob("*")):
            if file.is_file():
                # The names in the package make a template neither a module nor a hidden file.
                name = file.relative_to(root).as_posix().replace("dot-", ".").removesuffix(".in")
                text = file.read_text(encoding="utf-8")
                template = _TEMPLATES.from_string(text)
                files[_path(place, name)] = template.render(values, facts=facts)
    file = shipped_directory() / f"{profile}.toml"
    files[_path(place, "profile.toml")] = file.read_text(encoding="utf-8")
    return dict(sorted(files.items()))


def _path(place: str, name: str) -> str:
    """The path of a file in the user's folder."""
    at_root = place not in IN_REPOSITORY or name.startswith(".github/")
    return name if at_root else f"{FOLDER}/{name}"


def _write(folder: Path, files: Mapping[str, str | bytes], *, overwrite: bool) -> None:
    """Write all files, or none if one exists and must not be overwritten."""
    existing = [name for name in files if os.path.lexists(folder / name)]
    if existing and not overwrite:
        raise SetupError(
            f"{cut(str(folder))} has files of the same names: {', '.join(existing)}. Nothing was "
            "written; name another folder, or overwrite them with --force"
        )
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Replace a symbolic link, not the file that it points to.
            path.unlink(missing_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        except OSError as error:
            raise SetupError(
                f"{cut(str(path))} cannot be written: {error.strerror or error}"
            ) from error


def _next_steps(args: argparse.Namespace) -> str:
    test = args.folder / FOLDER if args.place in IN_REPOSITORY else args.folder
    steps = [
        "Next, try it on Azurite, an emulator on this machine (`harness azurite install`, once):",
        *([] if test == Path() else [f"  cd {shlex.quote(str(test))}"]),
        "  harness run ./profile.toml",
        "",
    ]
    if not args.package:
        steps.append(
            "requirements.txt names no package, because no version is published. For another "
            "machine, repeat the command with --force and --package WHEEL, or a git address."
        )
    if args.account == ACCOUNT:
        steps.append(f"Then replace {ACCOUNT} in the files by the name of your storage account.")
    return "\n".join([*steps, f"{test / 'README.md'} has the next steps."])
