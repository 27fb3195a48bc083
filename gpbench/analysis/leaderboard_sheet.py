"""The sheets of the leaderboard: a division's board, and the place of one method on it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from gpbench.analysis.bradley_terry import DRAWS, FEWEST
from gpbench.analysis.leaderboard import CORES, SECONDS, Board, lost
from gpbench.analysis.printing import counted
from gpbench.analysis.provenance import facts_of, imported_note, run_facts
from gpbench.analysis.ranks import TESTS, power_caveats
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.records.absences import FAULT, GRACE, LARGE, LATE

_WHOLE = 0.95  # share of the budget from which on more of it would have been used


def sheet(board: Board) -> Sheet:
    """The sheet of a board: methods by their scores, then their scores by every measure."""
    better, first = board.scores.better(), int(np.argmax(board.scores.values))
    tied = ["best" if k == first else "" if better[first, k] else "tied" for k in range(len(better))]
    marks = tied if better[first].any() else [""] * len(better)  # or nothing is known to be worse than the first
    meanings = {"best": "highest score", "tied": "not significantly lower"} if any(marks) else {}
    summary = [*([] if better.any() else [_indifference(board)]), _losses(board)]
    return _sheet(board, better, marks, meanings, title=_title(board), summary=summary, remarks=_remarks(board))


def place_sheet(board: Board, method: str) -> Sheet:
    """The sheet of one method's place: beside whom it stands, and what it is significantly better than."""
    k, others = board.methods.index(method), len(board.methods) - 1
    number, low, high = board.places(method)
    better, least = board.scores.better(k), board.scores.least_difference(k)
    beaten = ", ".join(name for name, is_beaten in zip(board.methods, better[k]) if is_beaten)
    above = ", ".join(name for name, is_above in zip(board.methods, better[:, k]) if is_above)
    drawn = "place {} to {} in 95 % of the draws of data sets".format(*board.drawn_places(method))
    known = bool(np.isfinite(least))
    interval = f"95 % interval {low} to {high}; {drawn}" if known else "too few data sets for more"
    takes = f"; the least difference that may be is {least:.0f} points" if known else ""
    summary = [
        f"{method} has place {number} of {others + 1} ({interval}).",
        f"It is significantly better than {beaten or 'none'}{takes}.",
        *([f"Significantly better than it: {above}."] if above else []),
        *_machines(board, method),
        _losses(board, [method]),
    ]
    remark = (
        f"Holm's correction is over the {others} comparisons of {method}; the interval of its place has the places that"
        " these leave, the draws are no interval"
    )
    marks, meanings = ["placed" if i == k else "" for i in range(others + 1)], {"placed": "the method that is placed"}
    title, remarks = f"Place of {method}. {_title(board)}", [remark, *_remarks(board)]
    return _sheet(board, better, marks, meanings, title=title, summary=summary, remarks=remarks)


def _sheet(
    board: Board, better: Bool[ndarray, "K K"], marks: Sequence[str], meanings: Mapping[str, str], **texts: Any
) -> Sheet:
    order = [*map(int, np.argsort(-board.scores.values, kind="stable"))]
    measures = board.division.measures
    columns = [board.estimates[measure.metric][0] for measure in measures]
    by_measure = [(board.methods[k], *(_plus_minus(c.values[k], c.half_widths[k]) for c in columns)) for k in order]
    return Sheet(
        grids=[
            _main_grid(board, order, marks, better),
            Grid("scores by every measure", ("method", *(m.metric for m in measures)), tuple(by_measure)),
        ],
        marks=meanings,
        facts=_facts(board),
        rows=[row for k in order for row in _rows(board, k, better)],
        name=board.division.experiment,
        **texts,
    )


def _title(board: Board) -> str:
    sets = counted(len(board.datasets), "data set")
    budget = f"{board.seconds} seconds of {CORES} cores ({CORES * board.seconds} CPU seconds)"
    return f"Leaderboard of {board.division.name}: {len(board.methods)} methods on {sets}, within {budget}."


def _indifference(board: Board) -> str:
    """The line that no difference is significant, with what it takes."""
    least, largest = board.scores.least_difference(), np.ptp(board.scores.values)
    reason = f", as no two methods share {FEWEST} data sets."
    if np.isfinite(least):
        reason = " after Holm's correction: the least that may be is"
        reason += f" {least:.0f} points, and the largest is {largest:.0f}."
    return f"No difference of two scores is significant{reason}"


def _machines(board: Board, method: str) -> list[str]:
    """A line where the method's runs and those beside it may be of machines of different speed."""
    runs = {name: [record for record in own if not record.imported] for name, own in board.by_method.items()}
    own, others = runs.pop(method), [record for some in runs.values() for record in some]
    shipped = [record for record in others if record.shipped]
    words = lambda host: f"{host.get('cpu', 'an unknown processor')} ({counted(host.get('cores', 0), 'core')})"
    names, beside = (sorted({words(record.host or {}) for record in some}) for some in (own, shipped or others))
    if not names or not beside or (names == beside and not shipped):
        return []
    which = "runs that ship with gpbench on another machine, " if shipped else "others on "
    return [f"It ran on {', '.join(names)}, the {which}{', '.join(beside)}: a faster one has better scores."]


def _losses(board: Board, methods: Sequence[str] = ()) -> str:
    """The numbers of lost runs by reason, and those not run, in a line."""
    runs = [record for (name, _, _), record in board.runs.items() if not methods or name in methods]
    counts = Counter(reason for record in runs if (reason := lost(record)))
    planned = len(methods or board.methods) * sum(len(board.splits[name]) for name in board.datasets)
    parts = [f"{n} {reason}" for reason, n in (*counts.most_common(), ("not run", planned - len(runs))) if n]
    return f"{'Its runs' if methods else 'Runs'}: {planned}" + (f", of these {', '.join(parts)}" if parts else "") + "."


def _main_grid(board: Board, order: Sequence[int], marks: Sequence[str], better: Bool[ndarray, "K K"]) -> Grid:
    metric = board.division.measures[0].metric
    rates, ranks = board.estimates[metric][1], board.ranking
    average = dict(zip(ranks.methods, ranks.average)) if ranks else {}
    rows: list[tuple[str | Text, ...]] = []
    for k in order:
        name, rate, half = board.methods[k], 100 * rates.values[k], rates.half_widths[k]
        front = f"{100 * board.front[k]:.0f} %" + (" F" if board.on_front[k] else "")
        rows.append(
            (
                name,
                Text(_plus_minus(board.scores.values[k], board.scores.half_widths[k]), marks[k]),
                str(better[k].sum()),
                f"{rate:.0f} ± {100 * half:.0f} %" if half < 1 else f"{rate:.0f} %",
                *([f"{average[name]:.1f}"] if ranks else []),
                *((f"{np.exp(board.seconds_of.values[k]):.1f}", front) if board.is_complete[k] else ("", "")),
                _lost_of(board, name),
            )
        )
    of_ranks = ("average rank",) if ranks else ()
    header = ("method", "score", "better than", "wins", *of_ranks, "CPU s", "Pareto front", "lost runs")
    return Grid(f"by {METRICS[metric].heading}", header, tuple(rows))


def _remarks(board: Board) -> list[str]:
    margins = [
        f"{m.relative * 100:g} % of {m.metric}" if m.relative else f"{m.absolute:g} of {m.metric}"
        for m in board.division.measures
    ]
    budget, own = CORES * board.seconds, [r for r in board.runs.values() if not (r.imported or lost(r))]
    whole = sum((record.cpu_seconds or 0.0) > _WHOLE * budget for record in own)
    iterative = {record.method for record in own if (record.steps or 0) > 1}
    barely_trained = Counter(r.method for r in own if r.method in iterative and (r.steps or 0) <= 1).most_common()
    names = ", ".join(f"{name} ({n})" for name, n in barely_trained)
    budgets = f"{whole:,} of {len(own):,} runs of gpbench with predictions used over {100 * _WHOLE:.0f} % of the budget"
    notes = {budgets: whole, f"training ended after its first step, about where it starts: {names}": names}
    if ranking := board.ranking:
        ranks = [
            f"average rank by wins over the {len(ranking.datasets)} data sets that all methods have: Friedman's p ="
            f" {ranking.p:.2g}, critical difference {ranking.critical:.1f} ({TESTS['nemenyi']}, 5 %)",
            *power_caveats(ranking),
        ]
    else:
        ranks = [f"no average ranks: all methods share fewer than {FEWEST} data sets with all splits"]
    return [
        "score: Bradley-Terry in Elo points, mean 1000; 400 points are odds of 10 to 1 of the better value on a split",
        f"± and intervals: 95 %, from {DRAWS:,} draws of data sets and of splits within them, by the t distribution",
        f"ties are differences up to {', '.join(margins)}",
        "every data set has the same weight; a run that is late, out of memory, diverged or ended with an error loses"
        " to all others",
        "better than: how many others have a significantly lower score, at 5 % after Holm's correction; wins: share of"
        " comparisons won, ties counted half",
        f"CPU s: geometric mean over data sets, {(1 + GRACE) * budget:.0f} for a lost run; Pareto front: share of the"
        " draws in which no other method has a higher score and is as quick; F: so by the scores shown"
        + ("" if board.is_complete.all() else "; empty without all data sets"),
        f"data sets: {', '.join(board.datasets)}",
        *(text for text, applies in notes.items() if applies),
        *ranks,
        *filter(None, [imported_note(board.runs.values())]),
    ]


def _facts(board: Board) -> dict[str, str]:
    """Facts of the runs by name: splits, kernels and settings, budget and cores, then the facts of the records."""
    records = [*board.runs.values()]
    of_methods = definition.read(board.division.experiment).facts["full"]
    imported = any(record.imported for record in records)
    others = "; of other programs as in the scripts that made their predictions" if imported else ""
    cores = Counter(str((r.host or {}).get("cores", "imported" if r.imported else "unknown")) for r in records)
    return {
        "splits": run_facts(records)["splits"],
        **{name: of_methods[name] + others for name in ("kernel", "settings")},
        "budget": f"{CORES * board.seconds} CPU seconds, from the start of the process to the predictions",
        "cores": ", ".join(f"{name} ({n:,})" if len(cores) > 1 else name for name, n in cores.most_common()),
        **facts_of(records),
    }


def _plus_minus(value: float, half: float) -> str:
    return f"{value:.0f} ± {half:.0f}" if np.isfinite(half) else f"{value:.0f}"


def _lost_of(board: Board, method: str) -> str:
    """The lost runs of a method by reason, as in "3 late, 6 memory", and those not run."""
    runs = board.by_method[method]
    short = {LATE: "late", LARGE: "memory", FAULT: "error"}
    counts = Counter(short.get(reason, reason) for record in runs if (reason := lost(record)))
    absent = sum(len(board.splits[name]) for name in board.datasets) - len(runs)
    return ", ".join(f"{n} {reason}" for reason, n in (*counts.items(), ("not run", absent)) if n)


def _rows(board: Board, k: int, better: Bool[ndarray, "K K"]) -> list[Mapping[str, object]]:
    ranking, name = board.ranking, board.methods[k]
    average = dict(zip(ranking.methods, ranking.average)) if ranking else {}
    runs = board.by_method[name]
    finite = lambda value: float(value) if np.isfinite(value) else None
    rows: list[Mapping[str, object]] = []
    for number, measure in enumerate(board.division.measures):
        points, rates = board.estimates[measure.metric]
        score, half, rate, half_rate = points.values[k], points.half_widths[k], rates.values[k], rates.half_widths[k]
        rows.append(
            {
                "division": board.division.name,
                "seconds": board.seconds,
                "method": name,
                "metric": "seconds" if measure.metric == SECONDS else measure.metric,
                "score": score,
                "low": finite(score - half),
                "high": finite(score + half),
                "win_rate": rate,
                "win_rate_low": finite(max(rate - half_rate, 0.0)),
                "win_rate_high": finite(min(rate + half_rate, 1.0)),
                "average_rank": None if number else average.get(name),
                "cpu_seconds": float(np.exp(board.seconds_of.values[k])) if board.is_complete[k] else None,
                "front": float(board.front[k]) if not number and board.is_complete[k] else None,
                "n_datasets": int(points.datasets[k]),
                "n_runs": len(runs),
                "n_lost": sum(bool(lost(record)) for record in runs),
                "lost": _lost_of(board, name),
                "better_than": None if number else int(better[k].sum()),
            }
        )
    return rows
