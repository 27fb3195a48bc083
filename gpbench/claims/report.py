"""Verdicts as a sheet, a paragraph a claim, and as JSON."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpbench.analysis.grouping import gather
from gpbench.analysis.power import smallest_difference, splits_needed
from gpbench.analysis.printing import counted
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.claims import sentences
from gpbench.claims.estimates import Estimate
from gpbench.claims.grades import Counts, Judged
from gpbench.claims.selection import Number
from gpbench.claims.verdicts import Verdict, count
from gpbench.papers import PAPERS

NOTE = (
    "what the errors show: 95 % intervals by corrected resampled t tests over splits (Nadeau and Bengio 2003), over the"
    " test rows of a single split, or over data sets; what each grade is: docs/reference/claims.md"
)
_EFFECT = ("effect", "effect_low", "effect_high")
_HEADER = ("claim", "what it says, and what shows it")


def sheet(verdicts: Sequence[Verdict], full: bool = False, by_grade: bool = False) -> Sheet:
    """The sheet of verdicts, a grid for each paper or for each grade."""
    heading = lambda v: v.word if by_grade else PAPERS.get(v.claim.paper, v.claim.paper)
    ordered = [v for word in count(verdicts) for v in verdicts if v.word == word] if by_grade else verdicts
    groups = gather((heading(v), _lines(v, full)) for v in ordered)
    return Sheet(
        title=f"{counted(len(verdicts), 'claim')}: {summary(verdicts)}.",
        grids=[
            Grid(f"{name}: {counted(len(claims), 'claim')}", _HEADER, tuple(itertools.chain(*claims)), prose=True)
            for name, claims in groups.items()
        ],
        remarks=[NOTE],
        rows=[row(v) for v in verdicts],
        width=100,  # where there is no terminal: most cells are sentences
    )


def _lines(verdict: Verdict, full: bool) -> list[tuple[str, str]]:
    """The sentence of a claim; its grade and the evidence; the details, and the command that shows it."""
    text = evidence(verdict) + (f" ({marks(verdict)})" if marks(verdict) else "")
    more = [*(details(verdict) if full else ()), command(verdict)]
    return [(verdict.claim.name, verdict.claim.text), (verdict.word, text), *(("", line) for line in more if line)]


def summary(verdicts: Sequence[Verdict]) -> str:
    """The counts of grades, as in "7 holds, 8 mostly holds, 17 mixed"."""
    return ", ".join(f"{n} {word}" for word, n in count(verdicts).items() if n)


def marks(verdict: Verdict) -> str:
    """Restrictions of a verdict: runs of the quick preset, and numbers of single splits."""
    words = ["quick" if verdict.preset == "quick" else "partly quick"] if "quick" in verdict.preset else []
    return ", ".join([*words, "one split"] if verdict.decider and verdict.decider.one_split else words)


def evidence(verdict: Verdict) -> str:
    """One sentence on the clause that decides, or on the tests that do, or the reason why there is none."""
    if tests := verdict.claim.tests:
        return f"by {counted(len(tests), 'test')}"
    if verdict.decider is None or verdict.decisive is None:
        return verdict.reason
    n, missing = len(verdict.clauses), sum(not judged.counts.known for judged in verdict.clauses)
    prefix = f"clause {verdict.decisive + 1} of {n}: " if n > 1 else ""
    return prefix + sentences.sentence(verdict.decider) + (f"; {counted(missing, 'clause')} not run" if missing else "")


def command(verdict: Verdict) -> str:
    """The command that shows the evidence; "" where there is none, or where its reason names it."""
    files = dict.fromkeys(test.partition("::")[0] for test in verdict.claim.tests)
    details_of = f"gpbench verify {verdict.claim.name} --details" if verdict.decider else ""
    return " ".join(["pytest", *files]) if files else details_of


def details(verdict: Verdict) -> list[str]:
    """Lines with each clause: its sentence, counts, effect and p-values; then what the paper prints, and notes."""
    claim = verdict.claim
    lines = [test.partition("::test_")[2].replace("_", " ") for test in claim.tests]
    for k, judged in enumerate(verdict.clauses, 1):
        names = ("inside", "leaning in", "leaning out", "outside", "not run")
        facts = ", ".join(f"{n} {name}" for n, name in zip(judged.counts, names) if n)
        head = f"{k}. {judged.grade()}: {sentences.describe(judged.clause)}"
        lines.append(f"{head}: {facts}; {sentences.effect(judged)}".removesuffix("; "))
        lines.append("" if judged.counts.known else judged.reason)
        for n in judged.numbers:
            lines += [f"   {n.name or 'all'}: {sentences.estimate(judged.clause, n.estimate)}"] if n.estimate else []
        if judged.control:
            lines.append(f"   control, {judged.control.grade()}: {sentences.sentence(judged.control)}")
    if verdict.decider:
        supporting, contradicting = verdict.evidence
        q = f"two-sided over the claims of the paper {verdict.q:.2g}"
        lines.append(f"p for {supporting:.2g}, p against {contradicting:.2g}; {q}")
    lines.append(_power(verdict.decider) if verdict.decider and verdict.word.startswith("leans") else "")
    printed = "" if claim.printed == "none" else f"by the paper's own numbers {claim.printed}"
    control = f"control: {claim.control}" if claim.control else ""
    lines += [control, ": ".join(filter(None, [printed, claim.printed_why])), claim.note, claim.location]
    return [line for line in lines if line]


def row(verdict: Verdict) -> dict[str, Any]:
    """The verdict on a claim by name, for CSV and JSON; counts and effect are those of the clause that decides."""
    claim, judged = verdict.claim, verdict.decider
    return {
        "claim": claim.name,
        "verdict": verdict.word,
        "preset": verdict.preset or None,
        "clause": None if verdict.decisive is None else verdict.decisive + 1,
        **(judged.counts._asdict() if judged else dict.fromkeys(Counts._fields)),
        **(_ends(judged, judged.effect, *_EFFECT) if judged else dict.fromkeys(_EFFECT)),
        "one_split": bool(judged and judged.one_split),
        "p": verdict.evidence.p if judged else None,
        "q": verdict.q if judged else None,
        "evidence": evidence(verdict),
        "tests": " ".join(claim.tests),
        **{name: getattr(claim, name) for name in ("printed", "text", "printed_why", "note")},
        "place": claim.location,
        "experiments": " ".join(claim.experiments),
    }


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict with every number for JSON; ratios are ratios, not logarithms."""
    clauses = [
        {
            "clause": sentences.describe(judged.clause),
            "grade": judged.grade(),
            "control": judged.control.grade() if judged.control else judged.clause.control,
            **dict(zip(("low", "high"), map(_finite, sentences.ends(judged.clause)))),
            "quota": judged.quota,
            **judged.counts._asdict(),
            "p_supporting": judged.evidence.supporting,
            "p_contradicting": judged.evidence.contradicting,
            "numbers": [_number(judged, n) for n in judged.numbers],
        }
        for judged in verdict.clauses
    ]
    return {**row(verdict), "clauses": clauses}


def _number(judged: Judged, n: Number) -> Mapping[str, Any]:
    ends = _ends(judged, n.estimate, "value", "low", "high")
    return {"name": n.name, **ends, "n": n.estimate.n if n.estimate else 0}


def _ends(judged: Judged, estimate: Estimate | None, *names: str) -> Mapping[str, float | None]:
    """An estimate and the ends of its interval by these names."""
    values = sentences.as_shown(judged.clause, estimate) if estimate else (None,) * 3
    return dict(zip(names, map(_finite, values)))


def _power(judged: Judged) -> str:
    """What splits of the least certain number of a clause that leans can show, and how many decide it."""
    clause, known = judged.clause, [n.estimate for n in judged.numbers if n.estimate]
    tested = [e for e in known if e.sd and e.ratio is not None and e.n > 1]
    e = max(tested, key=lambda e: e.stderr or 0.0, default=None)
    if e is None or e.sd is None or e.ratio is None or judged.control_fault:
        return ""
    distance = min(abs(e.value - end) for end in clause.region if not math.isinf(end))
    smallest, needed = smallest_difference(e.sd, e.n, e.ratio), splits_needed(distance, e.sd, e.ratio)
    splits = "no number of splits decides" if math.isinf(needed) else f"{int(needed)} splits decide"
    least = f"factor of {math.exp(smallest):.2g}" if clause.is_logarithmic else f"distance of {smallest:.2g}"
    return f"least certain number: {e.n} splits can show only a {least} or more; {splits}"


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value
