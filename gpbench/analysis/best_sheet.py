"""The sheet of a comparison of methods on some kind of data: one sentence of answer, and the table behind it."""

from collections.abc import Mapping, Sequence

from gpbench.analysis.best import BestMethods, Score
from gpbench.analysis.board import FEWEST
from gpbench.analysis.comparison import RULE
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import abridge, counted, number
from gpbench.analysis.provenance import correction, imported_note, provenance_lines, seconds_lines, split_notes
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.analysis.statistics import LEVEL
from gpbench.analysis.tables import title

_ROWS = 12  # number of methods in the table, unless all are asked for
_NEXT = 2  # number of methods after the leader whose differences stand data set by data set


def _label(result: BestMethods, name: str) -> str:
    """The name of a method, and whether its runs are of another program, which `gpbench run` does not have."""
    method = name.split()[0]
    return f"{method} (imported)" if all(r.imported for r in result.records if r.method == method) else method


def sentence(result: BestMethods) -> str:
    """The answer in one sentence: what to try, and what the tests show of it, no more."""
    n_datasets, others, leader = len(result.datasets), len(result.average) - 1, result.leader
    extreme, over = "lowest", f"{n_datasets} data sets"
    value = f"average rank ({result.average[leader]:.1f}) by {result.metric}"
    if n_datasets == 1:
        extreme = "lowest" if result.direction == "lower" else "highest"
        over = f"{result.datasets[0]}, the only data set with enough of them"
        value = f"mean {result.metric} ({number(result.scores[leader][result.datasets[0]].mean)})"
    start = f"{_label(result, leader)} first: it has the {extreme} {value} of {others + 1} methods on {over}"
    if result.worse:
        count = "all others" if len(result.worse) == others else f"{len(result.worse)} of the {others} others"
        return f"Try {start}; {count} are shown not to be the best"
    test = "corrected resampled t test" if n_datasets == 1 else "moderated t test over data sets"
    reason = f"no {test} against it has p < {LEVEL:g}"
    if n_datasets > 1 and result.families < FEWEST:
        reason = f"a test over data sets needs {FEWEST} families of them"
    return f"Try several methods, {start}; no method is shown to be worse than it: {reason}"


def sheet(result: BestMethods, scope: str, notes: Sequence[str] = (), *, whole: bool = False) -> Sheet:
    """The sheet of the best methods, all of them or the first."""
    names = list(result.average)[: None if whole else _ROWS]
    sizes = [f"{d} ({result.sizes[d]:,} rows, {counted(len(result.splits[d]), 'split')})" for d in result.datasets]
    summary = [scope, f"On {'; '.join(sizes)}"]
    if (n := len({d.partition(" ")[0] for d in result.datasets})) < FEWEST:
        summary.append(f"Few data: {counted(n, 'data set')}; other data of this size may give another order")
    return Sheet(
        title=f"{sentence(result)}.",
        summary=[f"{line}." for line in (*summary, *notes)],
        grids=[_main_grid(result, names), *_differences(result, names[1 : 1 + _NEXT])],
        remarks=_feet(result, names),
        rows=_rows(result),
    )


def as_dict(result: BestMethods, scope: str) -> dict:
    """The answer, the rows, and what is not among them, for `--json`."""
    return {
        "answer": sentence(result),
        "scope": scope,
        "leader": result.leader,
        "shown_worse": result.worse,
        "metric": result.metric,
        "datasets": {d: {"rows": result.sizes[d], "splits": list(result.splits[d])} for d in result.datasets},
        "rows": _rows(result),
        "not_ranked": dict(result.unranked),
        "datasets_left_out": dict(result.left_out),
    }


def _rows(result: BestMethods) -> list[dict]:
    """A row for each ranked method and data set; None where a number does not apply."""
    return [
        {
            "method": method,
            "average_rank": result.average[method],
            "p_over_datasets": result.p.get(method),
            "shown": None if method == result.leader else result.verdict(method),
            "dataset": dataset,
            "metric": result.metric,
            "n_splits": len(result.splits[dataset]),
            "mean": score.mean,
            "corrected_stderr": score.corrected_stderr,
            "minus_leader": score.minus_leader and score.minus_leader.mean,
            "low": score.minus_leader and score.minus_leader.low,
            "high": score.minus_leader and score.minus_leader.high,
            "p": score.p,
            "seconds": score.seconds,
            "diverged": score.diverged,
            "undefined": sum(score.undefined.values()),
        }
        for method, scores in result.scores.items()
        for dataset, score in scores.items()
    ]


def _main_grid(result: BestMethods, names: Sequence[str]) -> Grid:
    """A row for each method: of one data set its mean, and of several its average rank, with what is shown of it."""
    lines = []
    for name in names:
        scores, others = [*result.scores[name].values()], name != result.leader
        seconds = [score.seconds for score in scores if score.seconds is not None]
        shown_as = result.verdict(name) if others else ""
        if len(scores) == 1:
            value, p, before, after = number(scores[0].mean), scores[0].p, [_interval(scores[0])], []
        else:
            value, p, before = f"{result.average[name]:.2f}", result.p.get(name), []
            verdicts = [result.verdict_on(name, dataset) for dataset in result.datasets]
            after = [f"{verdicts.count(word)} of {len(verdicts)}" if others else "" for word in ("worse", "better")]
        marked, time = value if others else Text(value, "best"), f"{max(seconds):,.3g}" if seconds else ""
        lines.append((_label(result, name), marked, *before, "" if p is None else f"{p:.2g}", shown_as, *after, time))
    heading = title(result.metric, result.records)
    if len(result.datasets) == 1:
        header: tuple[str, ...] = ("method", result.metric, "minus the first [95 %]", "p", "shown", "seconds")
        return Grid(heading, header, tuple(lines), prose=True)
    header = ("method", "average rank", "p", "shown", "worse on", "better on", "seconds")
    return Grid(f"{heading}: average ranks, and differences from the first", header, tuple(lines), prose=True)


def _differences(result: BestMethods, names: Sequence[str]) -> list[Grid]:
    """The means of the leader, and the differences of the next methods from it, data set by data set of several."""
    header = ("data set", "n", result.leader.split()[0], *(f"{name.split()[0]} minus it" for name in names))
    lines = [
        (
            dataset,
            str(len(result.splits[dataset])),
            number(result.scores[result.leader][dataset].mean),
            *(_interval(result.scores[name][dataset]) for name in names),
        )
        for dataset in result.datasets
    ]
    heading = f"{title(result.metric, result.records)}: data set by data set, with 95 % intervals"
    return [Grid(heading, header, tuple(lines), prose=True)] if len(lines) > 1 else []


def _feet(result: BestMethods, names: Sequence[str]) -> list[str]:
    leader, several = result.leader, len(result.datasets) > 1
    over = "moderated t test over families of data sets" if several else "corrected resampled t test over splits"
    settings = "; ".join(name for name in names if name != name.split()[0])
    hidden = len(result.average) - len(names)
    scores = [(m, d, score) for m, of_method in result.scores.items() for d, score in of_method.items()]
    diverged = [f"{m} on {d} ({score.diverged})" for m, d, score in scores if score.diverged]
    undefined = dict.fromkeys(f"{d}: {', '.join(score.undefined)}" for _, d, score in scores if score.undefined)
    ours = [record for record in result.records if not record.imported]
    lines = {
        f"shown: worse, so not the best, at one-sided 5 % over all differences from {leader}; {over}; else open": True,
        "worse on, better on: data sets by the corrected resampled t test over splits, corrected likewise": several,
        "intervals: of one test each; variance times {} ({})".format(*correction(result.records)): True,
        "seconds: mean of training" + (", on the slowest data set" if several else ""): True,
        f"settings: {settings}": settings,
        RULE: True,
        f"{hidden} more ranked methods: --all shows them": hidden,
        **dict.fromkeys(_absent("not ranked", result.unranked) + _absent("data sets left out", result.left_out), True),
        f"diverged runs, in no mean: {abridge(diverged)}": diverged,
        f"splits without {result.metric}, in no mean: {abridge([*undefined])}": undefined,
        **dict.fromkeys(split_notes(result.records, has_correction=True), True),
        (imported := imported_note(result.records)): imported,
        "seconds were measured on different machines or versions, and are not comparable": seconds_lines(ours),
        provenance_lines(result.records)[0]: True,
    }
    return [line for line, applies in lines.items() if applies]


def _absent(title: str, reasons: Mapping[str, str]) -> list[str]:
    names_of = gather((reason, name) for name, reason in reasons.items())
    return [f"{title}: {len(names)}, {reason}: {abridge(names)}" for reason, names in names_of.items()]


def _interval(score: Score) -> str:
    test = score.minus_leader
    if test is None:
        return ""
    if test.low is None or test.high is None:
        return f"{test.mean:+.3g} [no test]"
    return f"{test.mean:+.3g} [{test.low:+.3g}, {test.high:+.3g}]"
