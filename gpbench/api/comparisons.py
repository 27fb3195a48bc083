"""Comparisons of methods, and how sure they are: `gpbench best`, `rank`, `compare`, `power` and `leaderboard`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from gpbench import paths, yamls
from gpbench.analysis import best as methods
from gpbench.analysis import best_sheet, comparison, differences, leaderboard_sheet, rankings, sides
from gpbench.analysis import leaderboard as boards
from gpbench.analysis import power as powers
from gpbench.analysis.cells import group_runs
from gpbench.analysis.grouping import gather
from gpbench.analysis.kinds import ANY, TASKS, Kind, Range, number_range
from gpbench.api.selection import Filters, check_protocol, select, single_metric
from gpbench.api.tables import Table
from gpbench.api.words import Folders, folders, with_cards
from gpbench.arguments import checked
from gpbench.data import cards
from gpbench.errors import AbsentError, ConfigError, DataError, require, require_known
from gpbench.experiments import definition
from gpbench.experiments.plan import plans
from gpbench.records.plan import RunPlan
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
    """The methods with the best scores on recorded data of some task and size, and the differences that are shown.

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
        A table; its head is the answer in one sentence, and its `frame` has a row for each method and data set.

    examples:
      gpbench best --task regression --rows 30k-60k
      gpbench best --data boston --seconds 60
    """
    kind, dirs = _kind(task, rows, inputs, data, folders(config_dir))
    scope = f"{kind}; protocol {protocol}, held-out rows alone"
    board = kind.division and f"the board on other data: `gpbench leaderboard --division {kind.division}`"
    if seconds is not None:
        require(seconds > 0, f"seconds={seconds:g}: must be above 0", ConfigError)
        scope += f"; at most {seconds:g} seconds of training"

    def answer(stores: Sequence[Store]) -> tuple[methods.BestMethods, list[str]]:
        records = latest(recorded(stores))
        check_protocol(protocol, records, dirs)
        by_protocol = gather((record.protocol, record) for record in kind.records(records, dirs))
        matches = by_protocol.pop(protocol, [])
        sets = {name: ", ".join(sorted({run.dataset for run in runs})) for name, runs in sorted(by_protocol.items())}
        elsewhere = "; ".join(f"--protocol {name} ({names})" for name, names in sets.items())
        if len(names := {run.method for run in matches}) < 2:
            near = [] if elsewhere or names else kind.nearest(records, dirs)
            hint = f"; other protocols have: {elsewhere}" if elsewhere else ""
            hint += f"; the nearest recorded data are {', '.join(near)}" if near else ""
            subject = f"no method but {min(names)} has recorded runs of" if names else "no recorded run is of"
            raise AbsentError(f"{subject} {scope}{hint}{board and f'; {board}'}")
        notes = [f"Not used: runs on such data under another protocol: {elsewhere}"] if elsewhere else []
        notes += [f"Beside it, {board}"] if board else []
        return methods.best_methods(matches, single_metric(metric, matches), seconds), notes

    comparison, notes = first_answer(results, answer)
    sheet = best_sheet.sheet(comparison, scope, notes, whole=whole)
    return Table(sheet, best_sheet.as_dict(comparison, scope), records=comparison.records, results=results)


def _kind(
    task: str | None, rows: str | int | None, inputs: str | int | None, data: str | None, dirs: list[Path]
) -> tuple[Kind, list[Path]]:
    """The kind of data that is asked for, and the folders with that of a data set's card."""
    if data is not None:
        card, dirs = _card(data, dirs)
        is_right = task is None or card["task"] in TASKS.get(task, ())
        require(is_right, f"{data} is of the task {card['task']}, not {task}; leave the task out", ConfigError)
        task, rows = task or card["task"], _rows_of(card, dirs) if rows is None else rows
    if task is None:
        raise ConfigError(f"say --task, one of {', '.join(TASKS)}, or --data with a data set")
    require_known(task, TASKS, f"no task {task!r}")
    return Kind(task, number_range(rows, "rows"), number_range(inputs, "inputs")), dirs


def _card(data: str, dirs: list[Path]) -> tuple[dict[str, Any], list[Path]]:
    """The card of a data set, by its name, its path or that of its table, and the folders with that of the card."""
    path = paths.expanded(data)
    if path.suffix in (".yaml", ".yml"):
        require(path.is_file(), f"{data}: no such card", ConfigError)
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


@checked
def rank(
    *, metric: str | None = None, all_settings: bool = False, results: Results = None, **filters: Unpack[Filters]
) -> Table:
    """Average ranks of methods over data sets, with Friedman's test and critical differences (Demšar 2006).

        gpbench.rank(method=["sep", "svi", "gfitc"], setting="m=15%", protocol="hl2016").figure()

    Args:
        metric (NAME): a metric; by default nll, or rmse for regression.
        all_settings: rank every setting of a method; by default the one with runs on the most data sets, or those that
            the filter `setting` names.
        results, **filters: as for `table`.

    Returns:
        A table whose `figure` is the diagram of critical differences.

    examples:
      gpbench rank --method sep,svi,gfitc --setting m=15% --out ranks.pdf
    """
    records = first_answer(results, lambda stores: select(latest(recorded(stores)), filters))
    cells, name = group_runs(records), single_metric(metric, records)
    notes: list[str] = []
    if not all_settings and not filters.get("setting"):
        cells, notes = comparison.main_cells(cells, name, all_methods=bool(filters.get("method")))
        records = [record for cell in cells for record in cell.records]
    ranking = rankings.ranking(cells, name, notes)
    data = {name: value for name, value in vars(ranking).items() if name != "known"}
    picture = "comparisons.draw_ranking", ranking
    return Table(rankings.sheet(ranking, records), data, picture, records=records, results=results)


@checked
def compare(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """Paired differences A - B on every data set, over the splits that both have.

        gpbench.compare("sep", "svi", dataset="heart", setting="m=15%")

    Args:
        a, b: two methods, settings, protocols, presets, precisions or commits, as sep, method:sep, commit:1a2b or
            setting:none, which is that of the defaults.
        metric (NAME): a metric; by default nll, or rmse for regression, where both have it.
        results, **filters: as for `table`.

    Returns:
        A table with the 95 % intervals of the corrected resampled t test (Nadeau and Bengio 2003); `figure` draws them.

    examples:
      gpbench compare sep svi --setting m=15% --out difference.png
      gpbench compare commit:1a2b commit:3c4d --results before --results after
    """
    first, second, pairs, unmatched = first_answer(results, lambda stores: _differences(a, b, metric, stores, filters))
    sheet = differences.sheet(first, second, pairs, unmatched)
    picture = "comparisons.draw_differences", first, second, pairs
    return Table(sheet, picture=picture, records=(r for pair in pairs for r in pair.records), results=results)


@checked
def power(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """The smallest difference A - B that the recorded splits can show, and the splits that the observed one needs.

        gpbench.power("sep", "svi", setting="m=15%", dataset="pima")

    Args:
        a, b: two methods, settings, protocols, presets, precisions or commits, as sep, method:sep, commit:1a2b or
            setting:none, which is that of the defaults.
        metric (NAME): a metric; by default nll, or rmse for regression, where both have it.
        results, **filters: as for `table`.

    Returns:
        A row for each data set, at a significance level of 5 % and a power of 80 %.

    examples:
      gpbench power sep svi --setting m=15%
    """
    first, second, pairs, _ = first_answer(results, lambda stores: _differences(a, b, metric, stores, filters))
    sheet = powers.sheet(first, second, pairs)
    return Table(sheet, records=(record for pair in pairs for record in pair.records), results=results)


def _differences(
    a: str, b: str, metric: str | None, stores: Sequence[Store], filters: Filters
) -> tuple[sides.Side, sides.Side, list[differences.Difference], list[Any]]:
    """Both sides, their differences on every data set, and the cells without a partner."""
    records = select(recorded(stores), filters)
    first, second = sides.parse_sides(a, b, records)
    records = [record for record in records if first.includes(record) or second.includes(record)]
    # two commits have the same runs in two folders: the latest of each side counts
    records = [r for side in (first, second) for r in latest(r for r in records if side.includes(r))]
    name = single_metric(metric, records, sides.shared_metrics(first, second, records))
    return first, second, *differences.paired_differences(first, second, records, name)


@checked
def leaderboard(
    division: str = "regression",
    *,
    method: str | None = None,
    rows: str | int | None = None,
    quick: bool = False,
    whole: bool = False,
    results: Results = None,
) -> Table:
    """The board of a division: which methods beat which with their defaults, and which may be the best.

        gpbench.leaderboard("classification", quick=True).figure()

    Args:
        division (NAME): regression (the default) or classification.
        method (NAME): how this method stands, in place of the board.
        rows (A-B): only data sets with so many rows, as 30k-60k, 30k- or -60k.
        quick: only the small data sets, on which new methods are placed.
        whole: the pairs that are decided, and every data set.
        results: as for `table`.

    Returns:
        A table whose `figure` draws the shares of others beaten, also against seconds.

    Raises:
        ConfigError: an unknown division or method, or a wrong range.
        AbsentError: no such run is recorded, or those of one method alone.

    examples:
      gpbench leaderboard --division classification --out board.png
      gpbench leaderboard --method dgp --rows 5k-                   how it stands on larger data
      gpbench leaderboard add method=mine --config-dir mine         train it on the small data sets; how it stands
    """
    runs = board_of(division, quick, results, number_range(rows, "rows"))
    if method is None:
        sheet = leaderboard_sheet.sheet(runs, whole=whole)
    else:
        absent = runs.unranked.get(method, 0)
        fault = f"{absent} of its runs were not made, or have no {runs.division.measures[0].metric}"
        require(not absent, f"{method} has no place: {fault}", AbsentError)
        require_known(method, runs.methods, f"no method {method!r} on the board of {runs.division.name}", AbsentError)
        sheet = leaderboard_sheet.place_sheet(runs, method)
    return Table(sheet, picture=("comparisons.draw_board", runs), records=runs.runs.values(), results=results)


def board_of(division: str, quick: bool, results: Results, rows: Range = ANY) -> boards.BoardRuns:
    """The board of recorded runs on data with so many rows, as `leaderboard` has it."""
    kind = boards.division_of(division)
    jobs, splits = kind.jobs(), kind.datasets(quick, rows)
    require(splits, f"no {'small ' * quick}data set of {division} has so many rows", AbsentError)
    planned = zip(jobs, plans([definition.overrides(job) for job in jobs]))
    methods = {run.id: job["method"] for job, plan in planned if isinstance(plan, RunPlan) for run in plan.runs}
    board = lambda stores: boards.board_of(latest(recorded(stores)), kind, splits, planned=methods)
    return first_answer(results, board)
