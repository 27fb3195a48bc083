"""Which methods to use for data of some kind: the function behind `gpbench best`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench.analysis import best as comparisons
from gpbench.analysis import best_sheet
from gpbench.api.selection import single_metric
from gpbench.api.tables import Table
from gpbench.api.words import Folders, folders
from gpbench.arguments import checked
from gpbench.errors import AbsentError, ConfigError, DataError, nearest
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import Results, first_answer

TASKS: dict[str, tuple[str, ...]] = {
    "regression": ("regression",),
    "count": ("count",),
    "binary": ("binary",),
    "multiclass": ("multiclass",),
}
TASKS["classification"] = ("binary", "multiclass")
"""Tasks of cards by the name that a user gives."""

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_AROUND = 2
"""Factor around a single number of rows or inputs."""


@checked
def best(
    *,
    task: str | None = None,
    rows: str | int | None = None,
    inputs: str | int | None = None,
    data: str | None = None,
    seconds: float | None = None,
    metric: str | None = None,
    protocol: str = "clean",
    whole: bool = False,
    config_dir: Folders = (),
    results: Results = None,
) -> Table:
    """Which methods have the best scores on recorded data of some task and size, and which differences are shown.

        gpbench.best(task="regression", rows="30k-60k")
        gpbench.best(data="boston", seconds=60)

    Only runs whose test rows were held out count, under one protocol.  The module `gpbench.analysis.best` describes
    ranks, tests and corrections step by step.

    Args:
        task: "regression", "count", "binary", "multiclass" or "classification"; by default the task of `data`.
        rows: rows of a data set, as "30k-60k", "30k-" or "-60k"; a single number N is N/2 to 2N.
        inputs: numbers of inputs, written likewise; by default any.
        data: a data set or the path of its card, for its task, and for its rows from half to twice as many.
        seconds: largest mean of the seconds of training; slower methods are left out.
        metric: a metric; by default nll, or rmse for regression.
        protocol: the protocol of the runs.
        whole: show all methods instead of the first twelve.
        config_dir: folders with dataset/ cards of yours.
        results: the results folder, a file that `gpbench collect` made, "shipped", or several; by default the results
            folder, or the runs that ship with gpbench where it has none of these.

    Returns:
        A table; its head is the answer in one sentence, its `data` has all numbers, `frame` a row for each method and
        data set.

    Raises:
        ConfigError: an unknown name, no task, a range that cannot be read, or no recorded run of such data.
    """
    dirs = folders(config_dir)
    if data is not None:
        card = _card(data, dirs)
        if task is not None and card["task"] not in TASKS.get(task, ()):
            raise ConfigError(f"{data} is of the task {card['task']}, not {task}; leave the task out")
        task, rows = task or card["task"], _rows_of(card, dirs) if rows is None else rows
    if task is None:
        raise ConfigError(f"say --task, one of {', '.join(TASKS)}, or --data with a data set")
    if task not in TASKS:
        raise ConfigError(f"no task {task!r}; {nearest(task, TASKS)}")
    sizes, widths = _range(rows, "rows"), _range(inputs, "inputs")
    scope = f"{task}, {_words(sizes, 'rows')}, {_words(widths, 'inputs')}; protocol {protocol}, held-out rows alone"
    if seconds is not None:
        scope += f"; at most {seconds:g} seconds of training"

    def answer(stores: Sequence[Store]) -> tuple[comparisons.Comparison, list[str]]:
        similar = _similar(latest(recorded(stores)), task or "", sizes, widths, dirs)
        matches = [record for record in similar if record.protocol == protocol]
        elsewhere = _elsewhere(similar, protocol)
        if not matches:
            raise AbsentError(f"no recorded run has {scope}" + (f"; {elsewhere[0]}" if elsewhere else ""))
        name = single_metric(metric, matches)
        return comparisons.comparison(matches, name, seconds), elsewhere

    comparison, notes = first_answer(results, answer)
    return Table(best_sheet.sheet(comparison, scope, notes, whole=whole), best_sheet.as_dict(comparison, scope))


def _card(data: str, dirs: Sequence[Path]) -> dict[str, Any]:
    """The card of a data set, by its name or its path."""
    from gpbench.data import cards

    path = Path(data).expanduser()
    if path.suffix in (".yaml", ".yml"):
        from gpbench import yamls

        if not path.is_file():
            raise ConfigError(f"{data}: no such card")
        return cards.checked(yamls.read(path), path, dirs)
    return cards.read(data, dirs)


def _rows_of(card: dict[str, Any], dirs: Sequence[Path]) -> int:
    """The number of rows that a card states, or else those of its data, where these are at hand."""
    if card.get("rows"):
        return int(card["rows"])
    from gpbench.data import load

    try:
        return len(load(card, offline=True, config_dirs=dirs).y)
    except DataError as error:
        raise ConfigError(f"{error}; or say how many rows it has by --rows") from None


def _similar(
    records: Sequence[Record], task: str, rows: tuple[float, float], inputs: tuple[float, float], dirs: Sequence[Path]
) -> list[Record]:
    """The held-out records whose data have this task and these sizes."""
    sized = [r for r in records if comparisons.is_held_out(r) and rows[0] <= comparisons.rows_of(r) <= rows[1]]
    facts = {name: _facts(name, dirs) for name in {record.dataset for record in sized}}
    return [
        record
        for record in sized
        if _task(record, facts[record.dataset]) in TASKS[task]
        and (inputs == _range(None, "") or inputs[0] <= (facts[record.dataset].get("inputs") or -1) <= inputs[1])
    ]


def _facts(dataset: str, dirs: Sequence[Path]) -> dict[str, Any]:
    """The card of a data set; empty where there is none here."""
    from gpbench.data import cards

    try:
        return cards.read(dataset, dirs)
    except ConfigError:
        return {}


def _task(record: Record, card: dict[str, Any]) -> str:
    """The task of a run: as its card says, or without a card as its metrics do."""
    by_metrics = "regression" if "rmse" in record.metrics else "binary" if "auc" in record.metrics else "multiclass"
    return str(card.get("task") or by_metrics)


def _elsewhere(similar: Sequence[Record], protocol: str) -> list[str]:
    """A line on the data sets of other protocols, which are not used."""
    others: dict[str, set[str]] = {}
    for record in similar:
        if record.protocol != protocol:
            others.setdefault(record.protocol, set()).add(record.dataset)
    parts = [f"--protocol {name} ({', '.join(sorted(sets))})" for name, sets in sorted(others.items())]
    return [f"Not used: runs on such data under another protocol: {'; '.join(parts)}"] * bool(parts)


def _range(value: str | int | None, name: str) -> tuple[float, float]:
    """Smallest and largest number of a range as a user writes it."""
    if value is None:
        return 0, float("inf")
    text = str(value).lower().replace(" ", "").replace(",", "").replace("_", "")
    low, dash, high = text.partition("-")
    try:
        first, last = (_number(end) if end else None for end in (low, high))
    except ValueError:
        raise ConfigError(f"{name}={value}: write a number or a range, as 50k, 30k-60k, 30k- or -60k") from None
    if first is None and last is None:
        raise ConfigError(f"{name}={value}: write a number or a range, as 50k, 30k-60k, 30k- or -60k")
    if not dash and first is not None:
        return first / _AROUND, first * _AROUND
    bounds = first or 0, float("inf") if last is None else last
    if bounds[0] > bounds[1]:
        raise ConfigError(f"{name}={value}: its first number is larger than its last")
    return bounds


def _number(text: str) -> float:
    unit = text[-1] if text[-1] in _UNITS else ""
    value = float(text.removesuffix(unit)) * _UNITS[unit]
    if not 0 <= value < 1e15:
        raise ValueError
    return value


def _words(bounds: tuple[float, float], noun: str) -> str:
    low, high = bounds
    if high == float("inf"):
        return f"{low:,.0f} {noun} or more" if low else f"any number of {noun}"
    return f"{low:,.0f} to {high:,.0f} {noun}"
