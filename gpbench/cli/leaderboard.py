"""`gpbench leaderboard`: methods within a budget of seconds, and the place of one's own among them."""

import argparse
import sys
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.api import leaderboards
from gpbench.cli import options
from gpbench.cli.formatting import HelpFormatter
from gpbench.errors import AbsentError, ConfigError, DivergedError, SweepError, nearest
from gpbench.records.collection import SUFFIX
from gpbench.records.unions import SHIPPED

_ACTIONS = ("show", "add")

_EPILOG = """\
examples:
  gpbench leaderboard                                           regression within 10 seconds of two cores
  gpbench leaderboard --division classification --out board.png
  gpbench leaderboard add method=mine --config-dir mine         train it on half of the data sets; its place there
  gpbench leaderboard add method=svi method.inducing=50         a setting of yours of a method of gpbench's
  gpbench leaderboard add method=mine run.again=true            make its runs again, after a change of its code

The rules: docs/reference/leaderboard.md
"""


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "leaderboard",
        description="Scores of methods within a budget of seconds of two cores, with intervals over data sets; or with"
        " `add`: train a method on half of the data sets, and show its place.",
        formatter_class=HelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("action", nargs="?", default="show", metavar="show|add", help="default: show")
    parser.add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help="of add: method and settings")
    parser.add_argument(
        "--division", default="regression", metavar="NAME", help="regression (default) or classification"
    )
    parser.add_argument(
        "--budget", type=int, default=10, metavar="S", help="10 (default), 60 or 600 seconds of two cores"
    )
    parser.add_argument("--half", action="store_true", help="only the data sets on which new methods are placed")
    parser.add_argument("--jobs", type=int, default=None, metavar="K", help="of add: processes at a time (default: 1)")
    parser.add_argument("--dry-run", action="store_true", help="of add: list the jobs and what is recorded of them")
    options.add_config_dir(parser, "method/ files, and the modules they name, for add")
    options.add_output(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises what `gpbench.leaderboard` and a sweep raise."""
    if args.action not in _ACTIONS:
        raise ConfigError(f"no action {args.action!r} of the leaderboard; {nearest(args.action, _ACTIONS)}")
    options.check_output(args)
    if args.action == "add":
        return _add(args)
    if args.overrides:
        raise ConfigError(
            f"{args.overrides[0]}: `gpbench leaderboard show` trains nothing; add {args.overrides[0]} does"
        )
    if options_of_add := ["--dry-run"] * args.dry_run + ["--jobs"] * (args.jobs is not None):
        text = "`gpbench leaderboard show` trains nothing; `gpbench leaderboard add` has it"
        raise ConfigError(f"{options_of_add[0]}: {text}")
    board = leaderboards.leaderboard(args.division, budget=args.budget, half=args.half, results=options.results(args))
    options.write_table(args, board)
    return 0


def _add(args: argparse.Namespace) -> int:
    """Trains a method on the half of the data sets, and shows its place there."""
    from gpbench.experiments.plan import plans
    from gpbench.records.plan import RunPlan
    from gpbench.sweep.jobs import Jobs

    folders = targets.add_folders(args.config_dir)
    results = options.results_folder(args)
    if results.suffix == SUFFIX:
        raise ConfigError(f"--results {results}: runs are recorded in a folder: name one, and --with-shipped")
    jobs = leaderboards.jobs(args.division, args.budget, args.overrides, results)
    planned = [plan for plan in plans(jobs, folders) if isinstance(plan, RunPlan)]
    ids, shared = [run.id for plan in planned for run in plan.runs], planned[0].cfg["run"]
    sweep = Jobs(folders, {**shared, "jobs": 1 if args.jobs is None else args.jobs})
    stores = options.results(args) or [results, *([SHIPPED] if paths.shipped_files() else [])]
    existing = [item for item in stores if item == SHIPPED or Path(item).exists()]
    leaderboards.require_others(ids, args.division, args.budget, existing)
    if args.dry_run:
        from gpbench.sweep.display import preview

        return preview(jobs, folders)
    most = shared["budget"]
    print(
        f"gpbench: {len(ids)} runs of at most {most:g} CPU seconds, {len(ids) * most / 60:.0f} minutes", file=sys.stderr
    )
    sweep.launch(jobs)
    failure: SweepError | None = None
    try:
        sweep.conclude()
    except DivergedError:  # lost runs count
        pass
    except SweepError as error:  # its runs are not made: the place is without them
        failure = error
    try:
        options.write_table(args, leaderboards.standing(ids, args.division, budget=args.budget, results=stores))
    except AbsentError as error:
        raise failure or error from None
    if args.results is None:
        words = f" --division {args.division}" * (args.division != "regression")
        words += f" --budget {args.budget}" * (args.budget != 10)
        print(f"gpbench: `gpbench leaderboard --half --with-shipped{words}` shows it again", file=sys.stderr)
    if failure:
        raise failure
    return 0
