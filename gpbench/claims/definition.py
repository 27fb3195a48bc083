"""Claims as data: `claims/PAPER.yaml` of our configuration, or of `--config-dir`.  docs/reference/claims.md says more.

A claim has a `text`, its `place` in the paper, the `experiments` whose runs test it, and `clauses`, all of which must
hold.  One that no record can decide has in place of clauses the `test` that proves or refutes it, what it needs that is
`elsewhere`, or a `reason`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.claims.regions import Region
from gpbench.errors import ConfigError, nearest
from gpbench.keys import MAPPINGS, Keys, optional, required
from gpbench.schema import Range, is_number

_SIDES: Mapping[str, Sequence[str]] = {
    "difference": ("a", "b"),
    "ratio": ("a", "b"),
    "share": ("a", "b"),
    "rank": ("a", "b", "among"),
    "value": ("of",),
    "slope": ("of", "along"),
    "monotone": ("of", "along"),
}
_PRINTED = ("supported", "contradicted", "undecided", "none")
"""Verdicts of the paper's own printed numbers on a claim; "none" where it prints none."""
_TEST = re.compile(r"tests/[\w/]+\.py::\w+(\[.+\])?")
_LEAST = Range(lambda value: value is None or (is_number(value) and value > 0), "a number of cells or a share")
_SHARED = dict.fromkeys(("where", "each", "pair", "name"), optional())
_SHARED |= {"least": optional(_LEAST), "over": optional(["dataset", ""])}
_PAIR = Range(lambda value: isinstance(value, list) and len(value) == 2 and all(map(is_number, value)), "two numbers")
_BOUNDS = {"above": optional("number"), "below": optional("number")}
_BOUNDS |= {"between": optional(_PAIR), "within": optional("positive")}
_DIRECTIONS = {"rises": optional("number"), "falls": optional("number")}

_CLAIM = Keys(
    {
        "text": required(),
        **dict.fromkeys(("place", "experiments", "test", "elsewhere", "reason", "printed_why", "note"), optional()),
        "clauses": optional(MAPPINGS),
        "any": optional("flag"),
        "proves": optional("flag"),
        "printed": optional(_PRINTED),
    }
)
_CLAUSES: Mapping[str, Keys] = {
    kind: Keys(
        {**dict.fromkeys((kind, *sides), optional()), **_SHARED, **(_DIRECTIONS if kind == "monotone" else _BOUNDS)}
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
    holds is enough.  `tests` are names of tests of gpbench, as in `tests/methods/test_sep.py::test_x`, which together
    prove the sentence, or refute it where `proves` is False.  `elsewhere` is a machine or data that the runs need and
    that gpbench does not have.
    """

    paper: str
    id: str
    text: str
    location: str
    experiments: Sequence[str]
    clauses: Sequence[Clause] = ()
    any: bool = False
    tests: Sequence[str] = ()
    proves: bool = True
    elsewhere: str = ""
    reason: str = ""
    printed: str = "none"
    printed_why: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Name of the claim, as in sep/c01."""
        return f"{self.paper}/{self.id}"


def files(config_dirs: Sequence[Path] = ()) -> dict[str, Path]:
    """Returns the claims files by name; those of the user replace none of gpbench's.

    Args:
        config_dirs: the user's folders with claims/ files.
    """
    return paths.yaml_files("claims", config_dirs)


def read(name: str, config_dirs: Sequence[Path] = ()) -> list[Claim]:
    """Reads the claims of a file.

    Args:
        name: name of the file, without its ending.
        config_dirs: the user's folders with claims/ files.

    Raises:
        ConfigError: an unknown name, or a file that holds no claims.
    """
    known = files(config_dirs)
    if name not in known:
        raise ConfigError(f"no claims {name!r}; {nearest(name, known)}")
    content = yamls.read(known[name])
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{known[name]}: claims are a mapping of ids to claims")
    return [_claim(name, str(id), value, f"{known[name]}: {id}") for id, value in content.items()]


def _claim(paper: str, id: str, content: Any, subject: str) -> Claim:
    content = _CLAIM.check(content, subject)
    ways = [key for key in ("clauses", "test", "reason") if content.get(key)]
    if len(ways) != 1 and (ways or not content.get("elsewhere")):
        raise ConfigError(
            f"{subject}: a claim has `clauses`, a `test` that proves it, or a `reason` why it has none; or `elsewhere`"
        )
    if "proves" in content and "test" not in content:
        raise ConfigError(f"{subject}: `proves` is of a `test`: name it as tests/FILE.py::NAME")
    tests = tuple(map(str, _list(content.get("test", []))))
    if wrong := [test for test in tests if not _TEST.fullmatch(test)]:
        raise ConfigError(f"{subject}: test {wrong[0]}: name it as tests/FILE.py::NAME")
    return Claim(
        paper=paper,
        id=id,
        experiments=tuple(map(str, _list(content.get("experiments", [])))),
        clauses=tuple(
            _clause(value, f"{subject}, clause {k}") for k, value in enumerate(content.get("clauses", []), 1)
        ),
        any=bool(content.get("any", False)),
        tests=tests,
        proves=bool(content.get("proves", True)),
        printed=content.get("printed", "none"),
        location=_line(content.get("place", "")),
        **{key: _line(content.get(key, "")) for key in ("text", "elsewhere", "reason", "printed_why", "note")},
    )


def _clause(content: Any, subject: str) -> Clause:
    kinds = [kind for kind in _SIDES if kind in content]
    if len(kinds) != 1:
        raise ConfigError(f"{subject}: give one of {', '.join(_SIDES)}, with a metric")
    (kind,) = kinds
    _CLAUSES[kind].check(content, subject)
    metric = str(content[kind])
    if kind == "difference" and metric == "seconds":
        raise ConfigError(f"{subject}: seconds of one machine are compared by `ratio`, not by `difference`")
    if missing := [key for key in _SIDES[kind] if key not in content]:
        raise ConfigError(f"{subject}: {kind} needs `{missing[0]}`")
    shared = _words(content.get("where", {}), subject)
    runs = [key for key in _SIDES[kind] if key != "along"]
    sides = {key: {**shared, **_words(content[key], subject)} for key in runs}
    least, over = content.get("least"), content.get("over", "")
    each, pair = (tuple(map(str, _list(content.get(key, [])))) for key in ("each", "pair"))
    along, name, region = str(content.get("along", "")), _line(content.get("name", "")), _region(content, kind, subject)
    return Clause(kind, metric, region, sides, along, each, pair, least, over, name)


def _region(content: Mapping[str, Any], kind: str, subject: str) -> Region:
    """The region of the numbers, in logarithms where they are ratios."""
    low, high = content.get("between", (-math.inf, math.inf))
    if size := content.get("within"):
        low, high = (1 / size, size) if kind == "ratio" else (-size, size)
    low = float(content.get("above", content.get("rises", low)))
    high = float(content.get("below", content.get("falls", high)))
    if not low < high or (math.isinf(low) and math.isinf(high)):
        words = "`falls: 0` or `rises: 0`" if kind == "monotone" else "above, below, between: [a, b] or within"
        raise ConfigError(f"{subject}: say where the {kind} lies: {words}")
    if kind != "ratio":
        return Region(low, high)
    if high <= 0:
        raise ConfigError(f"{subject}: a ratio is above 0")
    return Region(math.log(low) if low > 0 else -math.inf, math.log(high))


def _words(content: Any, subject: str) -> dict[str, tuple[str, ...]]:
    from gpbench.experiments.definition import text

    if not isinstance(content, dict):
        raise ConfigError(f"{subject}: runs are selected by a mapping such as {{method: sep}}")
    return {str(key): tuple(text(value) for value in _list(values)) for key, values in content.items()}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _line(text: Any) -> str:
    return " ".join(str(text).split())
