"""The sheets of the leaderboard: a division's board, and the place of one method on it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from gpbench.analysis.bradley_terry import DRAWS, FEWEST
from gpbench.analysis.divisions import CORES, SECONDS, lost
from gpbench.analysis.leaderboard import Board
from gpbench.analysis.notes import imported_note
from gpbench.analysis.printing import counted
from gpbench.analysis.provenance import facts_of
from gpbench.analysis.ranks import TESTS, power_caveats
from gpbench.analysis.run_facts import run_facts
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.records.absences import FAULT, GRACE, LARGE, LATE
from gpbench.records.record import Record

_WHOLE = 0.95
"""Share of the budget from which on more of it would have been used."""


def sheet(board: Board) -> Sheet:
    """Makes the sheet of a board: methods by their scores, then their scores by every measure."""
    order = [*map(int, np.argsort(-board.scores.values, kind="stable"))]
    better = board.scores.better()
    marks = ["best" if k == order[0] else "" if better[order[0], k] else "tied" for k in range(len(order))]
    if not better[order[0]].any():
        marks = [""] * len(order)  # nothing is known to be worse than the first
    return Sheet(
        title=_title(board),
        summary=[*[_indifference(board)] * (not better.any()), _losses(board)],
        grids=[_main_grid(board, order, marks, better), _measures_grid(board, order)],
        marks={"best": "highest score", "tied": "not significantly lower"} if any(marks) else {},
        remarks=_remarks(board),
        facts=_facts(board),
        rows=[row for k in order for row in _rows(board, k, better)],
        name=board.division.experiment,
    )


def place_sheet(board: Board, method: str) -> Sheet:
    """Makes the sheet of one method's place: beside whom it stands, and what it is significantly better than."""
    k = board.methods.index(method)
    number, low, high = board.places(method)
    better = board.scores.better(k)
    beaten = [name for name, is_beaten in zip(board.methods, better[k]) if is_beaten]
    above = [name for name, is_above in zip(board.methods, better[:, k]) if is_above]
    least = board.scores.least_difference(k)
    drawn = "place {} to {} in 95 % of the draws of data sets".format(*board.drawn_places(method))
    interval = f"95 % interval {low} to {high}; {drawn}" if np.isfinite(least) else "too few data sets for more"
    takes = f"; the least difference that may be is {least:.0f} points" * bool(np.isfinite(least))
    summary = [
        f"{method} has place {number} of {len(board.methods)} ({interval}).",
        f"It is significantly better than {', '.join(beaten) or 'none'}{takes}.",
        *([f"Significantly better than it: {', '.join(above)}."] if above else []),
        *_machines(board, method),
        _losses(board, [method]),
    ]
    order = [*map(int, np.argsort(-board.scores.values, kind="stable"))]
    marks = ["placed" if i == k else "" for i in range(len(order))]
    return Sheet(
        title=f"Place of {method}. {_title(board)}",
        summary=summary,
        grids=[_main_grid(board, order, marks, better), _measures_grid(board, order)],
        marks={"placed": "the method that is placed"},
        remarks=[
            f"Holm's correction is over the {len(order) - 1} comparisons of {method}; the interval of its place has the"
            " places that these leave, the draws are no interval",
            *_remarks(board),
        ],
        facts=_facts(board),
        rows=[row for i in order for row in _rows(board, i, better)],
        name=board.division.experiment,
    )


def _title(board: Board) -> str:
    sets = counted(len(board.datasets), "data set")
    budget = f"{board.seconds} seconds of {CORES} cores ({CORES * board.seconds} CPU seconds)"
    return f"Leaderboard of {board.division.name}: {len(board.methods)} methods on {sets}, within {budget}."


def _indifference(board: Board) -> str:
    """The line that no difference is significant, with what it takes."""
    values, least = board.scores.values, board.scores.least_difference()
    if not np.isfinite(least):
        return f"No difference of two scores is significant, as no two methods share {FEWEST} data sets."
    largest = values.max() - values.min()
    return (
        f"No difference of two scores is significant after Holm's correction: the least that may be is {least:.0f}"
        f" points, and the largest is {largest:.0f}."
    )


def _machines(board: Board, method: str) -> list[str]:
    """A line where the method's runs and those beside it may be of machines of different speed."""
    own = [record for (name, _, _), record in board.runs.items() if name == method and not record.imported]
    others = [record for (name, _, _), record in board.runs.items() if name != method and not record.imported]
    shipped = [record for record in others if record.shipped]
    names, beside = (sorted({_machine(record) for record in records}) for records in (own, shipped or others))
    if not names or not beside or (names == beside and not shipped):
        return []
    which = "runs that ship with gpbench" if shipped else "others"
    return [
        f"It ran on {', '.join(names)}, the {which} on {'another machine, ' * bool(shipped)}{', '.join(beside)}: a"
        " faster one has better scores."
    ]


def _machine(record: Record) -> str:
    host = record.host or {}
    return f"{host.get('cpu', 'an unknown processor')} ({counted(host.get('cores', 0), 'core')})"


def _losses(board: Board, methods: Sequence[str] = ()) -> str:
    """The numbers of lost runs by reason, and those not run, in a line."""
    runs = {key: record for key, record in board.runs.items() if not methods or key[0] in methods}
    counts = Counter(reason for record in runs.values() if (reason := lost(record)))
    planned = len(methods or board.methods) * sum(len(board.splits[name]) for name in board.datasets)
    absent = planned - len(runs)
    parts = [f"{n} {reason}" for reason, n in counts.most_common()] + [f"{absent} not run"] * bool(absent)
    return f"{'Its runs' if methods else 'Runs'}: {planned}" + f", of these {', '.join(parts)}" * bool(parts) + "."


def _main_grid(board: Board, order: Sequence[int], marks: Sequence[str], better: Bool[ndarray, "K K"]) -> Grid:
    metric = board.division.measures[0].metric
    rates, ranks = board.estimates[metric][1], board.ranking
    average = dict(zip(ranks.methods, ranks.average)) if ranks else {}
    rows: list[tuple[str | Text, ...]] = []
    for k in order:
        name = board.methods[k]
        rows.append(
            (
                name,
                Text(_plus_minus(board.scores.values[k], board.scores.half_widths[k]), marks[k]),
                str(better[k].sum()),
                _percent(rates.values[k], rates.half_widths[k]),
                *([f"{average[name]:.1f}"] if ranks else []),
                *(_costs(board, k) if board.is_complete[k] else ("", "")),
                _lost_of(board, name),
            )
        )
    of_ranks = ("average rank",) if ranks else ()
    header = ("method", "score", "better than", "wins", *of_ranks, "CPU s", "Pareto front", "lost runs")
    return Grid(f"by {_heading(metric)}", header, tuple(rows))


def _costs(board: Board, k: int) -> tuple[str, str]:
    """The CPU seconds of a method, and its share of the Pareto front."""
    share = f"{100 * board.front[k]:.0f} %" + " F" * bool(board.on_front[k])
    return f"{np.exp(board.seconds_of.values[k]):.1f}", share


def _measures_grid(board: Board, order: Sequence[int]) -> Grid:
    """Scores with half their intervals' widths by every measure."""
    columns = [board.estimates[measure.metric][0] for measure in board.division.measures]
    rows = [
        (board.methods[k], *(_plus_minus(column.values[k], column.half_widths[k]) for column in columns)) for k in order
    ]
    return Grid("scores by every measure", ("method", *(m.metric for m in board.division.measures)), tuple(rows))


def _remarks(board: Board) -> list[str]:
    margins = [
        f"{m.relative * 100:g} % of {m.metric}" if m.relative else f"{m.absolute:g} of {m.metric}"
        for m in board.division.measures
    ]
    lines = [
        "score: Bradley-Terry in Elo points, mean 1000; 400 points are odds of 10 to 1 of the better value on a split",
        f"± and intervals: 95 %, from {DRAWS:,} draws of data sets and of splits within them, by the t distribution",
        f"ties are differences up to {', '.join(margins)}",
        "every data set has the same weight; a run that is late, out of memory, diverged or ended with an error loses"
        " to all others",
        "better than: how many others have a significantly lower score, at 5 % after Holm's correction; wins: share of"
        " comparisons won, ties counted half",
        f"CPU s: geometric mean over data sets, {(1 + GRACE) * CORES * board.seconds:.0f} for a lost run; Pareto front:"
        " share of the draws in which no other method has a higher score and is as quick; F: so by the scores shown"
        + "; empty without all data sets"
        * (not board.is_complete.all()),
        f"data sets: {', '.join(board.datasets)}",
    ]
    own = [record for record in board.runs.values() if not (record.imported or lost(record))]
    if whole := sum((record.cpu_seconds or 0.0) > _WHOLE * CORES * board.seconds for record in own):
        lines.append(
            f"{whole:,} of {len(own):,} runs of gpbench with predictions used over {100 * _WHOLE:.0f} % of the budget"
        )
    lines += _barely_trained(own)
    if ranking := board.ranking:
        lines += [
            f"average rank by wins over the {len(ranking.datasets)} data sets that all methods have: Friedman's p ="
            f" {ranking.p:.2g}, critical difference {ranking.critical:.1f} ({TESTS['nemenyi']}, 5 %)",
            *power_caveats(ranking),
        ]
    else:
        lines.append(f"no average ranks: all methods share fewer than {FEWEST} data sets with all splits")
    return [*lines, *filter(None, [imported_note(board.runs.values())])]


def _barely_trained(records: Sequence[Record]) -> list[str]:
    """A line on the runs that end after one step, of methods that make more in others."""
    iterative = {record.method for record in records if (record.steps or 0) > 1}
    counts = Counter(r.method for r in records if r.method in iterative and (r.steps or 0) <= 1)
    names = ", ".join(f"{name} ({n})" for name, n in counts.most_common())
    return [f"training ended after its first step, about where it starts: {names}"] if names else []


def _facts(board: Board) -> dict[str, str]:
    """What was run, by name: splits, kernels and settings, budget and cores, then the facts of the records."""
    records = [*board.runs.values()]
    of_methods = definition.read(board.division.experiment).facts["full"]
    others = "; of other programs as in the scripts that made their predictions" * any(r.imported for r in records)
    cores = Counter(str((r.host or {}).get("cores", "imported" if r.imported else "unknown")) for r in records)
    return {
        "splits": run_facts(records)["splits"],
        **{name: of_methods[name] + others for name in ("kernel", "settings")},
        "budget": f"{CORES * board.seconds} CPU seconds, from the start of the process to the predictions",
        "cores": ", ".join(f"{name} ({n:,})" if len(cores) > 1 else name for name, n in cores.most_common()),
        **facts_of(records),
    }


def _heading(metric: str) -> str:
    return METRICS[metric].heading if metric in METRICS else metric


def _plus_minus(value: float, half: float) -> str:
    return f"{value:.0f} ± {half:.0f}" if np.isfinite(half) else f"{value:.0f}"


def _percent(value: float, half: float) -> str:
    return f"{100 * value:.0f} ± {100 * half:.0f} %" if half < 1 else f"{100 * value:.0f} %"


_SHORT = {LATE: "late", LARGE: "memory", FAULT: "error"}


def _lost_of(board: Board, method: str) -> str:
    """The lost runs of a method by reason, as in "3 late, 6 memory", and those not run."""
    runs = [record for (name, _, _), record in board.runs.items() if name == method]
    counts = Counter(_SHORT.get(reason, reason) for record in runs if (reason := lost(record)))
    absent = sum(len(board.splits[name]) for name in board.datasets) - len(runs)
    return ", ".join([*(f"{n} {reason}" for reason, n in counts.items()), *[f"{absent} not run"] * bool(absent)])


def _rows(board: Board, k: int, better: Bool[ndarray, "K K"]) -> list[Mapping[str, object]]:
    """The numbers of a method by measure, for programs."""
    ranking, name = board.ranking, board.methods[k]
    runs = [record for (method, _, _), record in board.runs.items() if method == name]
    rows: list[Mapping[str, object]] = []
    for measure in board.division.measures:
        points, rates = board.estimates[measure.metric]
        is_first = measure is board.division.measures[0]
        rows.append(
            {
                "division": board.division.name,
                "seconds": board.seconds,
                "method": name,
                "metric": "seconds" if measure.metric == SECONDS else measure.metric,
                "score": points.values[k],
                "low": _finite(points.values[k] - points.half_widths[k]),
                "high": _finite(points.values[k] + points.half_widths[k]),
                "win_rate": rates.values[k],
                "win_rate_low": _finite(max(rates.values[k] - rates.half_widths[k], 0.0)),
                "win_rate_high": _finite(min(rates.values[k] + rates.half_widths[k], 1.0)),
                "average_rank": dict(zip(ranking.methods, ranking.average))[name] if ranking and is_first else None,
                "cpu_seconds": float(np.exp(board.seconds_of.values[k])) if board.is_complete[k] else None,
                "front": float(board.front[k]) if is_first and board.is_complete[k] else None,
                "n_datasets": int(points.datasets[k]),
                "n_runs": len(runs),
                "n_lost": sum(bool(lost(record)) for record in runs),
                "lost": _lost_of(board, name),
                "better_than": int(better[k].sum()) if is_first else None,
            }
        )
    return rows


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
