"""The sheets of the leaderboard: a division's board, and the place of one method on it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.board import FEWEST, Board, Interval, correlation, mean, stability
from gpbench.analysis.grouping import gather
from gpbench.analysis.leaderboard import LIMIT, Against, BoardRuns, lost
from gpbench.analysis.printing import counted, number
from gpbench.analysis.provenance import facts_of, imported_note, run_facts
from gpbench.analysis.sheets import Grid, Sheet, Text, parts
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.records.absences import FAULT, LARGE, LATE
from gpbench.records.record import Record

_WHAT = "Every run has {}, and goes to its own end, within {:,.0f} CPU seconds."
_SHORT = {LATE: "late", LARGE: "memory", FAULT: "error"}


def sheet(runs: BoardRuns, *, whole: bool = False) -> Sheet:
    """The sheet of a board; the whole one has a second reference, the decided pairs and every data set too."""
    board, metric = runs.board, runs.division.measures[0].metric
    K, best = len(runs.methods), [runs.methods[k] for k in board.order if board.may_be_best[k]]
    decided = f"{board.better.sum()} of {counted(K * (K - 1) // 2, 'pair')} of {K} methods are decided"
    few = f" No pair shares {FEWEST} families of data sets, which a claim needs." * bool((board.p == 1).all())
    return _sheet(
        runs,
        f"{runs.division.name.capitalize()}: {decided}, and {len(best)} may be the best, by {metric} on {_sets(runs)}."
        + few,
        [f"May be the best: {', '.join(best)}."],
        ["best" if may else "" for may in board.may_be_best],
        {"best": "may be the best" + ("; of a data set the best value" if whole else "")},
        details=[_beside_grid(runs, board.order, r) for r in runs.references[1:2]] + _detail_grids(runs)
        if whole
        else [],
    )


def place_sheet(runs: BoardRuns, method: str) -> Sheet:
    """The sheet of one method's place: whether it may be the best, and how it stands beside the named methods."""
    k, board, names = runs.methods.index(method), runs.board, np.array(runs.methods)
    better, metric = board.with_method(k), runs.division.measures[0].metric
    is_best = "may be the best" if board.may_be_best[k] else "is shown not to be the best"
    beaten, above = (", ".join(names[is_so]) for is_so in (better[k], better[:, k]))
    verdicts = [f"better than {beaten}"] * bool(beaten) + [f"worse than {above}"] * bool(above)
    others = [r for r in runs.references if r != k]
    less = [f"{names[r]} {_interval(board.difference(k, r), '+.0f', 100)} %" for r in others]
    return _sheet(
        runs,
        f"{method} {is_best} of {len(names)} methods of {runs.division.name}, by {metric} on {_sets(runs)}: it beats"
        f" {_share(board.means[k], board.stderrs[k])} of the others.",
        [
            *(line for r in others[:1] if (pair := runs.against(k, r)) for line in _beside(runs, pair, names[r])),
            *([f"Share of others beaten less that of {'; '.join(less)}."] if less else []),
            f"It is shown to be {' and '.join(verdicts)}." if verdicts else "None of its pairs with others is decided.",
        ],
        ["placed" if i == k else "" for i in range(len(names))],
        {"placed": "the method that is placed"},
        remarks=[f"better and worse: of the {len(names) - 1} pairs with {method}; differences: intervals of one each"],
        methods=[method],
    )


def _sheet(
    runs: BoardRuns,
    title: str,
    summary: Sequence[str],
    marks: Sequence[str],
    meanings: Mapping[str, str],
    *,
    details: Sequence[Grid] = (),
    remarks: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> Sheet:
    """The sheet with what both have: the head says what the runs are, and how many are lost, of methods or of all."""
    order, measures, facts = runs.board.order, runs.division.measures, _facts(runs)
    head = _WHAT.format(facts["settings"].partition(";")[0], LIMIT)
    boards = [runs.boards[measure.metric] for measure in measures]
    by_measure = [(runs.methods[k], *(_share(b.means[k], b.stderrs[k]) for b in boards)) for k in order]
    beside = [_beside_grid(runs, order, reference) for reference in runs.references[:1]]
    every = Grid("share of others beaten by every measure", ("method", *(m.metric for m in measures)), (*by_measure,))
    return Sheet(
        grids=[_main_grid(runs, order, marks), *beside, every, *details],
        marks=meanings,
        facts=facts,
        rows=[row for k in order for row in _rows(runs, k)],
        name=runs.division.experiment,
        title=title,
        summary=[*summary, head, _losses(runs, methods)],
        remarks=[*remarks, *_remarks(runs)],
    )


def _sets(runs: BoardRuns) -> str:
    families, planned = len({*runs.families}), len(runs.division.datasets())
    of_families = f" of {families} families" if families < len(runs.datasets) else ""
    of_planned = f", of {planned} that the division has" if len(runs.datasets) < planned else ""
    return f"{counted(len(runs.datasets), 'data set')}{of_families}{of_planned}"


def _beside(runs: BoardRuns, pair: Against, reference: str) -> Iterator[str]:
    """The lines of the numbers of a method beside the reference, and of the data sets that it wins and loses."""
    first, second = (measure.metric for measure in runs.division.measures[:2])
    chance, gain, ratio = _numbers(pair)
    numbers = f"chance to win on a new data set {chance}; mean gain in log density {gain} nats a row"
    yield f"Against {reference}: {numbers}; {second} {ratio} times as large."
    words = {"wins on": pair.won, "loses on": pair.lost, "ties on": pair.tied}
    some = [f"{word} {', '.join(sets)}" for word, sets in words.items() if sets]
    yield f"By {first} it {'; '.join(some)}."


def _numbers(pair: Against) -> tuple[str, str, str]:
    """The numbers of a method beside a reference with their 95 % intervals."""
    return f"{_interval(pair.chance, '.0f', 100)} %", _interval(pair.gain, "+.2f"), _interval(pair.ratio, ".2f")


def _interval(interval: Interval, form: str, scale: int = 1) -> str:
    value, low, high = (format(scale * end, form) for end in interval)
    return f"{value} ({low} to {high})" if np.isfinite(interval.high) else value


def _share(mean: float, stderr: float) -> str:
    return f"{100 * mean:.0f} ± {100 * stderr:.0f} %" if np.isfinite(stderr) else f"{100 * mean:.0f} %"


def _losses(runs: BoardRuns, methods: Sequence[str] = ()) -> str:
    """The numbers of lost runs by reason, and the methods that lack runs, in a line."""
    reasons = _lost_of(runs, methods or runs.methods, {})
    count = sum(runs.expected[name] for name in methods or runs.methods)
    first, absent = runs.division.measures[0].metric, ", ".join(f"{name} ({n})" for name, n in runs.unranked.items())
    line = f"{'Its runs' if methods else 'Runs'}: {count}" + (f", of these {reasons}" if reasons else "") + "."
    return line + (f" Without a place, for runs that were not made or have no {first}: {absent}." if absent else "")


def _main_grid(runs: BoardRuns, order: Sequence[int], marks: Sequence[str]) -> Grid:
    board = runs.board
    rows: list[tuple[str | Text, ...]] = []
    costs = [_typical(runs, cost) for cost in (lambda r: (r.seconds or {}).get("compile"), lambda r: r.step_memory_mb)]
    for k in order:
        seconds = f"{runs.cpu_seconds[k]:.1f}" + " F" * bool(runs.on_front[k]) if runs.is_complete[k] else ""
        counts = str(board.better[k].sum()), str(board.better[:, k].sum())
        share, name = Text(_share(board.means[k], board.stderrs[k]), marks[k]), runs.methods[k]
        others = ["" if np.isnan(cost[k]) else f"{cost[k]:.2g}" for cost in costs]
        rows.append((name, share, *counts, seconds, *others, _lost_of(runs, [name])))
    header = ("method", "share of others beaten", "better", "worse", "CPU s", "compile s", "step MB", "lost runs")
    return Grid(f"by {METRICS[runs.division.measures[0].metric].heading}", header, tuple(rows))


def _typical(runs: BoardRuns, cost: Callable[[Record], float | None]) -> Float[ndarray, " K"]:
    """Geometric mean over data sets of what each method's runs cost, where it is known; NaN where it is not."""
    return np.exp(mean(runs.array(lambda record: np.log(cost(record) or np.nan)), 1))


def _beside_grid(runs: BoardRuns, order: Sequence[int], reference: int) -> Grid:
    """The two numbers against a reference, and the ratio, of each method."""
    others = [k for k in order if k != reference]
    rows = [
        (runs.methods[k], *(_numbers(pair) if (pair := runs.against(k, reference)) else ("", "", ""))) for k in others
    ]
    header = ("method", "chance to win", "mean gain in log density", f"ratio of {runs.division.measures[1].metric}")
    return Grid(f"against {runs.methods[reference]}, with 95 % intervals", header, tuple(rows))


def _detail_grids(runs: BoardRuns) -> list[Grid]:
    """The pairs that are decided and the data sets where a method is best and worst; values and seconds by data set."""
    board, names, measure = runs.board, np.array(runs.methods), runs.division.measures[0]
    of_sets, losses = Board(runs.of_sets[measure.metric]).shares, runs.array(measure.loss)
    least = np.nanmin(losses, axis=0)
    seconds = runs.array(lambda record: np.nan if lost(record) else record.rated_seconds)
    words = [(names[k], ", ".join(names[board.better[k]]), *_ends(runs, of_sets[k])) for k in board.order]
    values = [
        (names[k], *(_value(own, measure.sign, best) for own, best in zip(losses[k], least))) for k in board.order
    ]
    times = [(names[k], *("" if np.isnan(s) else f"{s:.1f}" for s in seconds[k])) for k in board.order]
    header, heading = ("method", *runs.datasets), METRICS[measure.metric].heading
    return [
        Grid("pairs and data sets", ("method", "better than", "best on", "worst on"), tuple(words), prose=True),
        *parts(Grid(f"{heading} by data set", header, tuple(values))),
        *parts(Grid("CPU seconds of runs with predictions, by data set", header, tuple(times))),
    ]


def _ends(runs: BoardRuns, shares: Float[ndarray, " D"]) -> list[str]:
    """The data sets on which a method beats the most others, and the fewest."""
    names = np.array(runs.datasets)
    return [", ".join(names[shares == end]) for end in (np.nanmax(shares), np.nanmin(shares))]


def _value(loss: float, sign: int, best: float) -> Text:
    """The metric of a run, marked where no method has a better one."""
    if np.isinf(loss):
        return Text("lost")
    return Text() if np.isnan(loss) else Text(number(sign * loss), "best" if loss == best else "")


def _stability(runs: BoardRuns) -> list[str]:
    """The line of the rank correlations of a board's order with those without a part of it; none of one data set."""
    board, others = runs.board, runs.division.measures[1:]
    if board.shares.shape[1] < 2:
        return []
    lone, thirds = stability(board)
    rest = [Board(np.delete(board.won, d, axis=2)) for d in range(board.won.shape[2])]
    counts = [sorted(int(getattr(b, name).sum()) for b in rest) for name in ("better", "may_be_best")]
    decided, best = (f"{low} to {high}" for low, *_, high in counts)
    of_rest = f"without one family {decided} pairs are decided, and {best} may be the best"
    metrics = [f"{correlation(board.means, runs.boards[m.metric].means):.2f} by {m.metric}" for m in others]
    return [
        f"stability, the rank correlation of this order with others: {min(lone):.2f} to {max(lone):.2f} without one"
        f" family, {np.median(thirds):.2f} without a third of them ({np.quantile(thirds, 0.05):.2f} or more in 95 % of"
        f" draws), {', '.join(metrics)}",
        *([of_rest] if len(rest) > FEWEST else []),
    ]


def _remarks(runs: BoardRuns) -> list[str]:
    margins = [
        f"{m.relative * 100:g} % of {m.metric}" if m.relative else f"{m.absolute:g} of {m.metric}"
        for m in runs.division.measures
    ]
    several = [" and ".join(sets) for sets in gather(zip(runs.families, runs.datasets)).values() if len(sets) > 1]
    return [
        "share of others beaten: mean over data sets ± standard error; a tie counts half, a family of data sets as one",
        "better, worse: than so many, by the moderated t test of the difference of two shares, with about 5 %"
        " false ones expected among all decided (Benjamini-Hochberg); may be the best: no other has a higher share at"
        " one-sided 5 % divided by the number of others, which is stricter, so that one may be worse than another here",
        "against a method, by these two alone: chance to win on a new data set (Jeffreys' interval), mean gain and"
        " geometric mean ratio (t intervals); a gain counts at most 1 nat, a ratio e, and a lost run has lost as much",
        f"ties are differences up to {', '.join(margins)}",
        "a run that is late, out of memory, diverged or in error loses to those that are not, and ties with its like",
        f"CPU s: geometric mean over data sets without compilation, times the machine's rate where a record has it,"
        f" {LIMIT:.0f} for a lost run; F: no other method has"
        " as high a share and is quicker" + ("" if runs.is_complete.all() else "; empty without all data sets"),
        "compile s: wall-clock seconds of compilation; step MB: what the arrays of a step take; of runs that know them",
        f"data sets: {', '.join(runs.datasets)}" + "".join(f"; of one family {sets}" for sets in several),
        *_stability(runs),
        *filter(None, [imported_note(runs.runs.values())]),
    ]


def _facts(runs: BoardRuns) -> dict[str, str]:
    """Facts of the runs by name: splits, kernels, settings, limit and cores, then the facts of the records."""
    records = [*runs.runs.values()]
    of_methods = definition.read(runs.division.experiment).facts["full"]
    imported = any(record.imported for record in records)
    others = "; of other programs as in the scripts that made their predictions" if imported else ""
    cores = Counter(str((r.host or {}).get("cores", "imported" if r.imported else "unknown")) for r in records)
    return {
        "splits": run_facts(records)["splits"],
        **{name: of_methods[name] + others for name in ("kernel", "settings", "budget")},
        "cores": ", ".join(f"{name} ({n:,})" if len(cores) > 1 else name for name, n in cores.most_common()),
        **facts_of(records),
    }


def _lost_of(runs: BoardRuns, methods: Sequence[str], short: Mapping[str, str] = _SHORT) -> str:
    """The lost runs of methods by reason, as in "3 late, 6 memory"."""
    records = [record for name in methods for record in runs.by_method[name]]
    counts = Counter(short.get(reason, reason) for record in records if (reason := lost(record)))
    return ", ".join(f"{n} {reason}" for reason, n in counts.most_common())


def _rows(runs: BoardRuns, k: int) -> list[Mapping[str, object]]:
    names, records = np.array(runs.methods), runs.by_method[runs.methods[k]]
    beside = next((r for r in runs.references if r != k), None)
    pair = None if beside is None else runs.against(k, beside)
    numbers = {
        f"{name}{end}": getattr(interval, attribute) if np.isfinite(interval.high) else None
        for name, interval in (zip(Against._fields, pair[:3]) if pair else ())
        for end, attribute in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    return [
        {
            "division": runs.division.name,
            "method": runs.methods[k],
            "metric": metric,
            "share": float(board.means[k]),
            "stderr": float(board.stderrs[k]) if np.isfinite(board.stderrs[k]) else None,
            "better_than": ", ".join(names[board.better[k]]),
            "worse_than": ", ".join(names[board.better[:, k]]),
            "may_be_best": bool(board.may_be_best[k]),
            "reference": None if beside is None or board is not runs.board else runs.methods[beside],
            **(numbers if board is runs.board else dict.fromkeys(numbers)),
            "cpu_seconds": float(runs.cpu_seconds[k]) if runs.is_complete[k] else None,
            "on_front": bool(runs.on_front[k]),
            "n_datasets": int((~np.isnan(runs.of_sets[metric][k])).any(axis=0).sum()),
            "n_runs": len(records),
            "n_lost": sum(bool(lost(record)) for record in records),
            "lost": _lost_of(runs, [runs.methods[k]]),
        }
        for metric, board in runs.boards.items()
    ]
