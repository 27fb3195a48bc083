"""Whether the table and the figure of an experiment can be laid out: keys that its runs have, and known metrics.

Checked when the file is read: what is wrong there would otherwise end in an error after the training.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpbench.errors import ConfigError, as_word, nearest

Runs = Sequence[Mapping[str, Any]]
"""The blocks of runs as the file has them."""

Check = Callable[[Path, str, Any, Runs], None]
"""Checks a value that the file has at a place, as in `table.rows`; raises ConfigError."""


class Options(NamedTuple):
    """The options that a layout must have, and those that it may have, each with its check; None checks nothing."""

    required: Mapping[str, Check | None]
    optional: Mapping[str, Check | None] = {}


def check(path: Path, table: Any, figure: Any, runs: Runs) -> None:
    """Checks the sections `table` and `figure` of a file, where it has them.

    Raises ConfigError, which names the file and the option, for an unknown or missing option, a key that not every run
    has, an unknown metric, and what is there twice.
    """
    if table:
        _check_options(path, "table", table, _TABLE, runs)
    if figure:
        kind: Any = figure.get("kind") if isinstance(figure, Mapping) else None
        if not isinstance(kind, str) or kind not in _FIGURES:
            raise ConfigError(f"{path}: no figure of kind {as_word(kind)}; {nearest(str(kind), _FIGURES)}")
        options = {name: value for name, value in figure.items() if name != "kind"}
        _check_options(path, "figure", options, _FIGURES[kind], runs)


def _check_options(path: Path, section: str, layout: Any, options: Options, runs: Runs) -> None:
    if not isinstance(layout, Mapping):
        raise ConfigError(f"{path}: {section}={as_word(layout)}: must be a mapping with {', '.join(options.required)}")
    checks = {**options.required, **options.optional}
    if unknown := [str(name) for name in layout if name not in checks]:
        raise ConfigError(f"{path}: {section} has no option {unknown[0]!r}; {nearest(unknown[0], checks)}")
    if absent := [name for name in options.required if name not in layout]:
        raise ConfigError(f"{path}: {section}.{absent[0]} is missing")
    for name, value in layout.items():
        if one := checks[name]:
            one(path, f"{section}.{name}", value, runs)


def _key(path: Path, place: str, value: Any, runs: Runs) -> None:
    """A key that every run has."""
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {place}={as_word(value)}: must be a key of the runs")
    if not all(value in block for block in runs):
        who = "not every run has" if any(value in block for block in runs) else "no run has"
        shared = [key for key in runs[0] if all(key in block for block in runs)]
        raise ConfigError(f"{path}: {place}: {who} the key {value!r}; {nearest(value, shared)}")


def _key_of_some(path: Path, place: str, value: Any, runs: Runs) -> None:
    """A key that one of the runs has."""
    _key(path, place, value, [block for block in runs if not isinstance(value, str) or value in block] or runs)


def _key_or_output(path: Path, place: str, value: Any, runs: Runs) -> None:
    """A key, or `output` for the outputs of the data set."""
    if value != "output":
        _key(path, place, value, runs)


def _keys(path: Path, place: str, value: Any, runs: Runs) -> None:
    """A key that every run has, or a list of different keys, the first of them in every run."""
    if not isinstance(value, str | list):
        raise ConfigError(f"{path}: {place}={as_word(value)}: must be a key of the runs, or a list of such keys")
    keys = [value] if isinstance(value, str) else value
    _each(_key, path, place, keys[:1], runs)
    _each(_key_of_some, path, place, keys, runs)


def _columns(path: Path, place: str, value: Any, runs: Runs) -> None:
    """Keys as in `_keys`, one at least."""
    _keys(path, place, value, runs)
    if not value:
        raise ConfigError(f"{path}: {place}={as_word(value)}: must be a key of the runs, or a list of such keys")


def _metric(path: Path, place: str, value: Any, runs: Runs) -> None:
    """The name of a metric, or `objective`."""
    from gpbench.metrics import METRICS  # not at the top, for it needs NumPy

    known = [*METRICS, "objective"]
    if value not in known:
        raise ConfigError(f"{path}: {place}: no metric {as_word(value)!r}; {nearest(as_word(value), known)}")


def _metrics(path: Path, place: str, value: Any, runs: Runs) -> None:
    """A list of different metrics."""
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{path}: {place}={as_word(value)}: must be a list of metrics")
    _each(_metric, path, place, value, runs)


def _each(one: Check, path: Path, place: str, values: Sequence[Any], runs: Runs) -> None:
    for k, value in enumerate(values):
        one(path, place, value, runs)
        if value in values[:k]:
            raise ConfigError(f"{path}: {place}: {value} is there twice")


_TABLE = Options(
    {"rows": _key_or_output, "columns": _columns, "metrics": _metrics},
    {"blocks": _keys, "average": _metric},
)
_FIGURES: Mapping[str, Options] = {
    "traces": Options(
        {"panels": _metrics, "colour": _key},
        {"style": _key, "colours": None, "dashes": None, "vertical": None, "level": None},
    ),
    "boundaries": Options({"rows": _key, "columns": _key}),
    "curves": Options({"label": _key_of_some}),
    "surfaces": Options({"label": _columns}),
    "scaling": Options({"along": _key, "colour": _key}, {"colours": None}),
}
"""The options of tables, and of each kind of figure (`gpbench.report.figures`)."""
