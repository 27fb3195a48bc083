"""`gpbench run`: one job in this process, or with -m many jobs, each in a process of its own."""

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from gpbench import paths, yamls
from gpbench.api import words
from gpbench.api.runs import Runs
from gpbench.api.training import require_one_job, train_here
from gpbench.api.words import composed
from gpbench.cli import options
from gpbench.cli.formatting import HelpFormatter
from gpbench.cli.plot import check_kinds, plot_run
from gpbench.cli.show import inputs_line
from gpbench.config.words import require_once
from gpbench.errors import ConfigError, DivergedError, as_word, printable
from gpbench.records.absences import divergence
from gpbench.records.locks import claim
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.sweep import processes

_DERIVED = ("implied", "changes", "explicit", "config_dirs")
"""Sections of a resolved configuration that no command line sets."""

_EPILOG = """\
main keys (gpbench run --cfg shows all, with their values):
  dataset=NAME method=NAME protocol=NAME   `gpbench ls datasets`, `ls methods`, `ls protocols` list them
  dataset=PATH.csv target=COLUMN           a table of yours: writes a card beside it; or dataset=openml:NUMBER
  split=0 | split=[0,3] | split=all        which train/test splits
  optional.method.KEY=VALUE                the same, only for the methods of a sweep that have the key
  seed=0                                   randomness of the method
  method.KEY=VALUE protocol.KEY=VALUE      any setting of the method and the protocol
  run.time_limit=SECONDS                   stop at a checkpoint then (exit code 75); rerun to resume
  run.jobs=K                               processes of a sweep at a time
  hydra/launcher=slurm                     jobs of a sweep on a Slurm cluster (docs/how-to/sweeps.md)
  run.again=true                           train recorded runs again
  run.save=true                            save the trained state, for gpbench predict
  run.devices=K run.processes=P            shard the rows across devices, of one process or of several
  run.results=DIR run.device=cpu|gpu       where records go; where to compute

examples:
  gpbench run                                          sep on wdbc, split 0
  gpbench run dataset=pima method.inducing=0.25 split=all
  gpbench run -m dataset=pima,wdbc split=0,1,2 run.jobs=2
  gpbench run dataset=moons run.keep=true --plot all
  gpbench run --config-dir mine dataset=mydata method=mymethod
"""


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "run",
        description="Train a method on splits of a data set, score it on the test rows, and record the result.",
        formatter_class=HelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="KEY=VALUE", help="settings in the place of defaults"
    )
    parser.add_argument("-m", "--multirun", action="store_true", help="sweep: one job for each combination of a,b,c")
    options.add_config_dir(parser, "dataset/, method/ and protocol/ files, and the modules they name")
    parser.add_argument("--cfg", action="store_true", help="print the resolved configuration and do nothing")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the jobs, what is recorded of them, and what they would train"
    )
    parser.add_argument(
        "--plot", metavar="A,B", help="then draw pictures of the first run, of these kinds or all (gpbench plot)"
    )
    options.add_json(parser, "the records")
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)  # of a sweep: its plan is on stdin
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError, DivergedError, Stopped, SweepError."""
    if args.cfg and "job" in args.overrides:  # as Hydra's --cfg job
        args.overrides.remove("job")
    if not args.plan:
        require_once(args.overrides, "" if args.multirun else " and add -m")
    args.overrides, folders = words.with_cards(args.overrides, words.folders(args.config_dir))
    if args.plot and (args.multirun or args.json):
        raise ConfigError("--plot is for one job, without -m and --json; `gpbench plot RUN --kind A,B` draws others")
    if args.plot:
        check_kinds(args.plot)
    if args.multirun and args.json:
        raise ConfigError("--json is for one job, without -m; `gpbench ls runs --json` lists the records of a sweep")
    listing = "--cfg" if args.cfg else "--dry-run" if args.dry_run else ""
    others = {"--dry-run": args.cfg and args.dry_run, "--json": args.json, "--plot": args.plot}
    if listing and (unread := [option for option, value in others.items() if value]):
        raise ConfigError(f"{unread[0]}: {listing} trains nothing; leave {unread[0]} out")
    if args.multirun and args.cfg:
        raise ConfigError("--cfg is for one job, without -m; --dry-run lists the jobs of a sweep")
    if args.multirun:
        from gpbench.sweep.launcher import sweep

        return sweep(args.overrides, folders, dry=args.dry_run)
    if args.dry_run and not args.cfg:
        from gpbench.sweep.display import preview

        return preview([args.overrides], folders, sweep=False)
    plan = RunPlan.from_json(sys.stdin.buffer.read()) if args.plan else None
    cfg = plan.cfg if plan else composed(args.overrides, folders)
    if args.cfg:
        settings = {key: value for key, value in cfg.items() if key not in _DERIVED}
        text = json.dumps(settings)  # a value that two sections share is written twice, without YAML's anchors
        print(yamls.dump(json.loads(text), allow_unicode=True), end="")
        return 0
    if not plan:
        require_one_job(cfg)
    if args.plot and processes.needed(cfg["run"]):
        raise ConfigError("--plot is for runs of one process: leave it out; `gpbench plot RUN --kind A,B` draws later")
    if not (args.json or plan) and cfg["run"]["progress"] and sys.stderr.isatty():
        print(_title(cfg), file=sys.stderr, flush=True)  # before JAX, which takes seconds to import
    if processes.needed(cfg["run"]):
        plan = RunPlan.from_config(cfg)
        with claim(plan, Store(plan.results)):
            return processes.run(plan, json=args.json)
    # what a method of the user prints stands beside the JSON, not in it
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        runs = train_here(cfg, plan)
    if not runs:  # another process of this run speaks for it
        return 0
    if args.json:
        print(json.dumps({"records": [record.to_json() for record in runs], "already": runs.recorded_before}))
    else:
        if line := inputs_line(runs[0], cfg):
            print(line)
        _report(runs)
        if args.plot:
            print(*plot_run(Store(runs.results), runs[0], args.plot, runs.results)[0], sep="\n")
        if cfg["run"]["progress"] and sys.stdout.isatty():
            print(_next(cfg, runs))
    if message := divergence(runs):
        raise DivergedError(message)
    return 0


def _title(cfg: Mapping[str, Any]) -> str:
    """What a configuration runs, in a line."""
    split = json.dumps(cfg["split"], separators=(",", ":")).strip('"')
    changes = [f"{key}={as_word(value)}" for key, value in cfg["changes"].items()]
    words = [f"split={split}", *([f"seed={cfg['seed']}"] if cfg["seed"] else []), *changes]
    method = cfg["method"].get("name") or str(cfg["method"].get("_target_")).rpartition(".")[2]
    names = f"{method} on {cfg['dataset'].get('name')}, protocol {cfg['protocol'].get('name')}"
    return printable(f"{names}: {' '.join(words)}")


def _next(cfg: Mapping[str, Any], runs: Runs) -> str:
    """A command that shows more of what was run: one run in full, or several in a table."""
    verb = "show --last" if len(runs) == 1 else f"table --dataset {shlex.quote(str(cfg['dataset']['name']))}"
    own = runs.results.resolve() != paths.results_dir().resolve()
    return f"next: gpbench {verb}" + f" --results {shlex.quote(str(runs.results))}" * own


def _report(runs: Runs) -> None:
    """Prints each metric's mean ± standard error over the splits, the seconds, and the results folder."""
    if not sys.stdout.isatty():
        print(runs)
        return
    from rich.console import Console
    from rich.table import Table

    for title, rows in runs.blocks():
        table = Table(show_header=False)
        for row in rows:
            table.add_row(*row)
        print(title)
        Console().print(table)
    print(runs.footer)
