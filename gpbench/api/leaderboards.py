"""The boards of recorded runs: the function behind `gpbench leaderboard`."""

from gpbench.analysis import leaderboard as boards
from gpbench.analysis import leaderboard_sheet
from gpbench.analysis.kinds import ANY, Range, number_range
from gpbench.api.tables import Table
from gpbench.arguments import checked
from gpbench.errors import AbsentError, require, require_known
from gpbench.experiments import definition
from gpbench.experiments.plan import plans
from gpbench.records.plan import RunPlan
from gpbench.records.store import latest, recorded
from gpbench.records.unions import Results, first_answer


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
    return Table(sheet, picture=("leaderboard.draw_board", runs), records=runs.runs.values(), results=results)


def board_of(division: str, quick: bool, results: Results, rows: Range = ANY) -> boards.BoardRuns:
    """The board of recorded runs on data with so many rows, as `leaderboard` has it."""
    kind = boards.division_of(division)
    jobs, splits = kind.jobs(), kind.datasets(quick, rows)
    require(splits, f"no {'small ' * quick}data set of {division} has so many rows", AbsentError)
    planned = zip(jobs, plans([definition.overrides(job) for job in jobs]))
    methods = {run.id: job["method"] for job, plan in planned if isinstance(plan, RunPlan) for run in plan.runs}
    board = lambda stores: boards.board_of(latest(recorded(stores)), kind, splits, planned=methods)
    return first_answer(results, board)
