"""Checks of the table and figures of an experiment: keys that its runs have, and known metrics.

Checked when the file is read: what is wrong there would otherwise end in an error after the training.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import own_metrics
from gpbench.errors import ConfigError, as_word, nearest
from gpbench.experiments.kinds import FIGURES, TABLES, Kind
from gpbench.keys import Keys

Runs = Sequence[Mapping[str, Any]]
"""The blocks of runs as the file has them."""

Check = Callable[[Path, str, Any, Runs], None]
"""Checks a value that the file has at an option, as in `table.rows`; raises ConfigError."""


def check(path: Path, content: Mapping[str, Any], runs: Runs) -> None:
    """Checks the sections `table`, `figure` and `figures` of a file, where it has them.

    Raises ConfigError, which names the file and the option, for an unknown or missing option, a key that not every run
    has, an unknown metric or method, a metric that ranks nothing, and what is there twice.
    """
    if table := content.get("table"):
        kind = table.get("kind", "values") if isinstance(table, Mapping) else "values"
        _check_kind(path, "table", kind, table, TABLES, runs)
    if figure := content.get("figure"):
        _check_figure(path, "figure", figure, runs)
    figures = content.get("figures") or {}
    if not isinstance(figures, Mapping):
        raise ConfigError(f"{path}: figures={as_word(figures)}: must be a mapping of names to figures")
    for name, options in figures.items():
        if not isinstance(name, str) or not re.fullmatch(r"[\w.]+", name):
            raise ConfigError(f"{path}: figures: {as_word(name)} cannot be part of the name of a file")
        _check_figure(path, f"figures.{name}", options, runs)


def _check_figure(path: Path, option: str, figure: Any, runs: Runs) -> None:
    if not isinstance(figure, Mapping):
        figure = {"kind": None}
    options = {name: value for name, value in figure.items() if name != "title"}
    _check_kind(path, option, figure.get("kind"), options, FIGURES, runs)


def _check_kind(path: Path, option: str, kind: Any, layout: Any, kinds: Mapping[str, Kind], runs: Runs) -> None:
    if not isinstance(kind, str) or kind not in kinds:
        noun = option.partition(".")[0].removesuffix("s")
        raise ConfigError(f"{path}: no {noun} of kind {as_word(kind)}; {nearest(str(kind), kinds)}")
    if isinstance(layout, Mapping):
        layout = {name: value for name, value in layout.items() if name != "kind"}
    _check_options(path, option, layout, kinds[kind], runs)


def _check_options(path: Path, section: str, layout: Any, options: Kind, runs: Runs) -> None:
    if not isinstance(layout, Mapping):
        raise ConfigError(f"{path}: {section}={as_word(layout)}: must be a mapping with {', '.join(options.required)}")
    Keys.from_names(options.required, options.optional).check(layout, f"{path}: {section}")
    checks = {**options.required, **options.optional}
    for name, value in layout.items():
        if check_value := CHECKS[checks[name]]:
            check_value(path, f"{section}.{name}", value, runs)


def _key(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A key that every run has."""
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a key of the runs")
    if not all(value in block for block in runs):
        runs_with = "not every run has" if any(value in block for block in runs) else "no run has"
        shared = [key for key in runs[0] if all(key in block for block in runs)]
        raise ConfigError(f"{path}: {option}: {runs_with} the key {value!r}; {nearest(value, shared)}")


def _key_of_some(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A key that one of the runs has."""
    _key(path, option, value, [block for block in runs if not isinstance(value, str) or value in block] or runs)


def _keys_of_some(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A key that one of the runs has, or a list of different ones."""
    _each(_key_of_some, path, option, value if isinstance(value, list) and value else [value], runs)


def _key_or_output(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A key, or `output` for the outputs of the data set."""
    if value != "output":
        _key(path, option, value, runs)


def _keys(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A key that every run has, or a list of different keys, the first of them in every run."""
    if not isinstance(value, str | list):
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a key of the runs, or a list of such keys")
    keys = [value] if isinstance(value, str) else value
    _each(_key, path, option, keys[:1], runs)
    _each(_key_of_some, path, option, keys, runs)


def _columns(path: Path, option: str, value: Any, runs: Runs) -> None:
    """Keys as in `_keys`, one at least."""
    _keys(path, option, value, runs)
    if not value:
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a key of the runs, or a list of such keys")


def _metric(path: Path, option: str, value: Any, runs: Runs) -> None:
    """The name of a metric, of ours or in the folder of the experiment's file, or `objective`."""
    known = [*own_metrics.NAMES, *_own_metrics(path), "objective"]
    if value not in known:
        raise ConfigError(f"{path}: {option}: no metric {as_word(value)!r}; {nearest(as_word(value), known)}")


def _own_metrics(path: Path) -> Mapping[str, own_metrics.Declaration]:
    """The user's own metrics beside an experiment's file `experiment/PAPER/NAME.yaml` or `experiment/NAME.yaml`."""
    return own_metrics.declarations(path.parents[:3])


def _metrics(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A list of different metrics."""
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a list of metrics")
    _each(_metric, path, option, value, runs)


def _ranking_metric(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A metric of which one direction is better."""
    from gpbench.metrics import better  # not at the top, for it needs NumPy

    _metric(path, option, value, runs)
    own = _own_metrics(path).get(value)
    if not (own.better if own else better(value)):
        raise ConfigError(f"{path}: {option}: {value} ranks no method: neither a lower nor a higher value is better")


def _ranking_metrics(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A list of different metrics as in `_ranking_metric`."""
    _metrics(path, option, value, runs)
    _each(_ranking_metric, path, option, value, runs)


def _method_keys(path: Path, option: str, value: Any, runs: Runs) -> None:
    """Keys as in `_columns`, of runs that have a method and a data set."""
    _columns(path, option, value, runs)
    _each(_key, path, option, ["dataset", "method"], runs)


def _method_sets(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A mapping of names to lists of different methods of the runs."""
    if not isinstance(value, Mapping) or not all(isinstance(methods, list) and methods for methods in value.values()):
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a mapping of names to lists of methods")
    for name, methods in value.items():
        _each(_method, path, f"{option}.{name}", methods, runs)


def _truth(path: Path, option: str, value: Any, runs: Runs) -> None:
    """The name of a function whose effects are known (`gpbench.report.figures.effects`)."""
    if value != "friedman":
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be friedman, the function whose effects are known")


def _exponents(path: Path, option: str, value: Any, runs: Runs) -> None:
    """Numbers by key of the runs and by value of another of their keys."""
    if not isinstance(value, Mapping) or not all(isinstance(numbers, Mapping) for numbers in value.values()):
        raise ConfigError(f"{path}: {option}={as_word(value)}: must map keys to mappings of values to numbers")
    known = [str(entry) for block in runs for values in block.values() for entry in _values(values)]
    for key, numbers in value.items():
        _key_of_some(path, option, key, runs)
        for name, number in numbers.items():
            if str(name) not in known:
                raise ConfigError(f"{path}: {option}.{key}: no run has the value {name!r}; {nearest(str(name), known)}")
            if not isinstance(number, int | float):
                raise ConfigError(f"{path}: {option}.{key}.{name}={as_word(number)}: must be a number")


def _fraction(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{path}: {option}={as_word(value)}: must be a number from 0 to 1")


def _method(path: Path, option: str, value: Any, runs: Runs) -> None:
    """A method that one of the runs has."""
    known = [method for block in runs for method in _values(block.get("method"))]
    if value not in known:
        raise ConfigError(f"{path}: {option}: no run has the method {as_word(value)!r}; {nearest(str(value), known)}")


def _values(value: Any) -> list[Any]:
    """Every value of a key of a block, over the presets."""
    presets = value.values() if isinstance(value, Mapping) else [value]
    return [entry for preset in presets for entry in (preset if isinstance(preset, list) else [preset])]


def _each(check_value: Check, path: Path, option: str, values: Sequence[Any], runs: Runs) -> None:
    for k, value in enumerate(values):
        check_value(path, option, value, runs)
        if value in values[:k]:
            raise ConfigError(f"{path}: {option}: {value} is there twice")


CHECKS: Mapping[str, Check | None] = {
    "any": None,
    "key": _key,
    "key or output": _key_or_output,
    "keys": _keys,
    "keys of some": _keys_of_some,
    "columns": _columns,
    "metric": _metric,
    "metrics": _metrics,
    "ranking metrics": _ranking_metrics,
    "method": _method,
    "method keys": _method_keys,
    "method sets": _method_sets,
    "truth": _truth,
    "exponents": _exponents,
    "fraction": _fraction,
}
"""Checks of options (`gpbench.experiments.kinds`) by the values that these can have."""
