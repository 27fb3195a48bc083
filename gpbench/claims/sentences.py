"""Clauses and their evidence in words, as a person would say them."""

import math
from collections import Counter
from statistics import median

from gpbench.analysis.printing import counted, number, share
from gpbench.claims.definition import KINDS, Clause
from gpbench.claims.estimates import LEANS_IN, Estimate, Region
from gpbench.claims.grades import Judged
from gpbench.claims.selection import ANY, Number

_WORDS = dict(enumerate(["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]))
_NAMED = 3  # largest number of data sets that a sentence names


def describe(clause: Clause) -> str:
    """A clause in words, as in "sep has lower nll than svi over data sets"."""
    return _phrase(clause) + (" over data sets" if clause.over and not clause.name else "")


def sentence(judged: Judged) -> str:
    """The evidence of a clause, as in "19 of 21 differences lie within 0.05; sonar's two do not"."""
    clause, counts = judged.clause, judged.counts
    known = [n for n in judged.numbers if n.estimate]
    if not known:
        return f"{describe(clause)}: {judged.reason or 'not run'}"
    rest = f"{counts.missing} not run" if counts.missing else ""
    if len(known) == 1 and known[0].estimate:
        text = f"{KINDS[clause.kind].noun} is {estimate(clause, known[0].estimate)}"
        untested = "" if _tested(known[0]) else "no error is known"
        return "; ".join(filter(None, [text, f"required here: {_phrase(clause)}", untested, rest]))
    n, claimed = counts.known, counts.claimed
    quota = f", where {judged.quota} must" if judged.quota < n else ""
    unit = "comparisons" if clause.least is None and any(n.rival for n in judged.numbers) else "cells"
    unit = "cases" if clause.over or clause.kind in ("rank", "share") else unit
    text = f"{_phrase(clause)} in {share(claimed, n)} {unit}{quota}"
    return "; ".join(filter(None, [text, _exceptions(judged), _certainty(judged), rest]))


def estimate(clause: Clause, estimate: Estimate) -> str:
    """A number with its 95 % interval."""
    value, low, high = as_shown(clause, estimate)
    text, low_text, high_text = (f"{x:.2f}" if clause.kind == "share" else number(x) for x in (value, low, high))
    return text if math.isinf(low) or math.isinf(high) else f"{text} [{low_text}, {high_text}]"


def ends(clause: Clause) -> Region:
    """The region, as ratios where numbers are their logarithms."""
    return Region(*map(_exp, clause.region)) if clause.is_logarithmic else clause.region


def as_shown(clause: Clause, estimate: Estimate) -> tuple[float, float, float]:
    """The value and the ends of its interval; infinite ends where no test is possible."""
    value, (low, high) = estimate.value, estimate.interval
    return (_exp(value), _exp(low), _exp(high)) if clause.is_logarithmic else (value, low, high)


def _exp(x: float) -> float:
    """The exponential, except that infinities stay: a ratio without an interval has no lower end of 0."""
    return x if math.isinf(x) else math.exp(min(x, 700.0))


def _phrase(clause: Clause) -> str:
    """The assertion of a clause on each number, as in "sep has lower nll than svi"."""
    if clause.name:
        return clause.name
    a, b, runs = _side(clause, "a"), _side(clause, "b", every=clause.least is not None), _side(clause, "of")
    (low, high), metric, along = ends(clause), str(clause.metric), clause.along.rpartition(".")[2]
    is_plural = clause.metric.metric in ("seconds", "steps") or metric.endswith("_operations")
    be, that, s = ("are", "those", "") if is_plural else ("is", "that", "s")
    that = str(clause.against) if clause.against else that
    falls, one_sided = math.isinf(low), math.isinf(low) or math.isinf(high)
    order, bound = ("lower", high) if falls else ("higher", low)
    if clause.kind == "difference" and one_sided:
        if bound and (bound < 0) != falls:  # the claim asks for less than an order
            return f"{metric} of {a} {be} less than {abs(bound):.4g} {'above' if falls else 'below'} {that} of {b}"
        return f"{a} has {order} {metric} than {b}" + (f", by more than {abs(bound):.4g}" if bound else "")
    if clause.kind == "rank" and one_sided and not bound:
        return f"{a} ranks {'better' if falls else 'worse'} by {metric} than {b}"
    if clause.kind == "monotone" and not bound:
        return f"{metric} of {runs} {'fall' if falls else 'rise'}{s} with {along}"
    if clause.is_logarithmic:
        of_a = f"{'the standard deviation over outputs of ' if clause.kind == 'spread' else ''}{metric} of {a}"
        if one_sided and bound == 1:
            return f"{of_a} {f'{be} below' if falls else f'exceed{s}'} {that} of {b}"
        times = f"{'less' if falls else 'more'} than {bound:.4g}" if one_sided else f"{low:.4g} to {high:.4g}"
        return f"{of_a} {be} {times} times {that} of {b}"
    kind = KINDS[clause.kind]
    subject = kind.subject.format(metric=metric, a=a, b=b, of=runs, along=along)
    interval = f"within {high:.4g}" if low == -high else f"between {low:.4g} and {high:.4g}"
    if one_sided:
        interval = f"{'below' if falls else 'above'} {bound:.4g}"
    return f"{subject} {be if clause.kind in ('value', 'comparison') else 'is'} {interval}"


def _exceptions(judged: Judged) -> str:
    """The smaller part of the cells by name, data sets where these tell it."""
    several = len({number.location for number in judged.numbers if number.estimate}) > 1
    sides: dict[bool, list[str]] = {True: [], False: []}
    for group in judged.groups:
        cells = [rivals for rivals in group.cells if any(number.estimate for number in rivals)]
        for (first, *_), position in zip(cells, group.positions):
            sides[position <= LEANS_IN].append(first.location if several else _label(judged.clause, first))
    inside, outside = sides.values()
    if not inside or not outside:
        return ""
    few, verb = (outside, "not") if len(outside) <= len(inside) else (inside, "only")
    names = Counter(few)
    if len(names) == 1:
        ((name, n),) = names.items()
        if verb == "not" and n > 1:
            return f"{name}'s {_WORDS.get(n, n)} do not"
    labels = [name + (f" ({n})" if n > 1 else "") for name, n in names.most_common()]
    if len(labels) > _NAMED + 1:
        labels = [*labels[:_NAMED], f"{len(labels) - _NAMED} more"]
    return f"{verb} {' and '.join(filter(None, [', '.join(labels[:-1]), labels[-1]]))}"


def _label(clause: Clause, n: Number) -> str:
    """The keys and the rival of a number, without a rival where a cell is all of them; its data set if it has none."""
    names = [key.rpartition(".")[2] for key in (*clause.keys, clause.along)]
    words = [f"{name}={value}" for name, value in zip(names, n.key[2:]) if value]
    return " ".join([*words, *([n.rival] if n.rival and clause.least is None else [])]) or n.location


def _certainty(judged: Judged) -> str:
    """For how many cells the errors show what their values say."""
    counts = judged.counts
    if not counts.inside + counts.outside:
        return "the errors show none of this" if any(map(_tested, judged.numbers)) else "no errors are known"
    inside = f"show {counts.inside} of them" if counts.inside else ""
    outside = f"exclude it for {counts.outside}" if counts.outside else ""
    return "" if counts.inside == counts.known else f"the errors {' and '.join(filter(None, (inside, outside)))}"


def _tested(n: Number) -> bool:
    """Whether a number has an error."""
    return n.estimate is not None and not math.isinf(n.estimate.interval[0])


def effect(judged: Judged) -> str:
    """The mean over data sets with its interval, from how many sets, and the median, which no outlier moves."""
    mean = judged.effect
    if mean is None:
        return ""
    text = estimate(judged.clause, mean)
    known = [n for n in judged.numbers if n.estimate]
    if len(known) == 1:
        kinds = {"rows": "over the test rows of one split", "ranks": "over data sets"}
        return f"{text} {kinds.get(mean.source, '')}".rstrip()
    sets = len({n.key[0] for n in known if n.key[0]})
    cells = f"over {counted(sets, 'data set')}" if sets else f"of {counted(len(known), 'case')}"
    middle = median(as_shown(judged.clause, n.estimate)[0] for n in known if n.estimate)
    kind = "geometric mean" if judged.clause.is_logarithmic else "mean"
    return f"{kind} {text} {cells}, median {number(middle)}"


def _side(clause: Clause, key: str, every: bool = False) -> str:
    words = clause.sides.get(key, {})
    methods, terms = [*words.get("method", ())], []
    if len(methods) > 3:
        terms = ["all the others" if every else "the others"]
    elif every and len(methods) > 1:
        terms = [f"{'both' if len(methods) == 2 else 'each of'} {', '.join(methods[:-1])} and {methods[-1]}"]
    elif methods:
        terms = [" or ".join(methods)]
    for key, values in words.items():
        differs = len({tuple(others.get(key, ())) for others in clause.sides.values()}) > 1
        if key not in ("method", "dataset") and differs and len(values) < 4 and values != ANY:
            terms.append(f"{key.rpartition('.')[2]}={'|'.join(value or 'default' for value in values)}")
    return " ".join(terms) or "the runs"
