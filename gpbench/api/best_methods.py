"""Which methods to use for data of some kind: the function behind `gpbench best`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.analysis import best as comparisons
from gpbench.analysis import best_sheet
from gpbench.analysis.kinds import TASKS, Kind, number_range
from gpbench.api.selection import single_metric, without_budget
from gpbench.api.tables import Table
from gpbench.api.words import Folders, folders, with_cards
from gpbench.arguments import checked
from gpbench.errors import AbsentError, ConfigError, DataError, require_known
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import Results, first_answer


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
        task: regression, count, binary, multiclass or classification; by default the task of `data`.
        rows (A-B): rows of a data set, as 30k-60k, 30k- or -60k; 50k is 25k to 100k.
        inputs (A-B): numbers of inputs, written likewise; by default any.
        data (NAME|TABLE|CARD): a data set, or the path of its table or card: its task, and half to twice its rows.
        seconds (S): only methods that train in so many seconds on average.
        metric (NAME): a metric; by default nll, or rmse for regression.
        protocol (NAME): the protocol of the runs; by default clean.
        whole: show all methods instead of the first twelve.
        config_dir: folders with dataset/ cards of yours.
        results: as for `table`.

    Returns:
        A table; its head is the answer in one sentence, its `data` has all numbers, `frame` a row for each method and
        data set.

    examples:
      gpbench best --task regression --rows 30k-60k
      gpbench best --data boston --seconds 60
    """
    dirs = folders(config_dir)
    if data is not None:
        card, dirs = _card(data, dirs)
        if task is not None and card["task"] not in TASKS.get(task, ()):
            raise ConfigError(f"{data} is of the task {card['task']}, not {task}; leave the task out")
        task, rows = task or card["task"], _rows_of(card, dirs) if rows is None else rows
    if task is None:
        raise ConfigError(f"say --task, one of {', '.join(TASKS)}, or --data with a data set")
    require_known(task, TASKS, f"no task {task!r}")
    if seconds is not None and not seconds > 0:
        raise ConfigError(f"seconds={seconds:g}: must be above 0")
    kind = Kind(task, number_range(rows, "rows"), number_range(inputs, "inputs"))
    scope = f"{kind}; protocol {protocol}, held-out rows alone"
    if seconds is not None:
        scope += f"; at most {seconds:g} seconds of training"

    def answer(stores: Sequence[Store]) -> tuple[comparisons.BestMethods, list[str]]:
        records = latest(recorded(stores))
        similar = kind.records(records, dirs)
        matches = [record for record in similar if record.protocol == protocol]
        elsewhere = _elsewhere(similar, protocol)
        if not matches:
            raise AbsentError(f"no recorded run has {scope}{_remedy(kind, records, dirs, elsewhere)}")
        matches = without_budget(matches)
        name = single_metric(metric, matches)
        notes = [f"Not used: runs on such data under another protocol: {elsewhere}"] * bool(elsewhere)
        return comparisons.best_methods(matches, name, seconds), notes

    comparison, notes = first_answer(results, answer)
    sheet = best_sheet.sheet(comparison, scope, notes, whole=whole)
    return Table(sheet, best_sheet.as_dict(comparison, scope), records=comparison.records, results=results)


def _card(data: str, dirs: list[Path]) -> tuple[dict[str, Any], list[Path]]:
    """The card of a data set, by its name, its path or that of its table, and the folders with that of the card."""
    from gpbench.data import cards

    path = paths.expanded(data)
    if path.suffix in (".yaml", ".yml"):
        from gpbench import yamls

        if not path.is_file():
            raise ConfigError(f"{data}: no such card")
        return cards.checked(yamls.read(path), path, dirs), dirs
    try:
        (word,), dirs = with_cards([f"dataset={data}"], dirs)
    except ConfigError as error:
        raise ConfigError(f"{error}; `gpbench data check {data} target=NAME` writes its card") from None
    return cards.read(word.removeprefix("dataset="), dirs), dirs


def _rows_of(card: dict[str, Any], dirs: Sequence[Path]) -> int:
    """The number of rows that a card states, or else those of its data, where these are at hand."""
    if card.get("rows"):
        return int(card["rows"])
    from gpbench.data import load

    try:
        return len(load(card, offline=True, config_dirs=dirs).y)
    except DataError as error:
        raise ConfigError(f"{error}; or say how many rows it has by --rows") from None


def _elsewhere(similar: Sequence[Record], protocol: str) -> str:
    """The options that choose the other protocols of these records, with their data sets, which are not used."""
    others: dict[str, set[str]] = {}
    for record in similar:
        if record.protocol != protocol:
            others.setdefault(record.protocol, set()).add(record.dataset)
    return "; ".join(f"--protocol {name} ({', '.join(sorted(sets))})" for name, sets in sorted(others.items()))


def _remedy(kind: Kind, records: Sequence[Record], dirs: Sequence[Path], elsewhere: str) -> str:
    """What to ask instead where no run is of a kind: another protocol, or the nearest sizes."""
    if elsewhere:
        return f"; other protocols have: {elsewhere}"
    near = kind.nearest(records, dirs)
    return f"; the nearest recorded data are {', '.join(near)}" if near else ""
