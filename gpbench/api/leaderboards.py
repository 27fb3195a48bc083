"""The leaderboard: its boards, and the place of a new method on them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpbench import paths
from gpbench.analysis.sheets import Sheet
from gpbench.api.tables import Table
from gpbench.arguments import checked
from gpbench.config.words import require_once, word
from gpbench.errors import AbsentError, ConfigError
from gpbench.records.store import latest, recorded
from gpbench.records.unions import Results, first_answer, open_stores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpbench.analysis.leaderboard import Board


@checked
def leaderboard(
    division: str = "regression", *, budget: int = 10, half: bool = False, results: Results = None
) -> Table:
    """The board of a division: scores of methods within a budget of seconds, with intervals.

        print(gpbench.leaderboard("regression", budget=60))

    Args:
        division (NAME): regression (the default) or classification.
        budget (S): seconds of two cores: 10 (the default), 60 or 600.
        half: only the data sets on which new methods are placed.
        results: as for `table`.

    Returns:
        A table whose `figure` draws the scores, and the Pareto front of scores and seconds.

    Raises:
        ConfigError: an unknown division or budget.
        AbsentError: no such run is recorded, or those of one method alone.

    examples:
      gpbench leaderboard                                           regression within 10 seconds of two cores
      gpbench leaderboard --division classification --out board.png
      gpbench leaderboard add method=mine --config-dir mine         train it on half of the data sets; its place there

    the rules:
      docs/reference/leaderboard.md
    """
    from gpbench.analysis.leaderboard_sheet import sheet

    return _table(board := board_of(division, budget, half, results), sheet(board), results)


def standing(ids: Sequence[str], division: str = "regression", *, budget: int = 10, results: Results = None) -> Table:
    """The place of the method with these runs, by id, on the half of the data sets, among those recorded there."""
    from gpbench.analysis.leaderboard import name_of
    from gpbench.analysis.leaderboard_sheet import place_sheet

    board = board_of(division, budget, True, results)
    if (name := name_of(board, ids)) is None:
        raise AbsentError("none of its runs is recorded on a data set that another method has")
    return _table(board, place_sheet(board, name), results)


def jobs(division: str, budget: int, words: Sequence[str], results: Path) -> list[list[str]]:
    """The jobs that place a method, which these words name with its settings: on the half of the data sets, within the
    budget.  Raises ConfigError for words of another kind, and without a method.
    """
    from gpbench.analysis.leaderboard import CORES, cpu_budget, division_of

    if others := [word for word in words if not word.startswith(("method=", "method.", "+method.", "run.again="))]:
        hint = "" if "=" in others[0] else f": write method={others[0]}"
        raise ConfigError(f"{others[0]}: the leaderboard fixes all but the method and its settings{hint}")
    names = [word for word in words if word.startswith("method=")]
    if len(names) != 1 or "," in names[0]:
        several = f"{' and '.join(names)}: " if names else ""
        raise ConfigError(f"{several}name the one method to place, as in `gpbench leaderboard add method=svi`")
    require_once(words)
    if lists := [word for word in words if "," in (value := word.partition("=")[2]) and value[0] not in "[{'\""]:
        raise ConfigError(f"{lists[0]}: one method is placed with one value of each setting; add it once for each")
    shared = [
        *words,
        "protocol=clean",
        f"run.budget={cpu_budget(budget)}",
        "run.device=cpu",
        f"run.cores={CORES}",
        f"run.results={word(paths.expanded(results).resolve())}",
    ]
    half = division_of(division).datasets(half=True)
    return [[f"dataset={name}", f"split={splits}".replace(" ", ""), *shared] for name, splits in half.items()]


def require_others(ids: Collection[str], division: str, budget: int, results: Results) -> None:
    """Raises AbsentError where the method with these runs, by id, would have no other to stand beside."""
    from gpbench.analysis.leaderboard import division_of, eligible

    records = latest(record for store in (open_stores(results) if results else []) for record in store.all())
    runs = eligible(records, division_of(division), budget, half=True)
    if all(record.id in ids for record in runs):
        raise AbsentError(
            f"no run of another method is recorded on the {division} board of {budget} s: --with-shipped reads those"
            f" that ship; `gpbench reproduce gpbench/leaderboard_{division} --preset full` makes all"
        )


def board_of(division: str, budget: int, half: bool, results: Results) -> "Board":
    """The board of recorded runs, as `leaderboard` has it."""
    from gpbench.analysis.leaderboard import board_of as board_from
    from gpbench.analysis.leaderboard import cpu_budget, division_of

    kind = division_of(division)
    planned = _planned(kind.experiment, cpu_budget(budget))
    return first_answer(
        results, lambda stores: board_from(latest(recorded(stores)), kind, budget, half=half, planned=planned)
    )


def _planned(experiment: str, budget: int) -> dict[str, str]:
    """The names of methods, as on a command line, by the ids of the runs within a budget of CPU seconds."""
    from gpbench.experiments import definition
    from gpbench.experiments.plan import plans
    from gpbench.records.plan import RunPlan

    jobs = [job for job in definition.read(experiment).jobs("full") if job["run.budget"] == str(budget)]
    planned = zip(jobs, plans([definition.overrides(job) for job in jobs]))
    return {run.id: job["method"] for job, plan in planned if isinstance(plan, RunPlan) for run in plan.runs}


def _table(board: "Board", sheet: Sheet, results: Results) -> Table:
    def draw() -> "Figure":
        from gpbench.report.figures.leaderboard import draw_board

        return draw_board(board)

    return Table(sheet, draw=draw, records=board.runs.values(), results=results)
