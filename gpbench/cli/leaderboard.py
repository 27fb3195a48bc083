"""`gpbench leaderboard add`: trains a method within a budget of seconds, and shows its place on the leaderboard."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gpbench import paths, targets
from gpbench.api import leaderboards
from gpbench.cli import output
from gpbench.cli.output import Named
from gpbench.errors import AbsentError, ConfigError, DivergedError, SweepError
from gpbench.records.collection import SUFFIX
from gpbench.records.unions import SHIPPED


def add(
    *overrides: str,
    division: str = "regression",
    budget: int = 10,
    jobs: int = 1,
    dry_run: bool = False,
    config_dir: Sequence[Path] = (),
    results: Named = None,
    format: str | None = None,
    plain: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Train a method on half of the data sets of a division, and show its place there.

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
    from gpbench.experiments.plan import plans
    from gpbench.records.plan import RunPlan
    from gpbench.sweep.jobs import Jobs

    output.check_output(out, format)
    folders = targets.add_folders(config_dir)
    folder = output.results_folder(results)
    if folder.suffix == SUFFIX:
        raise ConfigError(f"--results {folder}: runs are recorded in a folder: name one, and --with-shipped")
    words = leaderboards.jobs(division, budget, overrides, folder)
    planned = [plan for plan in plans(words, folders) if isinstance(plan, RunPlan)]
    ids, shared = [run.id for plan in planned for run in plan.runs], planned[0].cfg["run"]
    sweep = Jobs(folders, {**shared, "jobs": jobs})
    stores = results or [folder, *([SHIPPED] if paths.shipped_files() else [])]
    existing = [item for item in stores if item == SHIPPED or Path(item).exists()]
    leaderboards.require_others(ids, division, budget, existing)
    if dry_run:
        from gpbench.sweep.display import preview

        return preview(words, folders)
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
        board = leaderboards.standing(ids, division, budget=budget, results=stores)
        output.write_table(board, format=format, plain=plain, out=out, json=json)
    except AbsentError as error:
        raise failure or error from None
    if folder == paths.results_dir():
        flags = f" --division {division}" if division != "regression" else ""
        flags += f" --budget {budget}" if budget != 10 else ""
        print(f"gpbench: `gpbench leaderboard --half --with-shipped{flags}` shows it again", file=sys.stderr)
    if failure:
        raise failure
    return 0
