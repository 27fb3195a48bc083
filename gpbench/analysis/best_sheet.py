"""The sheet of a comparison of methods on some kind of data: one sentence of answer, and the table behind it."""

from collections.abc import Iterable, Mapping, Sequence

from gpbench.analysis.best import Comparison, Score
from gpbench.analysis.notes import correction, imported_note, split_notes
from gpbench.analysis.printing import abridge, counted, number
from gpbench.analysis.provenance import provenance_lines, seconds_lines
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.analysis.statistics import LEVEL
from gpbench.metrics import find
from gpbench.papers.published import terms

_FEW = 6
"""Number of data sets below which the sheet warns that they are few: Wilcoxon's test finds nothing among fewer."""
_ROWS = 12
"""Number of methods in the table, unless all are asked for."""
_NEXT = 2
"""Number of methods after the leader whose differences stand data set by data set."""
_LONGEST = 28
"""Characters of a method's name in a column of 80 characters; longer ones are completed below the table."""


def sentence(result: Comparison) -> str:
    """The answer in one sentence, which claims what the tests show and no more."""
    others = len(result.average) - 1
    n_methods = len({record.method for record in result.records})
    ranked = counted(n_methods, "method")
    if n_methods < others + 1:  # a method may be ranked with several settings
        ranked = f"{others + 1} settings of {ranked}"
    if len(result.datasets) == 1:
        (dataset,) = result.datasets
        mean = result.scores[result.leader][dataset].mean
        start = f"{result.leader} has the {_extreme(result)} mean {result.metric} ({number(mean)}) of {ranked}"
        start += f" on {dataset}, the only data set with enough of them"
    else:
        rank = result.average[result.leader]
        start = f"{result.leader} has the lowest average rank ({rank:.1f}) of {ranked} by {result.metric}"
        start += f" over {len(result.datasets)} data sets"
    if result.worse:
        count = "all others" if len(result.worse) == others else f"{len(result.worse)} of the {others} others"
        return f"{start}; it is shown to be better than {count}"
    return f"{start}; no method is shown to be worse than it: {_reason(result)}{_on_single_sets(result)}"


def sheet(result: Comparison, scope: str, notes: Sequence[str] = (), *, whole: bool = False) -> Sheet:
    """Makes the sheet."""
    names = list(result.average) if whole else list(result.average)[:_ROWS]
    short = _short_names(result, names)
    sizes = [f"{d} ({result.sizes[d]:,} rows, {counted(len(result.splits[d]), 'split')})" for d in result.datasets]
    summary = [scope, f"On {'; '.join(sizes)}", *notes, *_few(result)]
    grids = [_single(result, names, short) if len(sizes) == 1 else _ranks(result, names, short)]
    if len(sizes) > 1:
        grids.append(_differences(result, names[1 : 1 + _NEXT], short))
    return Sheet(
        title=f"{sentence(result)}.",
        summary=[f"{line}." for line in summary],
        grids=grids,
        remarks=_feet(result, names, short),
        rows=rows(result),
    )


def rows(result: Comparison) -> list[dict]:
    """A row for each ranked method and data set; None where a number does not apply."""
    return [
        _row(result, method, dataset, score)
        for method, scores in result.scores.items()
        for dataset, score in scores.items()
    ]


def as_dict(result: Comparison, scope: str) -> dict:
    """The answer, the rows, and what is not among them, for `--json`."""
    return {
        "answer": sentence(result),
        "scope": scope,
        "leader": result.leader,
        "shown_worse": result.worse,
        "metric": result.metric,
        "datasets": {d: {"rows": result.sizes[d], "splits": list(result.splits[d])} for d in result.datasets},
        "rows": rows(result),
        "not_ranked": dict(result.unranked),
        "datasets_left_out": dict(result.left_out),
    }


def _row(result: Comparison, method: str, dataset: str, score: Score) -> dict:
    test = score.minus_leader
    return {
        "method": method,
        "average_rank": result.average[method],
        "p_over_datasets": result.p.get(method),
        "shown": None if method == result.leader else result.verdict(method),
        "dataset": dataset,
        "metric": result.metric,
        "n_splits": len(result.splits[dataset]),
        "mean": score.mean,
        "corrected_stderr": score.corrected_stderr,
        "minus_leader": test and test.mean,
        "low": test and test.low,
        "high": test and test.high,
        "p": score.p,
        "seconds": score.seconds,
        "diverged": score.diverged,
        "undefined": sum(score.undefined.values()),
    }


def _extreme(result: Comparison) -> str:
    return "lowest" if result.direction == "lower" else "highest"


def _reason(result: Comparison) -> str:
    """Why nothing is shown of the leader."""
    if len(result.datasets) == 1:
        return f"no corrected resampled t test against it has p < {LEVEL:g} after Holm's correction"
    if result.smallest_p is None:
        return "outputs and split sets of one data set are not independent, so that there is no test over data sets"
    if result.smallest_p >= LEVEL:
        return f"{len(result.datasets)} data sets are too few for a test over them with {len(result.average)} methods"
    return f"no Wilcoxon test over data sets against it has p < {LEVEL:g} after Holm's correction"


def _on_single_sets(result: Comparison) -> str:
    """What is shown data set by data set, where there are several."""
    if len(result.datasets) == 1:
        return ""
    others = [name for name in result.average if name != result.leader]
    verdicts = [result.verdict_on(name, dataset) for name in others for dataset in result.datasets]
    worse, better = verdicts.count("worse"), verdicts.count("better")
    differences = f"{worse} of {len(verdicts)} differences, worse in {better}"
    return f"; on single data sets, each corrected by itself, it is shown to be better in {differences}"


def _few(result: Comparison) -> list[str]:
    n = len({d.partition(" ")[0] for d in result.datasets})
    return [f"Few data: {counted(n, 'data set')}; other data of this size may give another order"] if n < _FEW else []


def _single(result: Comparison, names: Sequence[str], short: Mapping[str, str]) -> Grid:
    """The grid of one data set: mean, difference from the leader with its interval, p, seconds."""
    (dataset,) = result.datasets
    header = ("method", result.metric, "minus the first [95 %]", "p", "shown", "seconds")
    lines = []
    for name in names:
        score = result.scores[name][dataset]
        mean = number(score.mean)
        lines.append(
            (
                short[name],
                Text(mean, "best") if name == result.leader else mean,
                _interval(score),
                "" if score.p is None else f"{score.p:.2g}",
                "" if name == result.leader else result.verdict(name),
                _seconds([score]),
            )
        )
    return Grid(_title(result), header, tuple(lines), prose=True)


def _ranks(result: Comparison, names: Sequence[str], short: Mapping[str, str]) -> Grid:
    """The grid of several data sets: average rank, p over them, on how many a difference is shown, seconds."""
    header = ("method", "average rank", "p", "shown", "worse on", "better on", "seconds")
    lines = []
    for name in names:
        verdicts = [result.verdict_on(name, dataset) for dataset in result.datasets]
        is_leader = name == result.leader
        rank = f"{result.average[name]:.2f}"
        lines.append(
            (
                short[name],
                Text(rank, "best") if is_leader else rank,
                f"{result.p[name]:.2g}" if name in result.p else "",
                "" if is_leader else result.verdict(name),
                "" if is_leader else f"{verdicts.count('worse')} of {len(verdicts)}",
                "" if is_leader else f"{verdicts.count('better')} of {len(verdicts)}",
                _seconds([*result.scores[name].values()]),
            )
        )
    return Grid(f"{_title(result)}: average ranks, and differences from the first", header, tuple(lines), prose=True)


def _differences(result: Comparison, names: Sequence[str], short: Mapping[str, str]) -> Grid:
    """The means of the leader, and the differences of the next methods from it, data set by data set."""
    header = ("data set", "n", short[result.leader], *(f"{short[name]} minus it" for name in names))
    lines = [
        (
            dataset,
            str(len(result.splits[dataset])),
            number(result.scores[result.leader][dataset].mean),
            *(_interval(result.scores[name][dataset]) for name in names),
        )
        for dataset in result.datasets
    ]
    return Grid(f"{_title(result)}: data set by data set, with 95 % intervals", header, tuple(lines), prose=True)


def _feet(result: Comparison, names: Sequence[str], short: Mapping[str, str]) -> list[str]:
    leader, several = result.leader, len(result.datasets) > 1
    over = "Wilcoxon's signed-rank test over data sets" if several else "the corrected resampled t test over splits"
    feet = [f"shown: worse or better than {leader} at 5 % by {over}, Holm's correction over all pairs; else open"]
    if several:
        feet.append("worse on, better on: data sets by the corrected resampled t test over splits, corrected likewise")
    feet.append("intervals: of one test each; variance times {} ({})".format(*correction(result.records)))
    feet.append("seconds: mean of training" + ", on the slowest data set" * several)
    feet += [f"{short[name]} is {name}" for name in names if ".. " in short[name]]
    methods = {name.partition(" ")[0] for name in names}
    if shared := [f"{m} {', '.join(own)}" for m, own in _shared_terms(result.average).items() if own and m in methods]:
        feet.append(f"settings of all: {'; '.join(shared)}")
    if hidden := len(result.average) - len(names):
        feet.append(f"{hidden} more ranked methods: --all shows them")
    feet += _absent("not ranked", result.unranked) + _absent("data sets left out", result.left_out)
    diverged = [
        f"{name} on {d} ({score.diverged})"
        for name, scores in result.scores.items()
        for d, score in scores.items()
        if score.diverged
    ]
    if diverged:
        feet.append(f"diverged runs, in no mean: {abridge(diverged)}")
    undefined = {
        f"{d}: {', '.join(score.undefined)}": None
        for scores in result.scores.values()
        for d, score in scores.items()
        if score.undefined
    }
    if undefined:
        feet.append(f"splits without {result.metric}, in no mean: {abridge([*undefined])}")
    return [
        *feet,
        *split_notes(result.records, has_correction=True),
        *filter(None, [imported_note(result.records)]),
        *_machines(result),
        *provenance_lines(result.records)[:1],
    ]


def _machines(result: Comparison) -> list[str]:
    """A line where the seconds of our own runs are of different machines or versions."""
    differ = bool(seconds_lines(record for record in result.records if not record.imported))
    return ["seconds were measured on different machines or versions, and are not comparable"] * differ


def _absent(title: str, reasons: Mapping[str, str]) -> list[str]:
    """A line for each reason with the names of which it holds."""
    names_of: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names_of.setdefault(reason, []).append(name)
    return [f"{title}: {len(names)}, {reason}: {abridge(names)}" for reason, names in names_of.items()]


def _title(result: Comparison) -> str:
    known = find(result.metric, result.records)
    return known.heading if known else result.metric


def _interval(score: Score) -> str:
    test = score.minus_leader
    if test is None:
        return ""
    if test.low is None or test.high is None:
        return f"{test.mean:+.3g} [no test]"
    return f"{test.mean:+.3g} [{test.low:+.3g}, {test.high:+.3g}]"


def _seconds(scores: Sequence[Score]) -> str:
    times = [score.seconds for score in scores if score.seconds is not None]
    return f"{max(times):,.3g}" if times else ""


def _shared_terms(names: Iterable[str]) -> dict[str, list[str]]:
    """The terms that all settings of a method have, of methods with several."""
    settings: dict[str, list[list[str]]] = {}
    for name in names:
        method, _, setting = name.partition(" ")
        settings.setdefault(method, []).append(terms(setting))
    several = {method: own for method, own in settings.items() if len(own) > 1}
    return {method: [t for t in own[0] if all(t in other for other in own)] for method, own in several.items()}


def _short_names(result: Comparison, names: Sequence[str]) -> dict[str, str]:
    """Each name without shared terms, or its beginning and a number where that is longer than a column."""
    shared = _shared_terms(result.average)
    own = {}
    for name in names:
        method, _, setting = name.partition(" ")
        own[name] = f"{method} {', '.join(t for t in terms(setting) if t not in shared.get(method, ()))}".rstrip()
    long = [name for name, text in own.items() if len(text) > _LONGEST]
    return own | {name: f"{own[name][: _LONGEST - 5]}.. {k}" for k, name in enumerate(long, start=1)}
