"""Claims as data: `claims/PAPER.yaml` of our configuration, or of `--config-dir`.  docs/reference/claims.md says more.

A claim has a `text`, its `place` in the paper, the `experiments` whose runs test it, and `clauses`, all of which must
hold.  One that no record can decide has in place of clauses the `test` that proves or refutes it, what it needs that is
`elsewhere`, or a `reason`."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gpbench import paths, yamls
from gpbench.claims.estimates import Region
from gpbench.claims.quantities import COMPARISONS, Quantity
from gpbench.errors import ConfigError, refuse, require, require_known
from gpbench.schema import MAPPINGS, Keys, Range, is_number, optional, required


class Kind(NamedTuple):
    """A kind of predicate: what it needs, and in words a number of it, and what all of them are of."""

    needs: Sequence[str]
    noun: str
    subject: str = ""
    logarithmic: bool = False  # whether its numbers are logarithms of ratios


_TWO, _LINE = ("a", "b"), ("of", "along")
KINDS: Mapping[str, Kind] = {
    "difference": Kind(_TWO, "the difference", "{metric} of {a} less that of {b}"),
    "ratio": Kind(_TWO, "the ratio", logarithmic=True),
    "share": Kind(_TWO, "the share", "the share of pairs in which {a} has better {metric} than {b}"),
    "rank": Kind((*_TWO, "among"), "the difference of ranks", "the rank of {a} by {metric} less that of {b}"),
    "friedman": Kind(("among",), "the p-value", "p of Friedman's test of ranks by {metric}"),
    "range": Kind((*_TWO, "along"), "the difference", "the range over {along} of {metric} of {a} less that of {b}"),
    "comparison": Kind(_TWO, "the number", "{metric} of {a} and {b}"),
    "value": Kind(("of",), "the number", "{metric} of {of}"),
    "slope": Kind(_LINE, "the exponent", "the exponent of {metric} of {of} in {along}"),
    "monotone": Kind(_LINE, "the change", "the change of {metric} of {of} with {along}"),
}
"""Kinds of predicates by name."""

_PAIR = Range(lambda value: isinstance(value, list) and len(value) == 2 and all(map(is_number, value)), "two numbers")
_CONTROL = Range(lambda value: isinstance(value, dict | str), "runs that differ, as {a: {method: constant}}, or words")
_SHARED = {"least": optional("count or fraction or null"), "over": optional(["dataset", ""])}
_SHARED |= {**dict.fromkeys(("where", "each", "pair", "name"), optional()), "control": optional(_CONTROL)}
_SHARED |= {"margin_from": optional("number"), "split_ratio": optional("positive")}
_BOUNDS = {key: optional("number") for key in ("above", "below")}
_BOUNDS |= {"between": optional(_PAIR), "within": optional("positive")}
_DIRECTIONS = {key: optional("number") for key in ("rises", "falls")}

Words = Mapping[str, Sequence[str]]
"""Values that keys may have, as on a command line."""


@dataclass(frozen=True)
class Clause:
    """One predicate: numbers of one kind lie in a region."""

    kind: str
    metric: Quantity
    region: Region
    sides: Mapping[str, Words]  # the runs of `a` and `b`, or `of`, each on top of `where`; `among` of ranks
    along: str = ""  # the key whose values a slope, a trend or a range runs along
    each: Sequence[str] = ()  # keys besides data set and output whose values are judged apart, and must all hold
    pair: Sequence[str] = ()  # keys that tell numbers apart too, but are judged together
    least: float | None = None  # how many numbers must lie in the region, or as a number below 1 which share; None: all
    over: str = ""  # "dataset" makes one number of all data sets
    name: str = ""
    against: Quantity | None = None  # the metric of b, where it is another
    margin_from: float | None = None  # the number that a margin of ours is measured from; None where it is not ours
    split_ratio: float | None = None  # errors over splits by those over rows, where these are known for its methods
    control: "Clause | str" = ""  # what comes out on the other side: a clause about other runs, or words ("none: why")

    @property
    def is_logarithmic(self) -> bool:
        return KINDS[self.kind].logarithmic

    @property
    def keys(self) -> Sequence[str]:
        """The keys that tell numbers apart, besides data set and output."""
        return (*self.each, *self.pair)

    def with_margin(self, factor: float) -> "Clause":
        """The clause with a margin of ours times a factor."""
        start = self.margin_from or 0.0
        return replace(self, region=Region(*(start + factor * (end - start) for end in self.region)), margin_from=None)


def read_clause(content: Any, subject: str) -> Clause:
    """The clause of an entry of a claims file.  Raises ConfigError for a wrong one."""
    kind, *others = [kind for kind in KINDS if kind in content] or ("", "")
    if others:
        raise ConfigError(f"{subject}: give one of {', '.join(KINDS)}, with a metric")
    needs = KINDS[kind].needs
    bounds = _DIRECTIONS if kind == "monotone" else _BOUNDS
    against = ("against",) if kind in ("difference", "ratio") else ()
    Keys({**dict.fromkeys((kind, *needs, *against), optional()), **_SHARED, **bounds}).check(content, subject)
    if kind == "comparison":
        require_known(str(content[kind]), COMPARISONS, f"{subject}: no comparison {content[kind]!r}")
    metric = Quantity.read(content[kind], subject)
    if kind == "difference" and metric.metric == "seconds":
        raise ConfigError(f"{subject}: seconds of one machine are compared by `ratio`, not by `difference`")
    if missing := [key for key in needs if key not in content]:
        raise ConfigError(f"{subject}: {kind} needs `{missing[0]}`")
    shared, control = _words(content.get("where", {}), subject), content.get("control", "")
    plain = {key: value for key, value in content.items() if key not in ("control", "name", "margin_from")}
    clause = Clause(
        kind,
        metric,
        _region(content, kind, subject),
        {key: {**shared, **_words(content[key], subject)} for key in needs if key != "along"},
        along=str(content.get("along", "")),
        each=_texts(content.get("each", [])),
        pair=_texts(content.get("pair", [])),
        least=content.get("least"),
        over=content.get("over", ""),
        name=_line(content.get("name", "")),
        against=Quantity.read(content["against"], subject) if "against" in content else None,
        margin_from=_end(content["margin_from"], kind) if "margin_from" in content else None,
        split_ratio=content.get("split_ratio"),
        control=read_clause({**plain, "control": "the clause that it is of", **control}, f"{subject}, control")
        if isinstance(control, dict)
        else _line(control),
    )
    if clause.margin_from is not None:
        half = clause.with_margin(0.5).region  # of ends that are not finite NaN
        fault = f"{subject}: margin_from: {content['margin_from']} leaves no region with half of the margin"
        require(half.low < half.high and half != clause.region, fault, ConfigError)
    return clause


def _region(content: Mapping[str, Any], kind: str, subject: str) -> Region:
    """The region of the numbers, in logarithms where they are ratios."""
    is_logarithmic = KINDS[kind].logarithmic
    low, high = content.get("between", (-math.inf, math.inf))
    if size := content.get("within"):
        low, high = (1 / size, size) if is_logarithmic else (-size, size)
    low = float(content.get("above", content.get("rises", low)))
    high = float(content.get("below", content.get("falls", high)))
    words = "`falls: 0` or `rises: 0`" if kind == "monotone" else "above, below, between: [a, b] or within"
    refuse(
        f"{subject}: ",
        (low >= high, f"no {kind} lies between {low:g} and {high:g}: give the lower end first"),
        (math.isinf(low) and math.isinf(high), f"say where the {kind} lies: {words}"),
        (is_logarithmic and (high <= 0 or (low <= 0 and math.isinf(high))), "every ratio is above 0: give another end"),
    )
    return Region(_end(low, kind), _end(high, kind))


def _end(value: float, kind: str) -> float:
    """An end of a region, as a logarithm where numbers are ratios."""
    if not KINDS[kind].logarithmic:
        return float(value)
    return math.log(value) if value > 0 else -math.inf


def _words(content: Any, subject: str) -> dict[str, tuple[str, ...]]:
    from gpbench.experiments.definition import text

    if not isinstance(content, dict):
        raise ConfigError(f"{subject}: runs are selected by a mapping such as {{method: sep}}")
    return {str(key): _texts(values, text) for key, values in content.items()}


def _texts(value: Any, text: Callable[[Any], str] = str) -> tuple[str, ...]:
    return tuple(map(text, value if isinstance(value, list) else [value]))


def _line(text: Any) -> str:
    return " ".join(str(text).split())


_PRINTED = ("supported", "contradicted", "undecided", "none")
"""Verdicts of the paper's own printed numbers on a claim; "none" where it prints none."""
_SHOWS = ("proved", "refuted", "holds", "leans for", "mixed", "leans against")
"""Grades that tests may give: of a proof or a counterexample, of committed runs, and of examples of our own."""
_TEST = re.compile(r"tests/[\w/]+\.py::\w+(\[.+\])?")
_LINES = ("text", "elsewhere", "reason", "printed_why", "note", "control")
CLAIM = Keys(
    {
        **dict.fromkeys(("place", "experiments", "test", *_LINES), optional()),
        "text": required(),
        "clauses": optional(MAPPINGS),
        "any": optional("flag"),
        "shows": optional(_SHOWS),
        "printed": optional(_PRINTED),
    }
)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper as predicates."""

    paper: str
    id: str
    text: str
    location: str
    experiments: Sequence[str]
    clauses: Sequence[Clause] = ()
    any: bool = False  # whether one clause that holds is enough
    tests: Sequence[str] = ()  # names of tests of gpbench, which together prove the sentence
    shows: str = "proved"  # the grade that the tests give it
    elsewhere: str = ""  # a machine or data that the runs need and that gpbench does not have
    reason: str = ""
    printed: str = "none"  # what the paper's own numbers say of it
    printed_why: str = ""
    note: str = ""
    control: str = ""  # that of its tests, and of its clauses without one of their own, in words

    @property
    def name(self) -> str:
        """The paper and the id, as in sep/c01."""
        return f"{self.paper}/{self.id}"


def files(config_dirs: Sequence[Path] = ()) -> dict[str, Path]:
    """The claims files by name; those of the user replace none of gpbench's."""
    return paths.yaml_files("claims", config_dirs)


def read(name: str, config_dirs: Sequence[Path] = ()) -> list[Claim]:
    """The claims of a file.  Raises ConfigError: an unknown name, or a file that holds no claims."""
    known = files(config_dirs)
    require_known(name, known, f"no claims {name!r}")
    content = yamls.read(known[name])
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"{known[name]}: claims are a mapping of ids to claims")
    shipped = known[name].is_relative_to(paths.conf_dir())
    return [_claim(name, str(id), value, f"{known[name]}: {id}", shipped) for id, value in content.items()]


def _claim(paper: str, id: str, content: Any, subject: str, shipped: bool) -> Claim:
    content = CLAIM.check(content, subject)
    tests = _texts(content.get("test", []))
    ways = [key for key in ("clauses", "test", "reason") if content.get(key)]
    unnamed = [test for test in tests if not _TEST.fullmatch(test)]
    test = "a `test` that proves it, " if shipped else ""
    is_decided = len(ways) == 1 or (not ways and content.get("elsewhere"))
    is_foreign = not shipped and ("test" in content or "shows" in content)
    refuse(
        f"{subject}: ",
        (is_foreign, "a `test` is one of gpbench's, and proves its claims alone: give `clauses`"),
        (not is_decided, f"a claim has `clauses`, {test}or a `reason` why it has none; or `elsewhere`"),
        ("shows" in content and "test" not in content, "`shows` is of a `test`: name it as tests/FILE.py::NAME"),
        (unnamed, f"test {''.join(unnamed[:1])}: name it as tests/FILE.py::NAME"),
    )
    control = content.get("control", "")
    clauses = [{"control": control, **clause} for clause in content.get("clauses", [])]
    return Claim(
        paper=paper,
        id=id,
        experiments=_texts(content.get("experiments", [])),
        clauses=tuple(read_clause(clause, f"{subject}, clause {k}") for k, clause in enumerate(clauses, 1)),
        any=bool(content.get("any", False)),
        tests=tests,
        shows=content.get("shows", "proved"),
        printed=content.get("printed", "none"),
        location=_line(content.get("place", "")),
        **{key: _line(content.get(key, "")) for key in _LINES},
    )
