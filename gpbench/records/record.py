"""The record of a finished run: its fields.

Imports neither JAX nor NumPy nor pandas.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_origin

from gpbench.records.values import clean, problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """The record of a finished run, as record.json has it.

    A value is made by `from_json`, from what was stored, or by `create`, from a run's results.  Fields that a record
    lacks, for instance those that another version of gpbench added, have their default.  Fields that this version does
    not know are kept.  Two records are equal when they have the same fields with the same values.
    """

    id: str
    """Hash of the configuration that determines the run's numbers (`gpbench.records.identity`)."""
    status: str
    """`done`; `diverged` where the objective or the predictions are not finite; `failed` where a run with a budget has
    no predictions (`undefined` has the reason)."""
    dataset: str
    """Name of the data set's card."""
    method: str
    """Name of the method."""
    setting: str
    """Settings in which the run differs from the method's defaults, as in `m=15%, update=outer`."""
    protocol: str
    """Name of the protocol."""
    split: int
    """Number of the split, from 0."""
    seed: int
    """Seed of the run's random keys."""
    metrics: Mapping[str, float | None]
    """Metrics on the test rows by name; None where one is not finite, or does not exist (`undefined`)."""
    seconds: Mapping[str, float | None]
    """Seconds of this run by phase (`compile`, `train`, `evaluate`, ...); a group's are shared equally."""

    undefined: Mapping[str, str] | None = None
    """Reasons for which metrics do not exist on the test rows, by name, as in `{"auc": "1 class"}`."""
    row_stderr: Mapping[str, float | None] | None = None
    """Standard errors over the test rows, by name, of those metrics that are means over rows or functions of means.

    They are of the one model that was trained: other training rows or another seed make another model."""
    own_metrics: Mapping[str, Mapping[str, str | None]] | None = None
    """Title, unit and direction (`better`: lower, higher or None) of the metrics that are a user's own, by name."""
    schema: int | None = None
    """Version of the definition of identity and record; records without one have version 1."""
    cell: str | None = None
    """Hash of the identity without split and seed: runs of one cell are averaged."""
    message: str | None = None
    """Reason for the divergence or the failure; None for other runs."""
    preset: str | None = None
    """Preset of the experiment for which the run was made."""
    precision: str | None = None
    """`float32` or `float64`."""
    split_set: str | None = None
    """Name of the card's set of splits."""
    output: str | int | None = None
    """Name of the output, where the data set has several."""
    held_out: bool | None = None
    """False where the test rows are training rows."""
    scaled_by_all_rows: bool | None = None
    """True where the scalers saw the test rows too."""
    train_rows: int | None = None
    """Number of training rows."""
    test_rows: int | None = None
    """Number of test rows."""
    test_rows_outside: int | None = None
    """Number of test rows outside the range of the training inputs."""
    data_checksum: str | None = None
    """SHA-256 of the data set's arrays."""
    inputs: str | None = None
    """Names of the inputs; of many the first ones, the last one and their number."""
    target: str | None = None
    """Name of the target, or of the outputs."""
    steps: int | None = None
    """Number of training steps; of a run that stopped early, the step at which it did (`stop_after`)."""
    converged: bool | None = None
    """True if the stopping rule of training was met; None where the method has none."""
    objective: float | None = None
    """Objective after the last step."""
    group: int | None = None
    """Number of runs that were trained together in one program."""
    settings: Mapping[str, float | None] | None = None
    """Settings chosen on validation rows, by name."""
    diagnostics: Mapping[str, float | None] | None = None
    """Diagnostics of the method by name, such as `rhat`."""
    peak_memory_mb: float | None = None
    """Peak memory of the process or the device, in MB."""
    step_memory_mb: float | None = None
    """Memory of one compiled training step, in MB."""
    step_operations: float | None = None
    """Arithmetic operations of one training step, counted (`gpbench.core.operations`); None of earlier records."""
    row_operations: float | None = None
    """The same of the prediction of one test row."""
    budget: float | None = None
    """CPU seconds that the run was allowed until its predictions (`run.budget`)."""
    cpu_seconds: float | None = None
    """CPU seconds of all threads, from the start of the process until the predictions, of a run with a budget."""
    kept: bool | None = None
    """True if the arrays that pictures show were kept (`run.keep`)."""
    saved: bool | None = None
    """True if the trained state was saved (`run.save`)."""
    device: str | None = None
    """Name of the device."""
    devices: int | None = None
    """Number of devices."""
    processes: int | None = None
    """Number of processes."""
    simulated: bool | None = None
    """True if the devices are simulated by one processor."""
    versions: Mapping[str, Any] | None = None
    """Versions of Python, gpbench and the packages that can change a number."""
    packages: str | None = None
    """Checksum of the list of all installed packages (`gpbench.records.packages`); None of earlier records."""
    commit: str | None = None
    """Commit of the code."""
    dirty: bool | None = None
    """True if code or configuration differed from the commit."""
    host: Mapping[str, Any] | None = None
    """Processor, cores and memory of the machine."""
    created: str | None = None
    """Time at which the run began (ISO 8601, UTC)."""
    imported: bool | None = None
    """True for another program's predictions."""
    source: str | None = None
    """File with another program's predictions."""
    source_checksum: str | None = None
    """SHA-256 of that file."""
    shipped: bool | None = None
    """True for a run that ships with gpbench, where it is read beside others."""

    @classmethod
    def from_json(cls, value: Any, id: str | None = None) -> "Record":
        """The record that a JSON value holds, checked.

        Args:
            value: a value of `json.loads`; anything but a whole record is refused.
            id: the id that the record must have.

        Raises:
            ValueError: the record lacks a field, a value has another type or range, or a newer gpbench wrote it.
        """
        if fault := problem(value, *_kinds(), id):
            raise ValueError(fault)
        record = cls.__new__(cls)
        # The instance's dictionary has what the JSON has, in its order; the class has the defaults of all else.
        vars(record).update(value)
        return record

    @classmethod
    def create(cls, **values: Any) -> "Record":
        """The record of these fields; numbers that are not finite, or too large, become None.

        Raises:
            ValueError: as in `from_json`.
        """
        return cls.from_json(clean(values))

    def to_json(self) -> dict[str, Any]:
        """The record as JSON has it: the fields that it was made with, in that order."""
        return dict(vars(self))

    def value(self, name: str) -> Any:
        """The value of a field, or of a field's entry, as in `metrics.nll`; None where there is none."""
        field, _, key = name.partition(".")
        value = vars(self).get(field)
        if not key:
            return value
        return value.get(key) if isinstance(value, Mapping) else None

    def names(self) -> Iterator[str]:
        """The names for which `value` has an entry."""
        for name, value in vars(self).items():
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
    def age(self) -> tuple[str, str]:
        """Sort key: the oldest record first."""
        return self.created or "", self.id

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Record) else NotImplemented


FIELDS = tuple(field.name for field in fields(Record))
"""Names of a record's fields."""


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
