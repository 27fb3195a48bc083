"""The record of a finished run: its fields, and how their values become JSON.  No JAX, NumPy or pandas."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_origin

from gpbench.records.identity import SCHEMA

_LARGEST = 1e150  # largest absolute value of a metric or an objective: squares of larger numbers are not finite


class _Stored:
    __slots__ = ("_names", "_others")
    _names: tuple[str, ...]  # names of the fields that JSON has, in its order
    _others: Mapping[str, Any]  # fields that this gpbench does not know


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Record(_Stored):
    """The record of a finished run, as record.json has it: made by `from_json`, from what was stored, or by `create`,
    from a run's results.  Fields that it lacks, as those that a later gpbench added, have their default; fields that
    this gpbench does not know are kept.  Two records are equal when they have the same fields with the same values."""

    id: str  # hash of the configuration that determines the run's numbers (`gpbench.records.identity`)
    status: str  # `done`; `diverged`: objective or predictions are not finite; `failed`: no predictions
    dataset: str  # name of the data set's card
    method: str  # name of the method
    setting: str  # settings in which the run differs from the method's defaults, as in `m=15%, update=outer`
    protocol: str  # name of the protocol
    split: int  # number of the split, from 0
    seed: int  # seed of the run's random keys
    metrics: Mapping[str, float | None]  # metrics on the test rows; None where one is not finite, or `undefined`
    seconds: Mapping[str, float | None]  # seconds of this run by phase (`compile`, ...); a group's are shared equally

    undefined: Mapping[str, str] | None = None  # why metrics do not exist on the test rows, as in `{"auc": "1 class"}`
    # standard errors over the test rows of those metrics that are means over rows or functions of means; they are of
    # the one model that was trained: other training rows or another seed make another model
    row_stderr: Mapping[str, float | None] | None = None
    # title, unit and direction (`better`: lower, higher or None) of the metrics that are a user's own
    own_metrics: Mapping[str, Mapping[str, str | None]] | None = None
    schema: int | None = None  # version of the definition of identity and record; records without one have version 1
    cell: str | None = None  # hash of the identity without split and seed: runs of one cell are averaged
    message: str | None = None  # reason for the divergence or the failure; None for other runs
    preset: str | None = None  # preset of the experiment for which the run was made
    precision: str | None = None  # `float32` or `float64`
    split_set: str | None = None  # name of the card's set of splits
    output: str | int | None = None  # name of the output, where the data set has several
    held_out: bool | None = None  # False where the test rows are training rows
    scaled_by_all_rows: bool | None = None  # True where the scalers saw the test rows too
    train_rows: int | None = None  # number of training rows
    test_rows: int | None = None  # number of test rows
    test_rows_outside: int | None = None  # number of test rows outside the range of the training inputs
    data_checksum: str | None = None  # SHA-256 of the data set's arrays
    inputs: str | None = None  # names of the inputs; of many the first ones, the last one and their number
    target: str | None = None  # name of the target, or of the outputs
    steps: int | None = None  # number of training steps; of a run that stopped early, the step at which it did
    converged: bool | None = None  # True if the stopping rule of training was met; None where the method has none
    objective: float | None = None  # objective after the last step
    group: int | None = None  # number of runs that were trained together in one program
    settings: Mapping[str, float | None] | None = None  # settings chosen on validation rows, by name
    diagnostics: Mapping[str, float | None] | None = None  # diagnostics of the method by name, such as `rhat`
    peak_memory_mb: float | None = None  # peak memory of the process or the device, in MB
    step_memory_mb: float | None = None  # memory of one compiled training step, in MB
    step_operations: float | None = None  # arithmetic operations of a training step (`gpbench.core.operations`)
    row_operations: float | None = None  # the same of the prediction of one test row
    cpu_limit: float | None = None  # CPU seconds within which a run with predictions had to end (`run.cpu_limit`)
    cpu_seconds: float | None = None  # CPU seconds without compilation
    machine_rate: float | None = None  # how fast a CPU second was, of a run with `cpu_limit` (`gpbench.train.rate`)
    kept: bool | None = None  # True if the arrays that pictures show were kept (`run.keep`)
    saved: bool | None = None  # True if the trained state was saved (`run.save`)
    device: str | None = None  # name of the device
    devices: int | None = None  # number of devices
    processes: int | None = None  # number of processes
    simulated: bool | None = None  # True if the devices are simulated by one processor
    versions: Mapping[str, Any] | None = None  # versions of Python, gpbench and the packages that can change a number
    packages: str | None = None  # checksum of the list of installed packages (`gpbench.records.packages`)
    commit: str | None = None  # commit of the code
    dirty: bool | None = None  # True if code or configuration differed from the commit
    host: Mapping[str, Any] | None = None  # processor, cores and memory of the machine
    created: str | None = None  # time at which the run began (ISO 8601, UTC)
    imported: bool | None = None  # True for another program's predictions
    source: str | None = None  # file with another program's predictions
    source_checksum: str | None = None  # SHA-256 of that file
    shipped: bool | None = None  # True for a run that ships with gpbench, where it is read beside others

    @classmethod
    def from_json(cls, value: Any, id: str | None = None) -> "Record":
        """The record that a value of `json.loads` holds, of this `id` where one is given.  Raises ValueError: a field
        is missing, a value has another type or range, or a newer gpbench wrote it."""
        if fault := _problem(value, id):
            raise ValueError(fault)
        record, names, known = cls.__new__(cls), tuple(value), field_types()
        for name, (store, default) in slots().items():
            store(record, value.get(name, default))
        record._keep(names, {} if known.keys() >= {*names} else {k: value[k] for k in names if k not in known})
        return record

    @classmethod
    def create(cls, **values: Any) -> "Record":
        """The record of these fields (`values`); numbers that are not finite, or too large, become None."""
        return cls.from_json(clean(values))

    def to_json(self) -> dict[str, Any]:
        """The record as JSON has it: the fields that it was made with, in that order."""
        others = self._others
        return {name: others[name] if name in others else getattr(self, name) for name in self._names}

    def mark_shipped(self) -> None:
        """Marks a run that ships with gpbench."""
        object.__setattr__(self, "shipped", True)
        self._keep((*self._names, "shipped"), self._others)

    def value(self, name: str) -> Any:
        """The value of a field, or of a field's entry, as in `metrics.nll`; None where there is none."""
        field, _, key = name.partition(".")
        value = getattr(self, field) if field in slots() else self._others.get(field)
        if not key:
            return value
        return value.get(key) if isinstance(value, Mapping) else None

    def names(self) -> Iterator[str]:
        """The names for which `value` has an entry."""
        for name, value in self.to_json().items():
            yield name
            if isinstance(value, Mapping):
                yield from (f"{name}.{key}" for key in value)

    @property
    def diverged(self) -> bool:
        """True if the run diverged."""
        return self.status == "diverged"

    @property
    def label(self) -> str:
        """Data set, method, setting and split, as in `pima  sep  m=15%  0`."""
        return "  ".join(filter(None, [self.dataset, self.method, self.setting, str(self.split)]))

    @property
    def rated_seconds(self) -> float:
        """CPU seconds that a machine of rate 1 would take, as this one was where its rate is unknown; or NaN."""
        return math.nan if self.cpu_seconds is None else self.cpu_seconds * (self.machine_rate or 1.0)

    @property
    def age(self) -> tuple[str, str]:
        """Sort key: the oldest record first."""
        return self.created or "", self.id

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Record) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return Record.from_json, (self.to_json(),)

    def __post_init__(self) -> None:
        self._keep(tuple(slots()), {})

    def _keep(self, names: tuple[str, ...], others: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_others", others)


@functools.cache
def slots() -> Mapping[str, tuple[Callable[[Record, Any], None], Any]]:
    """What stores each field, and its default: the slots of a record take a quarter of a dictionary's memory."""
    defaults = {field.name: None if field.default is MISSING else field.default for field in fields(Record)}
    return {name: (getattr(Record, name).__set__, default) for name, default in defaults.items()}


def field_types() -> Mapping[str, tuple[type, ...]]:
    """The exact types of each field's values, as JSON has them; `NoneType` where it may be absent."""
    return _kinds()[0]


@functools.cache
def _kinds() -> tuple[Mapping[str, tuple[type, ...]], frozenset[str], frozenset[str]]:
    """The exact types of each field (a truth value is no number), the fields that all have, and reserved names."""
    kinds = {field.name: _types(field.type) for field in fields(Record)}
    needed = frozenset(field.name for field in fields(Record) if field.default is MISSING)
    return kinds, needed, frozenset(dir(Record)).difference(kinds)


def _types(annotation: Any) -> tuple[type, ...]:
    if (origin := get_origin(annotation)) is Mapping:
        return (dict,)
    if origin is not None:  # a union
        return tuple(kind for item in get_args(annotation) for kind in _types(item))
    return (int, float) if annotation is float else (annotation,)


def clean(value: Any, largest: float = _LARGEST) -> Any:
    """JSON-clean: NaN, infinities and numbers beyond `largest` to None, NumPy's to Python's, tuples to lists.  Of a
    path that is not UTF-8, the bytes that no text has become escapes, which YAML can read."""
    if isinstance(value, Mapping):
        return {str(key): clean(item, largest) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [clean(item, largest) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return None if isinstance(value, float) and not (math.isfinite(value) and abs(value) <= largest) else value


def _problem(value: Any, id: str | None) -> str:
    """The first problem of a record, for a message; "" without one."""
    kinds, needed, reserved = _kinds()
    if not isinstance(value, dict):
        return "its record.json is not a mapping"
    wrong = [] if needed <= value.keys() else sorted(needed - value.keys())
    wrong += [name for name, item in value.items() if type(item) not in kinds.get(name, (type(item),))]
    if wrong:
        return f"{', '.join(wrong)} missing or of the wrong type"
    if not reserved.isdisjoint(value):
        return f"{min(reserved & value.keys())} is no field of a record"
    if (value.get("schema") or 1) > SCHEMA:
        return f"it has schema {value['schema']}, and this gpbench reads up to {SCHEMA}: upgrade"
    if id is not None and value["id"] != id:
        return f"it says that its id is {_short(value['id'])}"
    if value["status"] not in ("done", "diverged", "failed"):
        return f"status {_short(value['status'])!r} is none of done, diverged and failed"
    if value["split"] < 0:
        return f"split {value['split']} is below 0"
    for table in ("metrics", "row_stderr", "seconds", "diagnostics", "settings"):
        for name, number in (value.get(table) or {}).items():
            if number is None or (type(number) is float and -_LARGEST <= number <= _LARGEST):
                continue
            if type(number) not in (float, int):
                return f"{_short(name)} is not a number"
            if not abs(number) <= _LARGEST:
                return f"{_short(name)} is {number:g}, beyond {_LARGEST:g}"
    for name, number in (value.get("row_stderr") or {}).items():
        if (number or 0) < 0:
            return f"row_stderr.{_short(name)} is {number:g}, below 0"
    for name, reason in (value.get("undefined") or {}).items():
        if not _is_line(reason):
            return f"undefined.{_short(name)} is no reason in a line"
    for name, described in (value.get("own_metrics") or {}).items():
        is_mapping = isinstance(described, dict) and described.get("better") in ("lower", "higher", None)
        if not is_mapping or not all(_is_line(described.get(key) or "") for key in ("title", "unit")):
            return f"own_metrics.{_short(name)} is no title, unit and direction"
    if not abs(value.get("objective") or 0) <= _LARGEST:
        return f"objective is {value['objective']:g}, beyond {_LARGEST:g}"
    return ""


def _is_line(text: Any) -> bool:
    """Tests for a text of one line, which tables print."""
    return isinstance(text, str) and text.isprintable() and len(text) <= 200


def _short(text: str) -> str:
    """A text of unknown length in a message of one line, whatever its characters."""
    escaped = ascii(text)[1:-1]
    return escaped if len(escaped) <= 60 else escaped[:57] + "..."
