"""Clauses and their evidence in words, as a person would say them."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from gpbench.analysis.printing import counted, number
from gpbench.claims.clauses import Clause
from gpbench.claims.estimates import Estimate, SignedRank, Student
from gpbench.claims.grades import Judged
from gpbench.claims.numbers import Number
from gpbench.claims.regions import LEANS_IN, Region
from gpbench.claims.selection import ANY

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NAMED = 3
"""Largest number of data sets that a sentence names."""


def describe(clause: Clause) -> str:
    """A clause in words, as in "nll of sep - svi in [-0.05, 0.05]"."""
    a, b, runs = (_side(clause, key) for key in ("a", "b", "of"))
    kind, metric, region = clause.kind, clause.metric, str(ends(clause))
    texts = {
        "difference": f"{metric} of {a} - {b} {region}",
        "ratio": f"{metric} of {a} / {b} {region}",
        "value": f"{metric} of {runs} {region}",
        "share": f"share of cells where {a} has better {metric} than {b} {region}",
        "rank": f"rank by {metric} of {a} - {b} {region}",
        "slope": f"slope of log {metric} of {runs} on log {clause.along} {region}",
        "friedman": f"p of Friedman's test of ranks by {metric} {region}",
        "spread": f"standard deviation over outputs of {metric} of {a} / {b} {region}",
        "range": f"range over {clause.along} of {metric} of {a} - {b} {region}",
        "comparison": f"{metric} of {a} and {b} {region}",
        "monotone": f"step of {metric} of {runs} along {clause.along} {region}",
    }
    return clause.name or texts[kind] + (" over data sets" if clause.over else "")


def sentence(judged: Judged) -> str:
    """What the numbers of a clause say, as in "19 of 21 differences lie within 0.05; sonar's two do not"."""
    clause, counts = judged.clause, judged.counts
    known = [n for n in judged.numbers if n.estimate]
    if not known:
        return f"{describe(clause)}: {judged.reason or 'not run'}"
    rest = f"{counts.missing} not run" if counts.missing else ""
    if len(known) == 1 and known[0].estimate:
        text = f"{_NOUNS[clause.kind]} is {estimate(clause, known[0].estimate)}"
        untested = "" if _tested(known[0]) else "no error is known"
        return "; ".join(filter(None, [text, f"required here: {phrase(clause)}", untested, rest]))
    n, claimed = counts.known, counts.claimed
    share = ("both" if n == 2 else f"all {n}") if claimed == n else f"{claimed or 'none'} of {n}"
    quota = f", where {judged.quota} must" if judged.quota < n else ""
    text = f"{phrase(clause)} in {share} {_unit(judged)}{quota}"
    return "; ".join(filter(None, [text, _exceptions(judged), _certainty(judged), rest]))


def estimate(clause: Clause, estimate: Estimate) -> str:
    """A number with its 95 % interval."""
    value, low, high = as_shown(clause, estimate)
    text, low_text, high_text = (f"{x:.2f}" if clause.kind == "share" else number(x) for x in (value, low, high))
    return text if math.isinf(low) or math.isinf(high) else f"{text} [{low_text}, {high_text}]"


def ends(clause: Clause) -> Region:
    """The region; of ratios, not of their logarithms."""
    return Region(*map(_exp, clause.region)) if clause.is_logarithmic else clause.region


def as_shown(clause: Clause, estimate: Estimate) -> tuple[float, float, float]:
    """The value and the ends of its interval; infinite ends where no test is possible."""
    value, (low, high) = estimate.value, estimate.interval
    return (_exp(value), _exp(low), _exp(high)) if clause.is_logarithmic else (value, low, high)


def _exp(x: float) -> float:
    """The exponential, except that infinities stay: a ratio without an interval has no lower end of 0."""
    return x if math.isinf(x) else math.exp(min(x, 700.0))


_NOUNS = {
    "difference": "the difference",
    "ratio": "the ratio",
    "value": "the number",
    "share": "the share",
    "rank": "the difference of ranks",
    "slope": "the exponent",
    "friedman": "the p-value",
    "spread": "the ratio",
    "range": "the difference",
    "comparison": "the number",
    "monotone": "the change",
}


def phrase(clause: Clause) -> str:
    """What a clause says of each number, as in "sep has lower nll than svi"."""
    if clause.name:
        return clause.name
    a, b, runs = _side(clause, "a"), _side(clause, "b", every=clause.least is not None), _side(clause, "of")
    (low, high), metric, along = ends(clause), clause.metric, clause.along.rpartition(".")[2]
    be, that, s = ("are", "those", "") if _is_plural(metric) else ("is", "that", "s")
    one_sided = math.isinf(low) or math.isinf(high)
    that = f"{clause.against}" if clause.against else that
    order, bound = ("lower", high) if math.isinf(low) else ("higher", low)
    if clause.kind == "difference" and one_sided:
        beyond = (bound < 0) == (order == "lower")  # the claim asks for more than an order
        if bound and not beyond:
            side = "above" if order == "lower" else "below"
            return f"{metric} of {a} {be} less than {abs(bound):.4g} {side} {that} of {b}"
        return f"{a} has {order} {metric} than {b}" + (f", by more than {abs(bound):.4g}" if bound else "")
    if clause.kind == "rank" and one_sided and not bound:
        return f"{a} ranks {'better' if order == 'lower' else 'worse'} by {metric} than {b}"
    if clause.kind == "monotone" and not bound:
        return f"{metric} of {runs} {'fall' if order == 'lower' else 'rise'}{s} with {along}"
    if clause.kind == "spread":
        metric = f"the standard deviation over outputs of {metric}"
    if clause.is_logarithmic and one_sided and bound == 1:
        return f"{metric} of {a} {f'{be} below' if order == 'lower' else f'exceed{s}'} {that} of {b}"
    if clause.is_logarithmic:
        times = (
            f"{'less' if order == 'lower' else 'more'} than {bound:.4g}" if one_sided else f"{low:.4g} to {high:.4g}"
        )
        return f"{metric} of {a} {be} {times} times {that} of {b}"
    subjects = {
        "difference": f"{metric} of {a} less that of {b}",
        "value": f"{metric} of {runs}",
        "share": f"the share of pairs in which {a} has better {metric} than {b}",
        "range": f"the range over {along} of {metric} of {a} less that of {b}",
        "comparison": f"{metric} of {a} and {b}",
        "friedman": f"p of Friedman's test of ranks by {metric}",
        "rank": f"the rank of {a} by {metric} less that of {b}",
        "slope": f"the exponent of {metric} of {runs} in {along}",
        "monotone": f"the change of {metric} of {runs} with {along}",
    }
    return f"{subjects[clause.kind]} {be if clause.kind in ('value', 'comparison') else 'is'} {_interval(low, high)}"


def _is_plural(metric: str) -> bool:
    return metric.startswith(("seconds", "steps ")) or metric.endswith("_operations")


def _interval(low: float, high: float) -> str:
    if math.isinf(low):
        return f"below {high:.4g}"
    if math.isinf(high):
        return f"above {low:.4g}"
    return f"within {high:.4g}" if low == -high else f"between {low:.4g} and {high:.4g}"


def _unit(judged: Judged) -> str:
    if judged.clause.over or judged.clause.kind in ("rank", "share"):
        return "cases"
    return "comparisons" if judged.clause.least is None and any(n.rival for n in judged.numbers) else "cells"


def _exceptions(judged: Judged) -> str:
    """The smaller part of the cells by name, data sets where these tell it."""
    several = len({number.location for number in judged.numbers if number.estimate}) > 1
    inside: list[str] = []
    outside: list[str] = []
    for group in judged.groups:
        cells = [rivals for rivals in group.cells if any(number.estimate for number in rivals)]
        for rivals, position in zip(cells, group.positions):
            (inside if position <= LEANS_IN else outside).append(
                rivals[0].location if several else _label(judged.clause, rivals[0])
            )
    if not inside or not outside:
        return ""
    few, verb = (outside, "not") if len(outside) <= len(inside) else (inside, "only")
    names = Counter(few)
    if len(names) == 1:
        ((name, n),) = names.items()
        do = "do" if n > 1 else "does"
        if verb == "not" and n > 1:
            return f"{name}'s {_word(n)} {do} not"
        return f"{verb} {name}" + (f" ({n})" if n > 1 else "")
    labels = [name + (f" ({n})" if n > 1 else "") for name, n in names.most_common()]
    more = [f"{len(labels) - _NAMED} more"] if len(labels) > _NAMED + 1 else []
    labels = labels[:_NAMED] + more if more else labels
    return f"{verb} {', '.join(labels[:-1])} and {labels[-1]}"


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
    if counts.inside == counts.known:
        return ""
    parts = [
        f"show {counts.inside} of them" * bool(counts.inside),
        f"exclude it for {counts.outside}" * bool(counts.outside),
    ]
    return f"the errors {' and '.join(filter(None, parts))}"


def _tested(n: Number) -> bool:
    """Whether a number has an error."""
    return n.estimate is not None and not math.isinf(n.estimate.interval[0])


def _word(n: int) -> str:
    return _WORDS[n] if n < len(_WORDS) else str(n)


def effect(judged: Judged) -> str:
    """The mean over data sets with its interval, from how many sets, and the median, which no outlier moves."""
    mean = judged.effect
    if mean is None:
        return ""
    text = estimate(judged.clause, mean)
    known = [n for n in judged.numbers if n.estimate]
    if len(known) == 1:
        kind = "over the test rows of one split" if isinstance(mean, Student) and mean.of_rows else ""
        kind = "over data sets" if isinstance(mean, SignedRank) else kind
        return f"{text} {kind}".rstrip()
    sets = len({n.key[0] for n in known if n.key[0]})
    cells = f"over {counted(sets, 'data set')}" if sets else f"of {counted(len(known), 'case')}"
    middle = median(as_shown(judged.clause, n.estimate)[0] for n in known if n.estimate)
    kind = "geometric mean" if judged.clause.is_logarithmic else "mean"
    return f"{kind} {text} {cells}, median {number(middle)}"


def _side(clause: Clause, key: str, every: bool = False) -> str:
    words = clause.sides.get(key, {})
    terms = [_methods(values, every) for name, values in words.items() if name == "method"]
    own = {k: v for k, v in words.items() if k not in ("method", "dataset") and _distinguishes(clause, k)}
    terms += [
        f"{k.rpartition('.')[2]}={'|'.join(value or 'default' for value in v)}"
        for k, v in own.items()
        if len(v) < 4 and v != ANY
    ]
    return " ".join(terms) or "the runs"


def _methods(names: Sequence[str], every: bool) -> str:
    if len(names) > 3:
        return "all the others" if every else "the others"
    if every and len(names) > 1:
        return f"{'both' if len(names) == 2 else 'each of'} {', '.join(names[:-1])} and {names[-1]}"
    return " or ".join(names)


def _distinguishes(clause: Clause, key: str) -> bool:
    return len({tuple(words.get(key, ())) for words in clause.sides.values()}) > 1
