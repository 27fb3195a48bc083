"""Clauses as data: predicates of a claim, from a mapping of a claims file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.claims.kept import COMPARISONS, SUMMARIES
from gpbench.claims.quantities import PREFIX
from gpbench.claims.regions import Region
from gpbench.errors import ConfigError, nearest
from gpbench.keys import Keys, optional
from gpbench.schema import Range, is_number

_SIDES: Mapping[str, Sequence[str]] = {
    "difference": ("a", "b"),
    "ratio": ("a", "b"),
    "share": ("a", "b"),
    "rank": ("a", "b", "among"),
    "friedman": ("among",),
    "spread": ("a", "b"),
    "range": ("a", "b", "along"),
    "comparison": ("a", "b"),
    "value": ("of",),
    "slope": ("of", "along"),
    "monotone": ("of", "along"),
}
_AGAINST = ("difference", "ratio")
"""Kinds of which b may have another metric."""
_LOGARITHMIC = ("ratio", "spread")
"""Kinds whose numbers are logarithms of ratios."""
_LEAST = Range(lambda value: value is None or (is_number(value) and value > 0), "a number of cells or a share")
_SHARED = dict.fromkeys(("where", "each", "pair", "name"), optional())
_SHARED |= {"least": optional(_LEAST), "over": optional(["dataset", ""])}
_PAIR = Range(lambda value: isinstance(value, list) and len(value) == 2 and all(map(is_number, value)), "two numbers")
_BOUNDS = {"above": optional("number"), "below": optional("number")}
_BOUNDS |= {"between": optional(_PAIR), "within": optional("positive")}
_DIRECTIONS = {"rises": optional("number"), "falls": optional("number")}

_CLAUSES: Mapping[str, Keys] = {
    kind: Keys(
        {
            **dict.fromkeys((kind, *sides, *(("against",) if kind in _AGAINST else ())), optional()),
            **_SHARED,
            **(_DIRECTIONS if kind == "monotone" else _BOUNDS),
        }
    )
    for kind, sides in _SIDES.items()
}
"""Keys of a clause by its kind."""

Words = Mapping[str, Sequence[str]]
"""Values that keys may have, as on a command line."""


@dataclass(frozen=True)
class Clause:
    """One predicate: numbers of one kind lie in a region.

    kind, metric: what the numbers are.
    against: the metric of b, where it is another.
    sides: the runs of `a` and `b`, or `of`, each on top of `where`; `among` of ranks.
    along: the key whose values a slope, a trend or a range runs along.
    each: keys besides data set and output whose values are judged apart, and must all hold.
    pair: keys that tell numbers apart too, but are judged together.
    least: how many of the numbers must lie in the region, or the share of them as a number below 1; None is all.
    over: "dataset" makes one number of all data sets.
    """

    kind: str
    metric: str
    region: Region
    sides: Mapping[str, Words]
    along: str = ""
    each: Sequence[str] = ()
    pair: Sequence[str] = ()
    least: float | None = None
    over: str = ""
    name: str = ""
    against: str = ""

    @property
    def is_logarithmic(self) -> bool:
        """Whether its numbers are logarithms of ratios."""
        return self.kind in _LOGARITHMIC

    @property
    def keys(self) -> Sequence[str]:
        """The keys that tell numbers apart, besides data set and output."""
        return (*self.each, *self.pair)


def read_clause(content: Any, subject: str) -> Clause:
    kinds = [kind for kind in _SIDES if kind in content]
    if len(kinds) != 1:
        raise ConfigError(f"{subject}: give one of {', '.join(_SIDES)}, with a metric")
    (kind,) = kinds
    _CLAUSES[kind].check(content, subject)
    metric = str(content[kind])
    if kind == "comparison" and metric not in COMPARISONS:
        raise ConfigError(f"{subject}: no comparison {metric!r}; {nearest(metric, COMPARISONS)}")
    if metric.startswith(PREFIX) and metric.removeprefix(PREFIX) not in SUMMARIES:
        raise ConfigError(f"{subject}: no number {metric!r}; {nearest(metric.removeprefix(PREFIX), SUMMARIES)}")
    if kind == "difference" and metric.startswith("seconds"):
        raise ConfigError(f"{subject}: seconds of one machine are compared by `ratio`, not by `difference`")
    if missing := [key for key in _SIDES[kind] if key not in content]:
        raise ConfigError(f"{subject}: {kind} needs `{missing[0]}`")
    shared = _words(content.get("where", {}), subject)
    runs = [key for key in _SIDES[kind] if key != "along"]
    sides = {key: {**shared, **_words(content[key], subject)} for key in runs}
    least, over = content.get("least"), content.get("over", "")
    each, pair = (tuple(map(str, listed(content.get(key, [])))) for key in ("each", "pair"))
    along, against = (str(content.get(key, "")) for key in ("along", "against"))
    name, region = line(content.get("name", "")), _region(content, kind, subject)
    return Clause(kind, metric, region, sides, along, each, pair, least, over, name, against)


def _region(content: Mapping[str, Any], kind: str, subject: str) -> Region:
    """The region of the numbers, in logarithms where they are ratios."""
    low, high = content.get("between", (-math.inf, math.inf))
    if size := content.get("within"):
        low, high = (1 / size, size) if kind in _LOGARITHMIC else (-size, size)
    low = float(content.get("above", content.get("rises", low)))
    high = float(content.get("below", content.get("falls", high)))
    if low >= high:
        raise ConfigError(f"{subject}: no {kind} lies between {low:g} and {high:g}: give the lower end first")
    if math.isinf(low) and math.isinf(high):
        words = "`falls: 0` or `rises: 0`" if kind == "monotone" else "above, below, between: [a, b] or within"
        raise ConfigError(f"{subject}: say where the {kind} lies: {words}")
    if kind not in _LOGARITHMIC:
        return Region(low, high)
    if high <= 0 or (low <= 0 and math.isinf(high)):
        raise ConfigError(f"{subject}: every ratio is above 0: give another end")
    return Region(math.log(low) if low > 0 else -math.inf, math.log(high))


def _words(content: Any, subject: str) -> dict[str, tuple[str, ...]]:
    from gpbench.experiments.definition import text

    if not isinstance(content, dict):
        raise ConfigError(f"{subject}: runs are selected by a mapping such as {{method: sep}}")
    return {str(key): tuple(text(value) for value in listed(values)) for key, values in content.items()}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def line(text: Any) -> str:
    return " ".join(str(text).split())
