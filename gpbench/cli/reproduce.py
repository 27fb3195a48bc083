"""`gpbench reproduce`: runs what is missing of a paper's table or figure, and makes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gpbench import paths
from gpbench.analysis.formats import format_of
from gpbench.cli.output import check_place, write_sheet
from gpbench.cli.plot import save_figures, summary
from gpbench.config.compose import compose
from gpbench.config.words import LAUNCHER, require_once, word
from gpbench.errors import ConfigError, GpbenchError, either, require
from gpbench.experiments.definition import PRESETS, Experiment, read
from gpbench.experiments.definition import overrides as job_words
from gpbench.experiments.plan import Cell

_OF_JOBS = ("run.", "data.")  # beginnings of words that all jobs may have, whatever the experiment says


def reproduce(
    experiment: str,
    *overrides: str,
    preset: Literal["quick", "full"] = "quick",
    jobs: int | None = None,
    dry_run: bool = False,
    format: str | None = None,
    plain: bool = False,
    out: Path | None = None,
    config_dir: Sequence[Path] = (),
    results: Path | None = None,
) -> int:
    """Run what is missing of a paper's table or figure, each job in a process of its own, and make it.

    What is recorded becomes a table or figure even where jobs failed or were stopped.

    Args:
        experiment (ID): which: `gpbench ls experiments` lists them
        overrides (KEY=VALUE): settings of run, data and the launcher, as for gpbench run; or values of a key of the
            experiment to run, as in dataset=heart
        preset: default: quick
        jobs (K): processes at a time, as run.jobs=K
        dry_run: list the jobs that are not recorded; train nothing
        out (PATH): file for a table, folder for a figure
        config_dir: a folder with your own experiment/, dataset/, method/ and protocol/ files

    examples:
      gpbench reproduce sep/table1                            the quick preset: minutes on two cores
      gpbench reproduce sep/table1 --preset full --jobs 2     the paper's splits and sizes
      gpbench reproduce sep/table1 hydra/launcher=slurm       its jobs on a Slurm cluster
      gpbench reproduce sep/fig2 run.time_limit=600           stop at a checkpoint then; run the same command to resume
      gpbench reproduce sep/table1 dataset=heart              one of its data sets
    """
    from gpbench.analysis import experiment as reports
    from gpbench.experiments import plan
    from gpbench.records.collection import open_store
    from gpbench.sweep.display import preview
    from gpbench.sweep.jobs import Jobs
    from gpbench.sweep.launcher import chosen_launcher

    shared = [*([f"run.jobs={jobs}"] if jobs is not None else []), *([_results(results)] if results else [])]
    require_once([*overrides, *shared, f"run.preset={preset}"], "")
    of_jobs = [text for text in overrides if text.startswith(_OF_JOBS)]
    settings = compose([*of_jobs, *shared], config_dir)["run"]
    store = open_store(Path(settings["results"]))
    definition = read(experiment, config_dir)
    cells = plan.plan(definition, preset, plan.Planner(config_dir), store)
    is_file = definition.table and not definition.pictures
    if is_file:
        format_of(out, format)  # refused before the hours of the runs
        check_place(out)
    failure: GpbenchError | None = None
    selected = _selection(overrides, preset, definition, cells)
    if to_run := [cell for cell in selected if cell.missing or settings["again"]]:
        words = [text for text in of_jobs if not text.startswith("run.jobs=")]
        words += [_results(Path(settings["results"])), f"run.preset={preset}"]
        # cells of several outputs are one job
        listed = [[*job, *words] for job in dict.fromkeys(tuple(job_words(cell.job)) for cell in to_run)]
        launcher = chosen_launcher([text for text in overrides if text.startswith(LAUNCHER)], config_dir)
        if dry_run:
            return preview(listed, config_dir)
        sweep = Jobs(config_dir, settings, *launcher)
        sweep.launch(listed)
        try:
            sweep.conclude()
        except GpbenchError as error:  # what is recorded is shown first
            failure = error
        cells = plan.plan(definition, preset, plan.Planner(config_dir), store)
    if any(cell.records for cell in cells):
        try:
            if definition.table:
                write_sheet(reports.table(definition, preset, cells), format, plain, out if is_file else None)
            if definition.pictures:
                folder = out or Path(settings["results"])
                files = save_figures(definition, preset, cells, store, folder)
                print(summary(files, () if definition.table else cells))
        except ConfigError as error:  # as of ranks without common data sets, where jobs failed
            failure = failure or error
    if failure:
        raise failure
    return 0


def _selection(words: Sequence[str], preset: str, experiment: Experiment, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that agree with words, which choose among values of a key that the experiment sets, and no others."""
    selected = list(cells)
    for text in words:
        key, equals, value = text.partition("=")
        require(equals, f"{text}: write key=value", ConfigError)
        known = dict.fromkeys(cell.job[key] for cell in cells if key in cell.job)
        if text.startswith(_OF_JOBS + LAUNCHER) and len(known) < 2:
            continue
        values = [value] if value.startswith("[") else value.split(",")
        if unknown := [value for value in values if value not in known]:
            fault = f"has {key}={either(known)}" if known else f"has no {key.removeprefix('run.')}"
            full = dict.fromkeys(job[key] for job in experiment.jobs(PRESETS[-1]) if key in job)
            if unknown[0] in full:
                fault += f"; --preset {PRESETS[-1]} has {either(full)}"
            else:
                others = ": choose one of these, or run others by `gpbench run -m`"
                fault += others if known else "; `gpbench run -m` runs others"
            raise ConfigError(f"{text}: preset {preset} of {experiment.id} {fault}")
        selected = [cell for cell in selected if key not in cell.job or cell.job[key] in values]
    require(selected, f"{' '.join(words)}: preset {preset} of {experiment.id} has none of these", ConfigError)
    return selected


def _results(folder: Path) -> str:
    return f"run.results={word(paths.expanded(folder).resolve())}"
