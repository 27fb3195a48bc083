"""Claims as data: `claims/PAPER.yaml` of our configuration, or of a user's `--config-dir`.  docs/claims.md says more.

A claim has a `text`, its `place` in the paper, the `experiments` whose runs test it, and `clauses`, all of which must
hold.  One that no record can decide has a `reason` in place of clauses.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.claims.estimates import Region
from gpbench.errors import ConfigError, nearest

KINDS = ("difference", "ratio", "value", "share", "rank", "slope", "monotone")
_REGION = ("above", "below", "between", "within", "falls", "rises")
_SIDES = {
    "difference": ("a", "b"),
    "ratio": ("a", "b"),
    "share": ("a", "b"),
    "rank": ("a", "b", "among"),
    "value": ("of",),
    "slope": ("of", "along"),
    "monotone": ("of", "along"),
}
_CLAUSE = {"where", "each", "pair", "least", "over", "name", *KINDS, *_REGION, "a", "b", "among", "of", "along"}
_CLAIM = {"text", "place", "experiments", "clauses", "any", "reason", "printed", "printed_why", "note"}
_PRINTED = ("supported", "contradicted", "undecided", "none")
"""What the paper's own printed numbers may say of a claim; "none" where it prints none."""

Words = Mapping[str, Sequence[str]]
"""Values that keys may have, as on a command line."""


@dataclass(frozen=True)
class Clause:
    """One predicate: numbers of one kind lie in a region.

    kind, metric: what the numbers are.
    sides: the runs of `a` and `b`, or `of`, each on top of `where`; `among` of ranks.
    along: the key whose values a slope or a trend runs along.
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

    @property
    def keys(self) -> Sequence[str]:
        """The keys that tell numbers apart, besides data set and output."""
        return (*self.each, *self.pair)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper as predicates.

    `printed` is what the paper's own numbers say of it, and `printed_why` in words; `any` is whether one clause that
    holds is enough.
    """

    paper: str
    id: str
    text: str
    place: str
    experiments: Sequence[str]
    clauses: Sequence[Clause] = ()
    any: bool = False
    reason: str = ""
    printed: str = "none"
    printed_why: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """As in sep/c01."""
        return f"{self.paper}/{self.id}"


def files(config_dirs: Sequence[Path] = ()) -> dict[str, Path]:
    """Returns the claims files by name; those of the user come last and replace none of gpbench's.

    Args:
        config_dirs: the user's folders with claims/ files.
    """
    found: dict[str, Path] = {}
    for folder in (paths.conf_dir() / "claims", *(Path(d).expanduser() / "claims" for d in config_dirs)):
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return found


def read(name: str, config_dirs: Sequence[Path] = ()) -> list[Claim]:
    """Reads the claims of a file.

    Args:
        name: name of the file, without its ending.
        config_dirs: the user's folders with claims/ files.

    Raises:
        ConfigError: an unknown name, or a file that holds no claims.
    """
    import yaml

    known = files(config_dirs)
    if name not in known:
        raise ConfigError(f"no claims {name!r}; {nearest(name, known)}")
    try:
        content = yamls.load(known[name].read_bytes())
    except OSError as error:
        raise ConfigError(f"{known[name]}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{known[name]}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{known[name]}: claims are a mapping of ids to claims")
    return [_claim(name, str(id), value, f"{known[name]}: {id}") for id, value in content.items()]


def _claim(paper: str, id: str, content: Any, place: str) -> Claim:
    _check_keys(content, _CLAIM, place)
    if not content.get("text"):
        raise ConfigError(f"{place}: a claim needs a `text`")
    clauses, reason = content.get("clauses", []), content.get("reason", "")
    if bool(clauses) == bool(reason) or not isinstance(clauses, list):
        raise ConfigError(f"{place}: a claim has a list of `clauses`, or a `reason` why it has none")
    printed = content.get("printed", "none")
    if printed not in _PRINTED:
        raise ConfigError(f"{place}: printed: {printed!r}; {nearest(str(printed), _PRINTED)}")
    return Claim(
        paper=paper,
        id=id,
        text=_line(content["text"]),
        place=_line(content.get("place", "")),
        experiments=tuple(map(str, _list(content.get("experiments", [])))),
        clauses=tuple(_clause(clause, f"{place}, clause {k}") for k, clause in enumerate(clauses, 1)),
        any=bool(content.get("any", False)),
        reason=_line(reason),
        printed=printed,
        printed_why=_line(content.get("printed_why", "")),
        note=_line(content.get("note", "")),
    )


def _clause(content: Any, place: str) -> Clause:
    _check_keys(content, _CLAUSE, place)
    kinds = [kind for kind in KINDS if kind in content]
    if len(kinds) != 1:
        raise ConfigError(f"{place}: give one of {', '.join(KINDS)}, with a metric")
    (kind,) = kinds
    metric = str(content[kind])
    if kind == "difference" and metric == "seconds":
        raise ConfigError(f"{place}: seconds of one machine are compared by `ratio`, not by `difference`")
    if missing := [key for key in _SIDES[kind] if key not in content]:
        raise ConfigError(f"{place}: {kind} needs `{missing[0]}`")
    where = _words(content.get("where", {}), place)
    runs = [key for key in _SIDES[kind] if key != "along"]
    sides = {key: {**where, **_words(content[key], place)} for key in runs}
    least = content.get("least")
    if least is not None and not (isinstance(least, int | float) and least > 0):
        raise ConfigError(f"{place}: least: {least!r} is neither a number of cells nor a share")
    if (over := content.get("over", "")) not in ("", "dataset"):
        raise ConfigError(f"{place}: over: {over!r}; numbers are averaged over `dataset` alone")
    each, pair = (tuple(map(str, _list(content.get(key, [])))) for key in ("each", "pair"))
    along, name, region = str(content.get("along", "")), _line(content.get("name", "")), _region(content, kind, place)
    return Clause(kind, metric, region, sides, along, each, pair, least, over, name)


def _region(content: Mapping[str, Any], kind: str, place: str) -> Region:
    """Where the numbers lie, logarithms where they are ratios."""
    given = {key: content[key] for key in _REGION if key in content}
    low, high = -math.inf, math.inf
    try:
        if kind == "monotone":
            (word,) = given
            return Region(-math.inf, float(given["falls"])) if word == "falls" else Region(float(given["rises"]), high)
        if "between" in given:
            low, high = map(float, given["between"])
        if "within" in given:
            size = float(given["within"])
            low, high = (1 / size, size) if kind == "ratio" else (-size, size)
        low, high = float(given.get("above", low)), float(given.get("below", high))
    except (TypeError, ValueError, KeyError, ZeroDivisionError) as error:
        words = "`falls: 0` or `rises: 0`" if kind == "monotone" else "above, below, between: [a, b] or within"
        raise ConfigError(f"{place}: say with numbers where the {kind} lies: {words}") from error
    if {"falls", "rises"} & given.keys() or not low < high or (math.isinf(low) and math.isinf(high)):
        raise ConfigError(f"{place}: say where the {kind} lies: above, below, between: [a, b] or within")
    if kind != "ratio":
        return Region(low, high)
    if high <= 0:
        raise ConfigError(f"{place}: a ratio is above 0")
    return Region(math.log(low) if low > 0 else -math.inf, math.log(high))


def _words(content: Any, place: str) -> dict[str, tuple[str, ...]]:
    from gpbench.experiments.definition import text

    if not isinstance(content, dict):
        raise ConfigError(f"{place}: runs are selected by a mapping such as {{method: sep}}")
    return {str(key): tuple(text(value) for value in _list(values)) for key, values in content.items()}


def _check_keys(content: Any, known: set[str], place: str) -> None:
    if not isinstance(content, dict):
        raise ConfigError(f"{place}: expected a mapping of keys to values")
    if unknown := [str(key) for key in content if key not in known]:
        raise ConfigError(f"{place}: no key {unknown[0]!r}; {nearest(unknown[0], known)}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _line(text: Any) -> str:
    return " ".join(str(text).split())
