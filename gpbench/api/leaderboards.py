"""The boards of recorded runs: the function behind `gpbench leaderboard`."""

from gpbench.analysis import leaderboard as boards
from gpbench.analysis import leaderboard_sheet
from gpbench.api.tables import Table
from gpbench.arguments import checked
from gpbench.experiments import definition
from gpbench.experiments.plan import plans
from gpbench.records.plan import RunPlan
from gpbench.records.store import latest, recorded
from gpbench.records.unions import Results, first_answer


@checked
def leaderboard(
    division: str = "regression", *, quick: bool = False, whole: bool = False, results: Results = None
) -> Table:
    """The board of a division: which methods beat which with their defaults, and which may be the best.

        print(gpbench.leaderboard("regression", quick=True))

    Args:
        division (NAME): regression (the default) or classification.
        quick: only the small data sets, on which new methods are placed.
        whole: the pairs that are decided, and every data set.
        results: as for `table`.

    Returns:
        A table whose `figure` draws the shares of others beaten, also against seconds.

    Raises:
        ConfigError: an unknown division.
        AbsentError: no such run is recorded, or those of one method alone.

    examples:
      gpbench leaderboard                                           regression
      gpbench leaderboard --division classification --out board.png
      gpbench leaderboard add method=mine --config-dir mine         train it on the small data sets; how it stands

    the rules:
      docs/reference/leaderboard.md
    """
    runs = board_of(division, quick, results)
    sheet, picture = leaderboard_sheet.sheet(runs, whole=whole), ("leaderboard.draw_board", runs)
    return Table(sheet, picture=picture, records=runs.runs.values(), results=results)


def board_of(division: str, quick: bool, results: Results) -> boards.BoardRuns:
    """The board of recorded runs, as `leaderboard` has it."""
    kind = boards.division_of(division)
    jobs = kind.jobs()
    planned = zip(jobs, plans([definition.overrides(job) for job in jobs]))
    methods = {run.id: job["method"] for job, plan in planned if isinstance(plan, RunPlan) for run in plan.runs}
    return first_answer(
        results, lambda stores: boards.board_of(latest(recorded(stores)), kind, quick=quick, planned=methods)
    )
