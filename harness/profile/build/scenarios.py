"""The class that ``scenario = "..."`` names: a shipped one, or one in a user's file.

A user's file is code. Only the command line, or a profile that it names, can name such a file; the
web form takes shipped profiles only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.model.entity import entity_problems, key_problem
from harness.model.errors import SetupError, echoed
from harness.model.operation import WHOLE_TABLE, Operation
from harness.profile.settings.schema import Profile
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.design import usual_rows
from harness.workload.keys.fields import ValueSet
from harness.workload.keys.pickers import Uniform
from harness.workload.operation_factory import TransactionTooLargeError
from harness.workload.operation_source import OperationSource, results_by_task
from harness.workload.scenarios.registry import SCENARIOS
from harness.workload.scenarios.scenario import Scenario, Setting

_TRIED_OPERATIONS = 300
_TRIED_WRITES = 3_000
"""After so many parts of transactions no more operations are tried."""
_TABLE_ENDING_CHARACTERS = 24
_HARNESS = Path(__file__).resolve().parents[2]


def scenario_of(profile: Profile, entities: EntityFactory, worker: int) -> Scenario:
    """The application that a profile names; a `SetupError` names the mistake, file and line."""
    name = profile.scenario or ""
    made = _scenario_class(name)
    if strangers := sorted(set(profile.actions) - set(made.actions)):
        raise SetupError(
            f"[actions] has unknown actions: {', '.join(strangers)}; the actions of scenario "
            f"{name} are {', '.join(sorted(made.actions))}"
        )
    partitions, picker = 1, None
    for field_name, settings in profile.fields.items():
        if made.field not in ("", field_name):
            raise SetupError(
                f"fields.{field_name}: scenario {name} draws [fields.{made.field}]; name it so"
            )
        field = settings.made(field_name)
        assert isinstance(field, ValueSet)
        partitions, picker = len(field.values), field.picker(worker)
    rows = profile.keys.rows_per_partition or usual_rows(partitions)
    setting = Setting(
        partitions=partitions,
        rows=rows if isinstance(rows, int) else max(rows),
        picker=picker or Uniform(partitions),
        entities=entities,
        worker=worker,
        actions=profile.actions,
        messages=profile.messages.shape,
    )
    with own_mistakes(name):
        return made(setting)


def _scenario_class(name: str) -> type[Scenario]:
    if name in SCENARIOS:
        return SCENARIOS[name]
    path, colon, wanted = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SetupError(
            f"there is no scenario {echoed(name)}; the scenarios are: "
            f"{', '.join(sorted(SCENARIOS))}. To use your own, write file.py:Class"
        )
    module = _module(Path(path))
    found = vars(module).get(wanted)
    if found is None:
        classes = ", ".join(
            name
            for name, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, Scenario) and value is not Scenario
        )
        raise SetupError(
            f"{path} has no class {wanted}; it has {classes or 'no subclass of Scenario'}"
        )
    return _checked(found, path, wanted)


def fingerprint(profile: Profile) -> str:
    """Hash of the user's files that every process reads: a scenario, values of fields; or empty."""
    name = profile.scenario
    paths = [] if name is None or name in SCENARIOS else [name.rpartition(":")[0]]
    paths += [field.from_ for _, field in sorted(profile.fields.items()) if field.from_]
    if not paths:
        return ""
    return hashlib.sha256(b"".join(_text(Path(path)) for path in paths)).hexdigest()[:16]


def try_out(source: OperationSource, profile: Profile) -> None:
    """Make the first operations of a source, without sending them.

    A `SetupError` names file and line of code that raises, or an operation that would be refused.
    """
    with own_mistakes(profile.scenario or ""):
        tasks = (operation for _, operation in dry_run(source, profile))
        for operation in itertools.chain(_first(source.loading()), _first(tasks)):
            if not isinstance(operation, Operation):
                raise SetupError(
                    f"scenario {profile.scenario}: loading yields {operation!r} instead of an "
                    "operation"
                )
            if (problem := _problem(operation, source.tables)) is not None:
                raise SetupError(f"scenario {profile.scenario}: {problem}")


def _first(operations: Iterable[Operation]) -> Iterator[Operation]:
    """As many operations as are tried."""
    writes = 0
    for operation in itertools.islice(operations, _TRIED_OPERATIONS):
        yield operation
        writes += len(operation.parts)
        if writes > _TRIED_WRITES:
            return


def dry_run(source: OperationSource, profile: Profile) -> Iterator[tuple[int, Operation]]:
    """The operations of a source without end, each with the number of its task; none is sent.

    A get asks for as many messages as it would return: see `results_by_task`.
    """
    results = results_by_task(source, random.Random(profile.seed))
    tasks = ((number, result.operation) for number, _, result in results)
    if profile.scenario is None:
        yield from tasks
        return
    with own_mistakes(profile.scenario):
        yield from tasks


def _problem(operation: Operation, tables: tuple[str, ...]) -> str | None:
    """Why the service would refuse an operation; None if it would not."""
    for part in operation.parts or (operation,):
        what = f"{part.label} of {part.partition!r}, {part.row_key!r}"
        over = part.partition_key == WHOLE_TABLE
        if part.table not in tables:
            return f"{what}: its tables are {tables}, not {part.table!r}"
        if not part.kind.on_rows:
            # Its partition and its content are no key and no property of an entity.
            continue
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
    # Named by its path: two files of one name are two modules.
    name = f"stress_scenario_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SetupError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with own_mistakes(str(path)):
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


def _checked(found: object, path: str, name: str) -> type[Scenario]:
    if not (isinstance(found, type) and issubclass(found, Scenario)):
        raise SetupError(f"{path}: {name} is not a subclass of harness.workload.scenarios.Scenario")
    for where, problem in _faults(found):
        raise SetupError(f"{path}:{inspect.getsourcelines(where)[1]}: {name}{problem}")
    return found


def _faults(made: type[Scenario]) -> Iterator[tuple[Callable[..., object], str]]:
    """The mistakes of a scenario: class or method, and problem."""
    if mismatch := _call_mismatch(made, 1):
        yield made, f" must take one argument, the Setting ({mismatch})"
    if not made.actions:
        yield made, ".actions is empty: nothing would be sent"
    for action in made.actions:
        method = getattr(made, action, None)
        if (base := _base_with(action)) is not None:
            yield (
                method if action in vars(made) and callable(method) else made,
                f".actions names {action!r}, which every scenario inherits from {base} for its own "
                f"work; give the action and its method another name, such as 'do_{action}'",
            )
        elif not callable(method):
            yield made, f".actions names {action!r}; there is no such method"
        elif mismatch := _call_mismatch(method, 2):
            yield method, f".{action} must take one argument, the random source ({mismatch})"
    for table in filter(None, made.tables):
        if not (table.isascii() and table.isalnum() and table[0].isupper()):
            yield made, f".tables: {table!r} is not a capital letter, then letters and digits"
        if len(table) > _TABLE_ENDING_CHARACTERS:
            yield made, f".tables: {table!r} is over {_TABLE_ENDING_CHARACTERS} characters"


def _base_with(name: str) -> str | None:
    """The base class of all scenarios that has an attribute of this name; None if none has."""
    for base in Scenario.__mro__:
        if name in vars(base) or name in inspect.get_annotations(base):
            return base.__name__
    return None


def _call_mismatch(function: Callable[..., object], arguments: int) -> str:
    """Why ``function`` cannot be called with this number of ``arguments``; empty if it can."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError as error:
        return str(error)
    return ""


@contextmanager
def own_mistakes(name: str) -> Iterator[None]:
    """Turn what a user's code raises into a `SetupError`: a sentence with file and line."""
    try:
        yield
    except SetupError:
        raise
    except SyntaxError as error:
        raise SetupError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise SetupError(f"scenario {name}: {mistake_of(error)}") from error


def mistake_of(error: BaseException) -> str:
    """An exception of a workload as a sentence with file and line, of the user's code if any."""
    if isinstance(error, SetupError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _HARNESS not in Path(frame.filename).parents]
    if not theirs and isinstance(error, TransactionTooLargeError):
        # A shipped scenario: the profile is wrong, not a line of code.
        return str(error)
    frame = (theirs or frames)[-1]
    where = f"{frame.filename}:{frame.lineno}: in {frame.name}"
    return f"{where}: {type(error).__name__}: {error}"
