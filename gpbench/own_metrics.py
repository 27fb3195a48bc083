"""Custom metrics: files `metric/NAME.yaml` in a folder of `--config-dir`, and entry points of `gpbench.metrics`.

They are scored on the test rows of every run beside ours, and change the identity of none.  A record keeps title, unit
and direction as plain data, so that nothing that reads it imports the function.  Starts without JAX and NumPy.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import custom, targets, yamls
from gpbench.errors import ConfigError, as_word, either, nearest
from gpbench.registry import AUTO, TARGET

if TYPE_CHECKING:
    import numpy as np

    from gpbench.metrics import Metric, Scored

GROUP = "gpbench.metrics"
NAMES = (
    *("nll", "error", "ece", "brier", "auc", "coverage_error", "rmse", "test_ll", "mnlp", "crps", "coverage95"),
    *("width95", "rmse_std", "ll_std", "nmse", "vlb", "vlb_per_row", "seconds"),
)
"""Names of our metrics, those of `gpbench.metrics.METRICS`."""
COUNTED = ("step_memory_mb", "step_operations", "row_operations")
"""Fields of a record that claims compare like metrics: counted, so that they have no error and depend on no machine."""
_RESERVED = (*NAMES, "objective", *COUNTED, "all")
_KEYS = (TARGET, "title", "unit", "better", "tasks")


@dataclass(frozen=True)
class Declaration:
    """A file `metric/NAME.yaml`.

    Attributes:
        name: Name of the metric, that of the file.
        path: The file.
        target: Dotted path of the function.
        title: Title, as the head of a table prints it.
        unit: Unit of its values.
        better: "lower", "higher", or None without a direction.
        tasks: Tasks that the metric is for.
        options: Keyword arguments of the function.
    """

    name: str
    path: Path
    target: str
    title: str
    unit: str
    better: str | None
    tasks: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class OwnMetric:
    """A metric with the place that names it, for messages."""

    metric: "Metric"
    source: str

    def value(self, scored: "Scored") -> float:
        """The metric of a test set.  Raises ConfigError as `numbers` does."""
        import numpy as np

        return float(np.mean(self.numbers(scored), dtype=float))

    def numbers(self, scored: "Scored") -> "np.ndarray":
        """What the function returns for a test set: the metric, (), or one number for each row, (n,).  Raises
        ConfigError: the function raises, or returns neither a number nor one for each row.
        """
        import numpy as np

        assert self.metric.compute is not None
        try:
            result = np.asarray(self.metric.compute(scored))
        except (Exception, SystemExit) as error:  # a user's function can raise anything
            raise ConfigError(f"{self}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
        if result.dtype.kind not in "fiub" or result.shape not in ((), scored.y.shape):
            kind = f"{result.dtype} of shape {result.shape}"
            raise ConfigError(f"{self}: must return a number, or one for each of {len(scored.y)} rows, not {kind}")
        return result

    def __str__(self) -> str:
        return f"metric {self.metric.name} ({self.source})"


@dataclass(frozen=True)
class OwnMetrics:
    """The custom metrics that a job scores."""

    metrics: Sequence[OwnMetric] = ()
    _reported: set[str] = field(default_factory=set, repr=False, compare=False)

    def score(self, task: str, scored: "Scored") -> tuple[dict[str, float], dict[str, float]]:
        """Computes the metrics of a task.  Returns values by name, all NaN if a prediction is NaN, and finite standard
        errors of those that have a number for each row.  A metric that fails is reported on stderr, once, and left out.
        """
        import numpy as np

        from gpbench.scored import row_stderr

        numbers = {}
        lost = bool(np.isnan(scored.log_prob).any())
        for own in self.metrics:
            if task not in own.metric.tasks:
                continue
            try:
                numbers[own.metric.name] = np.asarray(np.nan) if lost else own.numbers(scored)
            except ConfigError as error:
                if str(error) not in self._reported:
                    self._reported.add(str(error))
                    print(f"gpbench: {error}; runs are recorded without it", file=sys.stderr)
        values = {name: float(np.mean(rows, dtype=float)) for name, rows in numbers.items()}
        errors = {name: row_stderr(rows) for name, rows in numbers.items() if rows.ndim}
        return values, {name: error for name, error in errors.items() if np.isfinite(error)}

    def describe(self, names: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
        """Title, unit and direction of those of these metrics that are custom, as a record keeps them."""
        known = {own.metric.name: own.metric for own in self.metrics}
        return {
            name: {"title": metric.title, "unit": metric.unit, "better": metric.better}
            for name, metric in known.items()
            if name in names
        }


def declarations(folders: Sequence[Path]) -> dict[str, Declaration]:
    """The files `metric/NAME.yaml` of some folders, by name; of two with one name the first counts.  Raises
    ConfigError: A file is no declaration, or has the name of a built-in one.
    """
    metrics: dict[str, Declaration] = {}
    for folder in folders:
        for path in sorted((folder / "metric").glob("*.yaml")):
            metrics.setdefault(path.stem, _read(path))
    return metrics


def load(folders: Sequence[Path]) -> OwnMetrics:
    """The metrics of these folders, and those of installed packages.

    Broken entry points are reported on stderr and skipped.  Raises ConfigError: as `declarations` does; a function that
    cannot be imported or lacks one of the options.
    """
    own = {name: constructed(declaration) for name, declaration in declarations(folders).items()}
    for metric in _installed():
        own.setdefault(metric.metric.name, metric)
    return OwnMetrics([*own.values()])


def get(name: str, folders: Sequence[Path], options: Mapping[str, Any]) -> OwnMetric:
    """One metric of these folders or of an installed package.  Raises ConfigError: there is no such metric, and as
    `load` does.
    """
    files = declarations(folders)
    if name in files:
        return constructed(replace(files[name], options={**files[name].options, **options}))
    installed = {own.metric.name: own for own in _installed()}
    if name not in installed or options:
        if name in installed:
            raise ConfigError(f"metric {name} of an installed package has no options; leave them out")
        known = [*files, *installed]
        hint = nearest(name, known) if known else f"name the folder that has metric/{name}.yaml with --config-dir"
        raise ConfigError(f"no custom metric {name!r}; {hint}")
    return installed[name]


def constructed(declaration: Declaration) -> OwnMetric:
    """The metric of a file, with its function.  Raises ConfigError where that cannot be imported or called so."""
    from gpbench.metrics import Metric

    d, known = declaration, []
    function = targets.load(d.target, str(d.path))
    try:
        signature = inspect.signature(function)
        known = list(signature.parameters)[1:]
        signature.bind(None, **d.options)
    except (TypeError, ValueError) as error:
        unknown = [option for option in d.options if known and option not in known]
        hint = f"; {nearest(unknown[0], known)}" if unknown else ""
        raise ConfigError(f"{d.path}: {TARGET} {d.target}: {error}{hint}") from error
    compute = partial(function, **d.options)
    return OwnMetric(Metric(d.name, d.unit, d.better, d.tasks, compute, d.title), str(d.path))  # type: ignore[arg-type]


def _installed() -> Iterator[OwnMetric]:
    """The metrics that entry points name, each a `gpbench.metrics.Metric`."""
    for point in sorted(custom.installed(GROUP, entry_points), key=lambda point: (point.name, point.value)):
        from gpbench.metrics import Metric

        try:
            metric = point.load()
            fault = "" if isinstance(metric, Metric) and metric.compute else "is no gpbench.metrics.Metric"
        except (Exception, SystemExit) as error:  # importing another package can raise anything
            fault = f"{type(error).__name__}: {error}"
        if fault := fault or _name_fault(point.name):
            print(f"gpbench: left out the entry point {point.name} of {GROUP}: {fault}", file=sys.stderr)
        else:
            yield OwnMetric(replace(metric, name=point.name), f"entry point {point.value}")


def _read(path: Path) -> Declaration:
    """A file's declaration, checked."""
    if fault := _name_fault(path.stem):
        raise ConfigError(f"{path}: {fault}; rename the file")
    content = yamls.read(path)
    target = content.get(TARGET) if isinstance(content, dict) else None
    if not (isinstance(target, str) and "." in target):
        raise ConfigError(f"{path}: must be a mapping with a line `{TARGET}: MODULE.FUNCTION`")
    title, unit = content.get("title", ""), content.get("unit", "")
    for key, text in (("title", title), ("unit", unit)):
        if not (isinstance(text, str) and text.isprintable() and len(text) <= 200):
            raise ConfigError(f"{path}: {key} must be a text of one line, not {as_word(text)}")
    if (better := content.get("better", "")) not in ("lower", "higher", None):
        raise ConfigError(f"{path}: better must be lower or higher, or null without a direction")
    tasks = content.get("tasks")
    if not (isinstance(tasks, list) and tasks and all(task in AUTO for task in tasks)):
        raise ConfigError(f"{path}: tasks must be a list of {either(AUTO)}, not {as_word(tasks)}")
    options = {str(key): value for key, value in content.items() if key not in _KEYS}
    return Declaration(path.stem, path, target, title, unit, better, tuple(tasks), options)


def _name_fault(name: str) -> str:
    """The reason for which a metric cannot have a name; "" where it can."""
    if name in _RESERVED:
        return f"the name {name} is built in"
    return "" if name.isidentifier() else f"the name {name} must have letters, digits and underscores only"
