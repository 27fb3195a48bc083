"""Kinds of tables and figures (docs/reference/experiments.md), and checks of those of an experiment when its file is
read: keys that its runs have, and known metrics."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from gpbench import own_metrics, targets
from gpbench.errors import ConfigError, as_word, nearest
from gpbench.schema import WORDS, Key, Keys, Range, is_number


@dataclass(frozen=True)
class Kind:
    """A kind of table or figure."""

    path: str  # dotted path of the function that makes it
    required: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)  # options that it may have
    format: str = "svg"  # format of a figure on web pages: WebP where a vector image of all points would be too large
    arrays: tuple[str, ...] = ()  # arrays of a run, without one of which the figure shows nothing of it

    @property
    def function(self) -> Callable:
        """The function, imported."""
        return targets.resolve(self.path)


def _figure(function: str, required: Mapping[str, str], optional: Mapping[str, str] | None = None, **more: Any) -> Kind:
    return Kind(f"gpbench.report.figures.{function}", required, optional or {}, **more)


_RANKS, _RANK_SETS = {"label": "method keys", "metrics": "ranking metrics"}, {"sets": "method sets"}
_TRACES = {"style": "key", "colours": "any", "dashes": "any", "vertical": "any", "level": "any"}
_VALUES = {"rows": "key or output", "columns": "columns", "metrics": "metrics"}
_CURVES = {"reference": "method", "margin": "fraction"}
_ORDERS = {"published": "exponents", "counted": "flag"}
_MEAN, _EFFECTS = ("kept_mean",), ("kept_effect1_inputs", "kept_effect2_inputs")

# "values" is the default
TABLES: Mapping[str, Kind] = {
    "values": Kind(
        "gpbench.analysis.experiment.value_table", _VALUES, {"blocks": "keys", "average": "metric", "printed": "values"}
    ),
    "ranks": Kind("gpbench.analysis.rankings.table", _RANKS, _RANK_SETS),
}
FIGURES: Mapping[str, Kind] = {
    "traces": _figure("runs.draw_curves", {"panels": "metrics", "colour": "key"}, _TRACES),
    "boundaries": _figure(
        "predictions.draw_boundaries", {"rows": "key", "columns": "key"}, format="webp", arrays=("kept_grid",)
    ),
    "curves": _figure("predictions.draw_curves", {"label": "keys of some"}, _CURVES, arrays=_MEAN),
    "surfaces": _figure("predictions.draw_surfaces", {"label": "columns"}, format="webp", arrays=_MEAN),
    "effects": _figure(
        "predictions.draw_effects", {"label": "columns"}, {"truth": "truth"}, format="webp", arrays=_EFFECTS
    ),
    "orders": _figure("scaling.draw_orders", {"along": "columns", "colour": "key"}, _ORDERS),
    "scaling": _figure("scaling.draw_scaling", {"along": "key", "colour": "key"}, {"colours": "any"}),
    "dots": _figure("dots.draw", {"label": "method keys", "metric": "metric"}, {**_RANK_SETS, "settings": "settings"}),
    "ranks": _figure("comparisons.draw_ranks", _RANKS, {**_RANK_SETS, "settings": "settings"}),
}

_Runs = Sequence[Mapping[str, Any]]  # the blocks of runs as the file has them


def check(path: Path, content: Mapping[str, Any], runs: _Runs) -> None:
    """Checks the sections `table`, `figure` and `figures` of a file, where it has them."""
    file = _File(path, runs)
    if table := content.get("table"):
        kind = table.get("kind", "values") if isinstance(table, Mapping) else "values"
        file.check_section("table", kind, table, TABLES)
    figures = content.get("figures") or {}
    if not isinstance(figures, Mapping):
        file.reject(f"figures={as_word(figures)}: must be a mapping of names to figures")
    for name in figures:
        if not isinstance(name, str) or not re.fullmatch(r"[\w.]+", name):
            file.reject(f"figures: {as_word(name)} cannot be part of the name of a file")
    sections = {f"figures.{name}": figure for name, figure in figures.items()}
    sections |= {"figure": figure} if (figure := content.get("figure")) else {}
    for section, figure in sections.items():
        options = {k: v for k, v in figure.items() if k != "title"} if isinstance(figure, Mapping) else {}
        file.check_section(section, options.get("kind"), options, FIGURES)


@dataclass(frozen=True)
class _File:
    """The runs of a file, and checks of options against them; `option` is its name in messages, as in `table.rows`."""

    path: Path
    runs: _Runs

    def reject(self, fault: str) -> NoReturn:
        raise ConfigError(f"{self.path}: {fault}")

    def check_section(self, section: str, kind: Any, layout: Any, kinds: Mapping[str, Kind]) -> None:
        """Checks a table or a figure of one of these kinds."""
        if not isinstance(kind, str) or kind not in kinds:
            noun = section.partition(".")[0].removesuffix("s")
            self.reject(f"no {noun} of kind {as_word(kind)}; {nearest(str(kind), kinds)}")
        required, optional = kinds[kind].required, kinds[kind].optional
        if not isinstance(layout, Mapping):
            self.reject(f"{section}={as_word(layout)}: must be a mapping with {', '.join(required)}")
        options = {name: value for name, value in layout.items() if name != "kind"}
        keys = dict.fromkeys(optional, Key()) | dict.fromkeys(required, Key(required=True))
        Keys(keys).check(options, f"{self.path}: {section}")
        for name, value in options.items():
            range, check_content = _CHECKS[{**required, **optional}[name]]
            range.check(f"{self.path}: {section}.{name}", value)
            if check_content:
                check_content(self, f"{section}.{name}", value)

    def key(self, option: str, value: Any, runs: _Runs | None = None) -> None:
        _KEY.check(f"{self.path}: {option}", value)
        runs = self.runs if runs is None else runs
        if not all(value in block for block in runs):
            runs_with = "not every run has" if any(value in block for block in runs) else "no run has"
            shared = [key for key in runs[0] if all(key in block for block in runs)]
            self.reject(f"{option}: {runs_with} the key {value!r}; {nearest(value, shared)}")

    def key_of_some(self, option: str, value: Any) -> None:
        self.key(option, value, [block for block in self.runs if isinstance(value, str) and value in block] or None)

    def keys(self, option: str, value: Any) -> None:
        """Checks a key that every run has, or a list of different keys, the first of them in every run."""
        self.each(_File.key, option, entries(value)[:1])
        self.each(_File.key_of_some, option, entries(value))

    def metric(self, option: str, value: Any) -> None:
        self._require(option, "no", "metric", value, [*own_metrics.NAMES, *self._own_metrics(), "objective"])

    def ranking_metric(self, option: str, value: Any) -> None:
        from gpbench.metrics import better  # not at the top, for it needs NumPy

        self.metric(option, value)
        own = self._own_metrics().get(value)
        if not (own.better if own else better(value)):
            self.reject(f"{option}: {value} ranks no method: neither a lower nor a higher value is better")

    def method(self, option: str, value: Any) -> None:
        known = [name for block in self.runs for name in _values(block.get("method"))]
        self._require(option, "no run has the", "method", value, known)

    def method_keys(self, option: str, value: Any) -> None:
        self.keys(option, value)
        self.each(_File.key, option, ["dataset", "method"])

    def method_sets(self, option: str, value: Mapping[str, Sequence[Any]]) -> None:
        for name, methods in value.items():
            self.each(_File.method, f"{option}.{name}", methods)

    def exponents(self, option: str, value: Mapping[str, Mapping[Any, Any]]) -> None:
        """Checks numbers by key of the runs and by value of another of their keys."""
        known = [str(entry) for block in self.runs for values in block.values() for entry in _values(values)]
        for key, numbers in value.items():
            self.key_of_some(option, key)
            for name, number in numbers.items():
                self._require(f"{option}.{key}", "no run has the", "value", str(name), known)
                if not is_number(number):
                    self.reject(f"{option}.{key}.{name}={as_word(number)}: must be a number")

    def values(self, option: str, value: Mapping[str, Any]) -> None:
        """Checks values by key of some of the runs."""
        for key, values in value.items():
            self.key_of_some(option, key)
            known = [str(entry) for block in self.runs for entry in _values(block.get(key))]
            for entry in _values(values):
                self._require(f"{option}.{key}", "no run has the", "value", str(entry), known)

    def each(self, check_value: "_Check", option: str, values: Sequence[Any] | str) -> None:
        """Checks each of these values, which must differ, or a single one."""
        for k, value in enumerate(values := entries(values)):
            check_value(self, option, value)
            if value in values[:k]:
                self.reject(f"{option}: {value} is there twice")

    def _require(self, option: str, fault: str, noun: str, value: Any, known: Sequence[Any]) -> None:
        if value not in known:
            self.reject(f"{option}: {fault} {noun} {as_word(value)!r}; {nearest(as_word(value), known)}")

    def _own_metrics(self) -> Mapping[str, own_metrics.OwnMetric]:
        """The user's metrics beside the file, which is `experiment/PAPER/NAME.yaml` or `experiment/NAME.yaml`."""
        return own_metrics.declarations(self.path.parents[:3])


def entries(value: Any) -> list[Any]:
    """The values in a list, or the one value."""
    return value if isinstance(value, list) else [value]


def _values(value: Any) -> list[Any]:
    """Every value of a key of a block, over the presets."""
    presets = value.values() if isinstance(value, Mapping) else [value]
    return [entry for preset in presets for entry in entries(preset)]


def _is_mapping_of(kind: type, value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(entry, kind) for entry in value.values())


_Check = Callable[[_File, str, Any], None]
_KEY = Range(lambda value: isinstance(value, str), "a key of the runs")
_KEYS = Range(lambda value: isinstance(value, str | list), "a key of the runs, or a list of such keys")
_COLUMNS = Range(lambda value: isinstance(value, str | list) and bool(value), _KEYS.text)
_METRICS = Range(lambda value: isinstance(value, list) and bool(value), "a list of metrics")
_SETS = Range(lambda sets: _is_mapping_of(list, sets) and all(sets.values()), "a mapping of names to lists of methods")
_SETTINGS = Range(lambda value: value in ("main", "all"), "main, one setting a method, or all")
_EXPONENTS = Range(lambda value: _is_mapping_of(Mapping, value), "a mapping of keys to mappings of values to numbers")
_TRUTH = Range(lambda value: value == "friedman", "friedman, the function whose effects are known")

_CHECKS: Mapping[str, tuple[Range, _Check | None]] = {
    "any": (WORDS["any"], None),
    "key": (_KEY, _File.key),
    "key or output": (_KEY, lambda file, option, value: None if value == "output" else file.key(option, value)),
    "keys": (_KEYS, _File.keys),
    "keys of some": (_COLUMNS, lambda file, option, value: file.each(_File.key_of_some, option, value)),
    "columns": (_COLUMNS, _File.keys),
    "metric": (WORDS["any"], _File.metric),
    "metrics": (_METRICS, lambda file, option, value: file.each(_File.metric, option, value)),
    "ranking metrics": (_METRICS, lambda file, option, value: file.each(_File.ranking_metric, option, value)),
    "method": (WORDS["any"], _File.method),
    "method keys": (_COLUMNS, _File.method_keys),
    "method sets": (_SETS, _File.method_sets),
    "settings": (_SETTINGS, None),
    "truth": (_TRUTH, None),
    "exponents": (_EXPONENTS, _File.exponents),
    "flag": (WORDS["flag"], None),
    "values": (WORDS["section"], _File.values),
    "fraction": (WORDS["share"], None),
}
"""Ranges and checks of options (`TABLES`, `FIGURES`) by the values that these can have."""
