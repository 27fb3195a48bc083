"""Custom metrics: files `metric/NAME.yaml` in a folder of `--config-dir`, and entry points of `gpbench.metrics`.
Scored on the test rows of every run beside ours, they change the identity of none, and a record keeps title, unit and
direction as plain data.  Starts without JAX and NumPy."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import plugins, targets
from gpbench.errors import ConfigError, as_word, either, nearest, refuse, require
from gpbench.log import log
from gpbench.registry import AUTO, TARGET, Registry
from gpbench.schema import Range

if TYPE_CHECKING:
    import numpy as np

    from gpbench.metrics import Scored

GROUP = "gpbench.metrics"
NAMES = (
    *("nll", "error", "ece", "brier", "auc", "coverage_error", "rmse", "test_ll", "mnlp", "crps", "coverage95"),
    *("width95", "interval95", "interval80", "rmse_std", "ll_std", "nmse", "tail_ll", "tail_crps", "vlb"),
    *("vlb_per_row", "seconds"),
)
"""Names of our metrics, those of `gpbench.metrics.METRICS`."""
COUNTED = ("step_memory_mb", "step_operations", "row_operations")
"""Fields of a record that claims compare like metrics: counted, so that they have no error and depend on no machine."""
_OURS = Registry("metric", **dict.fromkeys([*NAMES, "objective", *COUNTED, "all"]))
_LINE = Range(lambda text: isinstance(text, str) and text.isprintable() and len(text) <= 200, "a text of one line")
_KEYS = {
    **{"title": _LINE, "unit": _LINE},
    "better": Range(lambda text: text in ("lower", "higher", None), "lower or higher, or null without a direction"),
    "tasks": Range(
        lambda tasks: isinstance(tasks, list) and bool(tasks) and all(task in [*AUTO] for task in tasks),
        f"a list of {either(AUTO)}",
    ),
}
"""Keys of a declaration besides the function and its options."""


@dataclass(frozen=True)
class OwnMetric:
    """A custom metric, as a file `metric/NAME.yaml` or an entry point declares it."""

    name: str
    source: str  # the place that names it, for messages
    title: str
    unit: str
    better: str | None  # "lower", "higher", or None without a direction
    tasks: tuple[str, ...]
    target: str = ""  # dotted path of the function in a file, with keyword arguments
    options: Mapping[str, Any] = field(default_factory=dict)
    compute: Callable[["Scored"], Any] | None = None  # None until the function is imported

    def value(self, scored: "Scored") -> float:
        """The metric of a test set.  Raises ConfigError as `numbers` does."""
        import numpy as np

        return float(np.mean(self.numbers(scored), dtype=float))

    def numbers(self, scored: "Scored") -> "np.ndarray":
        """The numbers of a test set: the metric, (), or one number for each row, (n,)."""
        import numpy as np

        assert self.compute is not None
        try:
            result = np.asarray(self.compute(scored))
        except (Exception, SystemExit) as error:  # a user's function can raise anything
            raise ConfigError(f"{self}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
        is_number = result.dtype.kind in "fiub" and result.shape in ((), scored.y.shape)
        fact = f"one for each of {len(scored.y)} rows, not {result.dtype} of shape {result.shape}"
        require(is_number, f"{self}: must return a number, or {fact}", ConfigError)
        return result

    def __str__(self) -> str:
        return f"metric {self.name} ({self.source})"


@dataclass(frozen=True)
class OwnMetrics:
    """The custom metrics that a job scores."""

    metrics: Sequence[OwnMetric] = ()
    _reported: set[str] = field(default_factory=set, repr=False, compare=False)

    def score(self, task: str, scored: "Scored") -> tuple[dict[str, float], dict[str, float]]:
        """The metrics of a task by name, NaN if a prediction is NaN, and finite standard errors of those that have a
        number for each row.  A metric that fails is reported on stderr, once, and left out.
        """
        import numpy as np

        from gpbench.scored import row_stderr

        numbers = {}
        lost = bool(np.isnan(scored.log_prob).any())
        for own in (own for own in self.metrics if task in own.tasks):
            try:
                numbers[own.name] = np.asarray(np.nan) if lost else own.numbers(scored)
            except ConfigError as error:
                if (line := str(error)) not in self._reported:
                    self._reported.add(line)
                    log.warning(f"{line}; runs are recorded without it")
        values = {name: float(np.mean(rows, dtype=float)) for name, rows in numbers.items()}
        errors = {name: row_stderr(rows) for name, rows in numbers.items() if rows.ndim}
        return values, {name: error for name, error in errors.items() if np.isfinite(error)}

    def describe(self, names: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
        """Title, unit and direction of those of these metrics that are custom, as a record keeps them."""
        facts = ("title", "unit", "better")
        return {own.name: {fact: getattr(own, fact) for fact in facts} for own in self.metrics if own.name in names}


def declarations(folders: Sequence[Path]) -> dict[str, OwnMetric]:
    """The files `metric/NAME.yaml` of some folders, by name and without their functions; of two with one name the first
    counts.
    """
    files = {path.stem: path for folder in reversed(folders) for path in (folder / "metric").glob("*.yaml")}
    return {name: _read(files[name]) for name in sorted(files)}


def load(folders: Sequence[Path]) -> OwnMetrics:
    """The metrics of these folders, and those of installed packages; broken entry points are reported on stderr and
    skipped.  Raises ConfigError: as `declarations` does; a function that cannot be imported or lacks one of the
    options."""
    own = {name: _imported(declared) for name, declared in declarations(folders).items()}
    return OwnMetrics([*own.values(), *(metric for metric in _installed() if metric.name not in own)])


def get(name: str, folders: Sequence[Path], options: Mapping[str, Any]) -> OwnMetric:
    """One metric of these folders or of an installed package.  Raises ConfigError as `load` does."""
    files = declarations(folders)
    if own := files.get(name):
        return _imported(replace(own, options={**own.options, **options}))
    installed = {own.name: own for own in _installed()}
    known = [*files, *installed]
    hint = nearest(name, known) if known else f"name the folder that has metric/{name}.yaml with --config-dir"
    refuse(
        "",
        (name not in installed, f"no custom metric {name!r}; {hint}"),
        (options, f"metric {name} of an installed package has no options; leave them out"),
    )
    return installed[name]


def _imported(own: OwnMetric) -> OwnMetric:
    """The metric of a file with its function.  Raises ConfigError where that cannot be imported or called so."""
    known: list[str] = []
    function = targets.load(own.target, own.source)
    try:
        signature = inspect.signature(function)
        known = list(signature.parameters)[1:]
        signature.bind(None, **own.options)
    except (TypeError, ValueError) as error:
        unknown = [option for option in own.options if known and option not in known]
        hint = f"; {nearest(unknown[0], known)}" if unknown else ""
        raise ConfigError(f"{own.source}: {TARGET} {own.target}: {error}{hint}") from error
    return replace(own, compute=partial(function, **own.options))


def _installed() -> Iterator[OwnMetric]:
    """The metrics that entry points name, each a `gpbench.metrics.Metric`."""
    for point in plugins.points(GROUP):
        from gpbench.metrics import Metric

        try:
            metric = point.load()
            fault = "" if isinstance(metric, Metric) and metric.compute else "is no gpbench.metrics.Metric"
        except (Exception, SystemExit) as error:  # importing another package can raise anything
            fault = f"{type(error).__name__}: {error}"
        if fault := fault or _name_fault(point.name):
            log.warning(f"left out the entry point {point.name} of {GROUP}: {fault}")
        else:
            facts = (metric.title, metric.unit, metric.better, metric.tasks)
            yield OwnMetric(point.name, f"entry point {point.value}", *facts, compute=metric.compute)


def _read(path: Path) -> OwnMetric:
    """A file's declaration, checked."""
    content = _OURS.content(path)
    values = {key: content.pop(key, "") for key in _KEYS}
    refuse(
        f"{path}: ",
        (not path.stem.isidentifier(), f"{_name_fault(path.stem)}; rename the file"),
        *(
            (not range.contains(values[key]), f"{key} must be {range.text}, not {as_word(values[key])}")
            for key, range in _KEYS.items()
        ),
    )
    title, unit, better, tasks = values.values()
    return OwnMetric(path.stem, str(path), title, unit, better, tuple(tasks), content.pop(TARGET), content)


def _name_fault(name: str) -> str:
    """The reason for which a metric cannot have a name; "" where it can."""
    if name in _OURS:
        return f"the name {name} is built in"
    return "" if name.isidentifier() else f"the name {name} must have letters, digits and underscores only"
