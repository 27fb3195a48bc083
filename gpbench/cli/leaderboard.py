"""`gpbench leaderboard add`: trains a method within a budget of seconds, and shows how it stands on the leaderboard."""

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from gpbench import paths
from gpbench.analysis.leaderboard import CORES, cpu_budget, division_of, eligible, name_of
from gpbench.analysis.leaderboard_sheet import place_sheet
from gpbench.api.leaderboards import board_of
from gpbench.api.tables import Table
from gpbench.cli.output import Named, results_folder
from gpbench.config.words import require_once, word
from gpbench.errors import AbsentError, ConfigError, DivergedError, SweepError, printable, require
from gpbench.experiments.plan import plans
from gpbench.records.collection import SUFFIX
from gpbench.records.plan import RunPlan
from gpbench.records.store import latest
from gpbench.records.unions import SHIPPED, open_stores

_TEXTS = ("method=", "method.", "+method.", "run.again=")
"""Beginnings of the words that a command line may have."""


def add(
    *overrides: str,
    division: str = "regression",
    budget: int = 10,
    jobs: int = 1,
    dry_run: bool = False,
    config_dir: Sequence[Path] = (),
    results: Named = None,
) -> Table | int:
    """Train a method on half of the data sets of a division, and show how it stands there.

    Args:
        overrides (KEY=VALUE): method and settings
        division (NAME): regression (default) or classification
        budget (S): 10 (default), 60 or 600 seconds of two cores
        jobs (K): processes at a time (default: 1)
        dry_run: list the jobs and what is recorded of them
        config_dir: a folder with your own method/ files, and the modules they name

    examples:
      gpbench leaderboard add method=mine --config-dir mine
      gpbench leaderboard add method=svi method.inducing=50         a setting of yours of a method of gpbench's
      gpbench leaderboard add method=mine run.again=true            make its runs again, after a change of its code

    the rules:
      docs/reference/leaderboard.md
    """
    from gpbench.sweep.jobs import Jobs

    folder = results_folder(results)
    fault = f"--results {folder}: runs are recorded in a folder: name one, and --with-shipped"
    require(folder.suffix != SUFFIX, fault, ConfigError)
    words = _jobs(division, budget, overrides, folder)
    planned = [plan for plan in plans(words, config_dir) if isinstance(plan, RunPlan)]
    ids, shared = [run.id for plan in planned for run in plan.runs], planned[0].cfg["run"]
    sweep = Jobs(config_dir, {**shared, "jobs": jobs})
    stores = results or [folder, *([SHIPPED] if paths.shipped_files() else [])]
    _require_others(ids, division, budget, [item for item in stores if item == SHIPPED or Path(item).exists()])
    if dry_run:
        from gpbench.sweep.display import preview

        return preview(words, config_dir)
    most = shared["budget"]
    minutes = len(ids) * most / 60
    print(f"gpbench: {len(ids)} runs of at most {most:g} CPU seconds, {minutes:.0f} minutes", file=sys.stderr)
    sweep.launch(words)
    failure: SweepError | None = None
    try:
        sweep.conclude()
    except DivergedError:  # lost runs count
        pass
    except SweepError as error:  # its runs are not made: the place is without them
        failure = error
    try:
        runs = board_of(division, budget, True, stores)
        if (name := name_of(runs, ids)) is None:
            raise AbsentError("none of its runs is recorded on a data set that another method has")
    except AbsentError as error:
        raise failure or error from None
    sheet, picture = place_sheet(runs, name), ("leaderboard.draw_board", runs)
    table = Table(sheet, picture=picture, records=runs.runs.values(), results=stores)
    if folder == paths.results_dir():
        flags = f" --division {division}" if division != "regression" else ""
        flags += f" --budget {budget}" if budget != 10 else ""
        print(f"gpbench: `gpbench leaderboard --half --with-shipped{flags}` shows it again", file=sys.stderr)
    if failure:
        print(f"gpbench: {printable(str(failure))}", file=sys.stderr)
        table.exit_code = failure.exit_code
    return table


def _jobs(division: str, budget: int, words: Sequence[str], results: Path) -> list[list[str]]:
    """The jobs that place a method, which these words name with its settings: on the half of the data sets, within the
    budget.  Raises ConfigError for words of another kind, and without a method."""
    others = [text for text in words if not text.startswith(_TEXTS)]
    names = [text for text in words if text.startswith("method=")]
    lists = [text for text in words if "," in (value := text.partition("=")[2]) and value[0] not in "[{'\""]
    fault = ""
    if others:
        hint = "" if "=" in others[0] else f": write method={others[0]}"
        fault = f"{others[0]}: the leaderboard fixes all but the method and its settings{hint}"
    elif len(names) != 1 or "," in names[0]:
        several = f"{' and '.join(names)}: " if names else ""
        fault = f"{several}name the one method to place, as in `gpbench leaderboard add method=svi`"
    elif lists:
        fault = f"{lists[0]}: one method is placed with one value of each setting; add it once for each"
    require(not fault, fault, ConfigError)
    require_once(words)
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


def _require_others(ids: Collection[str], division: str, budget: int, stores: Sequence[str | Path]) -> None:
    """Raises AbsentError where the method with these runs, by id, would have no other to stand beside."""
    records = latest(record for store in (open_stores(stores) if stores else []) for record in store.all())
    runs = eligible(records, division_of(division), budget, half=True)
    if all(record.id in ids for record in runs):
        raise AbsentError(
            f"no run of another method is recorded on the {division} board of {budget} s: --with-shipped reads those"
            f" that ship; `gpbench reproduce gpbench/leaderboard_{division} --preset full` makes all"
        )
