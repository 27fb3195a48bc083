"""`gpbench reproduce`: runs what is missing of a paper's table or figure, and makes it."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.analysis.formats import format_of
from gpbench.cli import options
from gpbench.cli.formatting import HelpFormatter
from gpbench.config.words import LAUNCHER, require_once, word
from gpbench.errors import ConfigError, GpbenchError, either
from gpbench.experiments.definition import PRESETS, Experiment, overrides
from gpbench.experiments.status import Cell

_EPILOG = """\
examples:
  gpbench reproduce sep/table1                            the quick preset: minutes on two cores
  gpbench reproduce sep/table1 --preset full --jobs 2     the paper's splits and sizes
  gpbench reproduce sep/table1 hydra/launcher=slurm       its jobs on a Slurm cluster
  gpbench reproduce sep/fig2 run.time_limit=600           stop at a checkpoint then; run the same command to resume
  gpbench reproduce sep/table1 dataset=heart              one of its data sets
  gpbench reproduce gpbench/leaderboard_regression --preset full run.budget=20    one budget of its three
"""
_OF_JOBS = ("run.", "data.")
"""Beginnings of words that all jobs may have, whatever the experiment says."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "reproduce",
        description="Run what is missing of a paper's table or figure, each job in a process of its own, and make it.",
        formatter_class=HelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("experiment", metavar="ID", help="which: `gpbench ls experiments` lists them")
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="settings of run, data and the launcher, as for gpbench run; or values of a key of the experiment to run,"
        " as in dataset=heart",
    )
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="default: quick")
    parser.add_argument("--jobs", type=int, default=None, metavar="K", help="processes at a time, as run.jobs=K")
    parser.add_argument("--dry-run", action="store_true", help="list the jobs that are not recorded; train nothing")
    options.add_format(parser)
    parser.add_argument("--out", type=Path, default=None, metavar="PATH", help="file for a table, folder for a figure")
    options.add_config_dir(parser, "experiment/, dataset/, method/ and protocol/ files")
    options.add_results_folder(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  What is recorded becomes a table or figure even where jobs failed or were stopped.

    Raises ConfigError, and what a sweep raises: Stopped, SweepError, DivergedError.
    """
    from gpbench.experiments import plan
    from gpbench.records.collection import open_store

    folders = targets.add_folders(args.config_dir)
    settings = _settings(args, folders)
    results = Path(settings["results"])
    experiment, cells = plan.load(args.experiment, args.preset, folders, open_store(results))
    if experiment.table and not experiment.pictures:
        format_of(args.out, args.format)  # refused before the hours of the runs
        options.check_place(args.out)
    failure = None
    selected = _selection(args, experiment, cells)
    if to_run := [cell for cell in selected if cell.missing or settings["again"]]:
        words = [word for word in _of_jobs(args.overrides) if not word.startswith("run.jobs=")]
        words += [_results(results), f"run.preset={args.preset}"]
        jobs = dict.fromkeys(tuple(overrides(cell.job)) for cell in to_run)  # cells of several outputs are one job
        if args.dry_run:
            from gpbench.sweep.display import preview

            return preview([[*job, *words] for job in jobs], folders)
        failure = _launch([[*job, *words] for job in jobs], settings, folders, args.overrides)
        experiment, cells = plan.load(args.experiment, args.preset, folders, open_store(results))
    if any(cell.records for cell in cells):
        try:
            _present(args, experiment, cells, results)
        except ConfigError as error:  # as of ranks without common data sets, where jobs failed
            failure = failure or error
    if failure:
        raise failure
    return 0


def _selection(args: argparse.Namespace, experiment: Experiment, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that agree with the command line, which may choose among values of a key that the experiment sets.

    Raises ConfigError for a key or a value that it has not: runs of others would be no cell's.
    """
    selected = list(cells)
    for text in args.overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{text}: write key=value")
        known = dict.fromkeys(cell.job[key] for cell in cells if key in cell.job)
        if text.startswith(_OF_JOBS + LAUNCHER) and len(known) < 2 and key != "run.budget":
            continue
        values = [value] if value.startswith("[") else value.split(",")
        if unknown := [value for value in values if value not in known]:
            fault = f"has {key}={either(known)}" if known else f"has no {key.removeprefix('run.')}"
            full = dict.fromkeys(job[key] for job in experiment.jobs(PRESETS[-1]) if key in job)
            if unknown[0] in full:
                fault += f"; --preset {PRESETS[-1]} has {either(full)}"
            elif key != "run.budget":
                fault += (
                    ": choose one of these, or run others by `gpbench run -m`"
                    if known
                    else "; `gpbench run -m` runs others"
                )
            raise ConfigError(f"{text}: preset {args.preset} of {args.experiment} {fault}")
        selected = [cell for cell in selected if key not in cell.job or cell.job[key] in values]
    if not selected:
        raise ConfigError(f"{' '.join(args.overrides)}: preset {args.preset} of {args.experiment} has none of these")
    return selected


def _present(args: argparse.Namespace, experiment: Experiment, cells: Sequence[Cell], results: Path) -> None:
    """Shows the table of the experiment and draws its figures."""
    if experiment.table:
        from gpbench.analysis import experiment as reports
        from gpbench.cli.options import write_sheet

        out = args.out if not experiment.pictures else None
        write_sheet(reports.table(experiment, args.preset, cells), args, out)
    if experiment.pictures:
        from gpbench.cli.plot import plot, say
        from gpbench.records import open_store

        say(
            plot(experiment, args.preset, cells, open_store(results), args.out or results),
            () if experiment.table else cells,
        )


def _settings(args: argparse.Namespace, folders: Sequence[Path]) -> dict[str, Any]:
    """The `run` section of the configuration, with what the command line says."""
    from gpbench.config.compose import compose

    options = [f"run.jobs={args.jobs}"] if args.jobs is not None else []
    options += [_results(args.results)] if args.results else []
    require_once([*args.overrides, *options, f"run.preset={args.preset}"], "")
    return compose([*_of_jobs(args.overrides), *options], folders)["run"]


def _launch(
    jobs: Sequence[Sequence[str]], settings: dict[str, Any], folders: Sequence[Path], words: Sequence[str]
) -> GpbenchError | None:
    """Runs the jobs as a sweep does, where these words say; what went wrong, if anything, for later."""
    from gpbench.sweep.jobs import Jobs
    from gpbench.sweep.launcher import chosen_launcher

    launchers = [text for text in words if text.startswith(LAUNCHER)]
    sweep = Jobs(folders, settings, *chosen_launcher(launchers, folders))
    sweep.launch(jobs)
    try:
        sweep.conclude()
    except GpbenchError as error:
        return error
    return None


def _of_jobs(words: Sequence[str]) -> list[str]:
    """The words for each job; the others say which jobs, and where they run."""
    return [word for word in words if word.startswith(_OF_JOBS)]


def _results(folder: Path) -> str:
    return f"run.results={word(paths.expanded(folder).resolve())}"
