"""From ``scenario = "..."`` to a whole application: a shipped one, or a class in a user's file.

A user's file is code. It is named on the command line, or in a profile that is named there; the
web form takes shipped profiles alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import random
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.entity import entity_problems, key_problem
from harness.model.errors import SetupError, echoed
from harness.model.operation import Operation, over_partitions
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import PICKERS, Picker, Shape
from harness.workload.operation_source import OperationSource, operations_by_task
from harness.workload.scenarios.registry import SCENARIOS
from harness.workload.scenarios.scenario import Scenario, Setting

if TYPE_CHECKING:
    from harness.profile.settings.schema import Profile

TRIED_OPERATIONS = 300
"""So many operations are made, and none of them sent, before a run is taken to be possible."""
_TABLE_ENDING_CHARACTERS = 24
_HARNESS = Path(__file__).resolve().parents[1]


def picker_of(profile: Profile, worker: int) -> Picker:
    """Draws which partition is touched next."""
    keys = profile.keys
    shape = Shape(
        theta=keys.theta,
        hot_operations=keys.hot_operations,
        hot_keys=keys.hot_keys,
        start=worker * 7919,
    )
    return PICKERS[keys.distribution](keys.partitions, shape)


def scenario_of(profile: Profile, entities: EntityFactory, worker: int) -> Scenario:
    """The application that a profile names.

    Raises:
        SetupError: it is not there or cannot be made; file and line are named.
    """
    name = profile.scenario or ""
    made = scenario_class(name)
    known = set(made.actions)
    if strangers := sorted(set(profile.actions) - known):
        raise SetupError(
            f"[actions] weighs {', '.join(strangers)}; scenario {name} does "
            f"{', '.join(sorted(known))}"
        )
    rows = profile.keys.rows_per_partition
    setting = Setting(
        partitions=profile.keys.partitions,
        rows=rows if isinstance(rows, int) else max(rows),
        picker=picker_of(profile, worker),
        entities=entities,
        worker=worker,
        actions=profile.actions,
    )
    with _own_mistakes(name):
        return made(setting)


def scenario_class(name: str) -> type[Scenario]:
    """The class of a scenario.

    Args:
        name: A shipped one's, or ``path/to/file.py:Class``.

    Raises:
        SetupError: there is none.
    """
    if name in SCENARIOS:
        return SCENARIOS[name]
    path, colon, wanted = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SetupError(
            f"there is no scenario {echoed(name)}; there are: {', '.join(sorted(SCENARIOS))}. One "
            "of your own is named file.py:Class"
        )
    module = _module(Path(path))
    found = vars(module).get(wanted)
    if found is None:
        classes = ", ".join(_scenarios_of(module)) or "no subclass of Scenario"
        raise SetupError(f"{path} has no class {wanted}; it has {classes}")
    return _checked(found, path, wanted)


def fingerprint(name: str | None) -> str:
    """Hash of a user's scenario file, so that workers see whether they have the same one.

    Raises:
        SetupError: the file cannot be read.
    """
    if name is None or name in SCENARIOS:
        return ""
    return hashlib.sha256(_text(Path(name.rpartition(":")[0]))).hexdigest()[:16]


def try_out(source: OperationSource, profile: Profile) -> None:
    """Make the first operations of a source, and send none.

    Raises:
        SetupError: it raises, or makes what the service would refuse; file and line are named.
    """
    with _own_mistakes(profile.scenario or ""):
        loading = itertools.islice(source.loading(), TRIED_OPERATIONS)
        tasks = itertools.islice(dry_run(source, profile), TRIED_OPERATIONS)
        sent = (operation for _, operation in tasks)
        for operation in itertools.chain(loading, sent):
            if not isinstance(operation, Operation):
                raise SetupError(
                    f"scenario {profile.scenario}: loading yields {operation!r} instead of an "
                    "operation"
                )
            if (problem := _problem(operation, source.tables)) is not None:
                raise SetupError(f"scenario {profile.scenario}: {problem}")


def dry_run(source: OperationSource, profile: Profile) -> Iterator[tuple[int, Operation]]:
    """The operations of a source without end, each with the number of its task; none is sent.

    Raises:
        SetupError: a scenario's code raises; file and line are named.
    """
    tasks = operations_by_task(source, random.Random(profile.seed))
    if profile.scenario is None:
        yield from tasks
        return
    with _own_mistakes(profile.scenario):
        yield from tasks


def _problem(operation: Operation, tables: tuple[str, ...]) -> str | None:
    for part in operation.parts or (operation,):
        what = f"{part.label} of {part.partition!r}, {part.row_key!r}"
        over = over_partitions(part.partition)
        if part.table not in tables:
            return f"{what}: its tables are {tables}, not {part.table!r}"
        if part.properties is not None:
            problems = list(entity_problems(part.partition_key, part.row_key, part.properties))
            if problems:
                return f"{what}: the entity {'; '.join(problems)}"
        elif not operation.kind.reads and (problem := key_problem(part.row_key)) is not None:
            return f"{what}: RowKey {problem}"
        elif (problem := key_problem(part.partition_key)) is not None and not over:
            return f"{what}: PartitionKey {problem}"
    return None


def _module(path: Path) -> object:
    _text(path)
    # A name of its own for each path: two files of one name are two modules.
    name = f"stress_scenario_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SetupError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _own_mistakes(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SetupError(f"scenario file {path} cannot be read: {error.strerror}") from error


def _scenarios_of(module: object) -> Iterator[str]:
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, Scenario) and value is not Scenario:
            yield name


def _checked(found: object, path: str, name: str) -> type[Scenario]:
    if not (isinstance(found, type) and issubclass(found, Scenario)):
        raise SetupError(f"{path}: {name} is no subclass of harness.workload.scenarios.Scenario")
    line = inspect.getsourcelines(found)[1]
    where = f"{path}:{line}: {name}"
    try:
        inspect.signature(found).bind(None)
    except TypeError as error:
        raise SetupError(f"{where} takes one argument, its Setting ({error})") from error
    if not found.actions:
        raise SetupError(f"{where}.actions is empty: nothing would be sent")
    for action in found.actions:
        method = getattr(found, action, None)
        if not callable(method):
            raise SetupError(f"{where}.actions names {action!r}; there is no such method")
        try:
            inspect.signature(method).bind(None, None)
        except TypeError as error:
            raise SetupError(
                f"{path}:{inspect.getsourcelines(method)[1]}: {name}.{action} takes the random "
                f"source and nothing else ({error})"
            ) from error
    for table in found.tables:
        if table and not (table.isascii() and table.isalnum() and table[0].isupper()):
            raise SetupError(
                f"{where}.tables: {table!r} is not a capital letter, then letters and digits"
            )
        if len(table) > _TABLE_ENDING_CHARACTERS:
            raise SetupError(
                f"{where}.tables: {table!r} is over {_TABLE_ENDING_CHARACTERS} characters"
            )
    return found


@contextmanager
def _own_mistakes(name: str) -> Iterator[None]:
    """What a user's code raises, as a sentence with its file and line."""
    try:
        yield
    except SetupError:
        raise
    except SyntaxError as error:
        raise SetupError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise SetupError(f"scenario {name}: {mistake_of(error)}") from error


def mistake_of(error: BaseException) -> str:
    """The exception of a workload as one sentence with file and line.

    If the user's code calls the harness and the exception is raised there, the sentence names the
    last line of the user's code.
    """
    if isinstance(error, SetupError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _HARNESS not in Path(frame.filename).parents]
    frame = (theirs or frames)[-1]
    where = f"{frame.filename}:{frame.lineno}: in {frame.name}"
    return f"{where}: {type(error).__name__}: {error}"
