"""Verdicts as a sheet, a line a claim, and as JSON."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpbench.analysis.power import smallest_difference, splits_needed
from gpbench.analysis.printing import abridge, counted, number
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Estimate, Region, Student
from gpbench.claims.predicates import Number
from gpbench.claims.verdicts import Judged, Verdict, count

NOTE = (
    "supported: the 95 % intervals lie in the region that the claim states; contradicted: outside; corrected resampled"
    " t tests over splits (Nadeau and Bengio 2003), Wilcoxon's over data sets, Bonferroni's partial conjunction over"
    " cells (Benjamini and Heller 2008) and Holm's correction over claims; docs/reference/claims.md"
)


def sheet(verdicts: Sequence[Verdict]) -> Sheet:
    """Makes the sheet of verdicts: a line for each claim, below a line of counts."""
    header = ("claim", "verdict", "evidence", "by the paper's own numbers", "says")
    lines = tuple(
        (v.claim.name, marked(v), evidence(v), v.claim.printed.replace("none", "not printed"), v.claim.text)
        for v in verdicts
    )
    return Sheet(
        title=f"{counted(len(verdicts), 'claim')}: {summary(verdicts)}.",
        grids=[Grid("", header, lines, prose=True)],
        remarks=[NOTE],
        rows=[row(v) for v in verdicts],
    )


def summary(verdicts: Sequence[Verdict]) -> str:
    """The counts of verdicts, as in "18 supported, 3 contradicted, 4 undecided, 2 not run"."""
    return ", ".join(f"{n} {word}" for word, n in count(verdicts).items() if n)


def marked(verdict: Verdict) -> str:
    """The verdict, with "(quick)" where it is from runs of the quick preset."""
    quick = verdict.preset == "quick" and not verdict.reason
    return verdict.verdict + (" (quick)" if quick else "")


def evidence(verdict: Verdict) -> str:
    """Describes the measured numbers of a claim, or the reason why there are none.

    Args:
        verdict: the verdict on the claim.
    """
    if verdict.reason:
        return verdict.reason
    return "; ".join(filter(None, [*map(_clause, verdict.clauses), _power(verdict)]))


def describe(clause: Clause) -> str:
    """A clause in words, as in "nll of sep - svi in [-0.05, 0.05]"."""
    a, b, runs = (_side(clause, key) for key in ("a", "b", "of"))
    kind, metric, region = clause.kind, clause.metric, str(_ends(clause))
    texts = {
        "difference": f"{metric} of {a} - {b} {region}",
        "ratio": f"{metric} of {a} / {b} {region}",
        "value": f"{metric} of {runs} {region}",
        "share": f"share of cells where {a} has better {metric} than {b} {region}",
        "rank": f"rank by {metric} of {a} - {b} {region}",
        "slope": f"slope of log {metric} of {runs} on log {clause.along} {region}",
        "monotone": f"step of {metric} of {runs} along {clause.along} {region}",
    }
    return clause.name or texts[kind] + (" over data sets" if clause.over else "")


def row(verdict: Verdict) -> dict[str, Any]:
    """The verdict on a claim by name, for CSV and JSON."""
    claim = verdict.claim
    return {
        "claim": claim.name,
        "verdict": verdict.verdict,
        "preset": verdict.preset or None,
        "p": _p(verdict),
        "evidence": evidence(verdict),
        "printed": claim.printed,
        "text": claim.text,
        "place": claim.location,
        "experiments": " ".join(claim.experiments),
        "printed_why": claim.printed_why,
        "note": claim.note,
    }


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """Converts a verdict with every number for JSON; ratios are ratios, not logarithms.

    Args:
        verdict: the verdict.
    """
    clauses = [
        {
            "clause": describe(judged.clause),
            "low": _finite(_ends(judged.clause)[0]),
            "high": _finite(_ends(judged.clause)[1]),
            "p_supporting": judged.evidence.supporting,
            "p_contradicting": judged.evidence.contradicting,
            "numbers": [_number(judged.clause, n) for n in judged.numbers],
        }
        for judged in verdict.clauses
    ]
    return {**row(verdict), "clauses": clauses}


def _number(clause: Clause, number: Number) -> Mapping[str, Any]:
    if number.estimate is None:
        return {"name": number.name, "value": None, "low": None, "high": None, "n": 0}
    value, low, high = map(_finite, _as_shown(clause, number.estimate))
    return {"name": number.name, "value": value, "low": low, "high": high, "n": number.estimate.n}


def _clause(judged: Judged) -> str:
    known = [n for n in judged.numbers if n.estimate]
    if len(judged.numbers) == 1 and known:
        return f"{describe(judged.clause)}: {_estimate(judged.clause, known[0].estimate)}"
    text = f"{describe(judged.clause)} in {judged.inside} of {len(known)} cells"
    several = len({n.rival for n in judged.numbers}) > 1
    others = [
        " ".join(filter(None, [*n.key, n.rival if several else "", _estimate(judged.clause, n.estimate)]))
        for n in known
        if n.estimate and not judged.clause.region.low <= n.estimate.value <= judged.clause.region.high
    ]
    text += f", not {abridge(others, 3)}" if others else ""
    return text + (f", {judged.missing} not run" if judged.missing else "")


def _estimate(clause: Clause, estimate: Estimate | None) -> str:
    assert estimate
    value, low, high = _as_shown(clause, estimate)
    text = number(value)
    return text if math.isinf(low) or math.isinf(high) else f"{text} [{number(low)}, {number(high)}]"


def _ends(clause: Clause) -> Region:
    return Region(*map(_exp, clause.region)) if clause.kind == "ratio" else clause.region


def _as_shown(clause: Clause, estimate: Estimate) -> tuple[float, float, float]:
    """The value and the ends of its interval; infinite ends where no test is possible."""
    value, (low, high) = estimate.value, estimate.interval
    return (_exp(value), _exp(low), _exp(high)) if clause.kind == "ratio" else (value, low, high)


def _exp(x: float) -> float:
    """The exponential, except that infinities stay: a ratio without an interval has no lower end of 0."""
    return x if math.isinf(x) else math.exp(min(x, 700.0))


def _power(verdict: Verdict) -> str:
    """The power of an undecided claim: what the splits of its least certain number show, and how many would decide."""
    if verdict.verdict != "undecided":
        return ""
    candidates = []
    for judged in verdict.clauses:
        for n in judged.numbers:
            e = n.estimate
            if isinstance(e, Student) and e.sd and e.ratio is not None and e.n > 1:
                distance = min(abs(e.value - end) for end in judged.clause.region if not math.isinf(end))
                candidates.append((e.stderr or 0.0, distance, e.n, e.sd, e.ratio, judged.clause))
    if not candidates:
        return ""
    _, distance, n_splits, sd, ratio, clause = max(candidates, key=lambda item: item[0])
    smallest, needed = smallest_difference(sd, n_splits, ratio), splits_needed(distance, sd, ratio)
    smallest = math.exp(smallest) if clause.kind == "ratio" else smallest
    splits = "no number of splits decides" if math.isinf(needed) else f"{int(needed)} splits decide"
    noun = "factor" if clause.kind == "ratio" else "distance"
    return f"least certain number: {n_splits} splits show a {noun} of {number(smallest)} from the bound; {splits}"


def _side(clause: Clause, key: str) -> str:
    words = clause.sides.get(key, {})
    terms = [" or ".join(values) for name, values in words.items() if name == "method"]
    own = {k: v for k, v in words.items() if k not in ("method", "dataset") and _distinguishes(clause, k)}
    terms += [f"{k.rpartition('.')[2]}={'|'.join(value or 'none' for value in v)}" for k, v in own.items()]
    return " ".join(terms) or "the runs"


def _distinguishes(clause: Clause, key: str) -> bool:
    return len({tuple(words.get(key, ())) for words in clause.sides.values()}) > 1


def _p(verdict: Verdict) -> float | None:
    return None if verdict.reason else verdict.evidence.p


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value
