"""`gpbench run`: one job in this process, or with -m many jobs, each in a process of its own."""

import contextlib
import shlex
import sys
from collections.abc import Sequence
from json import dumps, loads
from pathlib import Path

from gpbench import paths, yamls
from gpbench.api.runs import Runs
from gpbench.api.training import require_one_job, train_here
from gpbench.api.words import with_cards
from gpbench.cli.plot import plot_run
from gpbench.cli.recorded import inputs_line
from gpbench.config.compose import compose
from gpbench.config.values import Config
from gpbench.config.words import require_once
from gpbench.errors import ConfigError, DivergedError, as_word, printable, refuse, require
from gpbench.log import is_quiet
from gpbench.records.absences import divergence
from gpbench.records.locks import claim
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.sweep import local

_DERIVED = ("implied", "changes", "explicit", "config_dirs")
"""Sections of a resolved configuration that no command line sets."""


def run(
    *overrides: str,
    multirun: bool = False,
    config_dir: Sequence[Path] = (),
    cfg: bool = False,
    dry_run: bool = False,
    plot: str | None = None,
    json: bool = False,
    plan: bool = False,
) -> int:
    """Train a method on splits of a data set, score it on the test rows, and record the result.

    Args:
        overrides (KEY=VALUE): settings in the place of defaults
        multirun: sweep: one job for each combination of a,b,c
        config_dir: a folder with your own dataset/, method/ and protocol/ files, and the modules they name
        cfg: print the resolved configuration and do nothing
        dry_run: list the jobs, what is recorded of them, and what they would train
        plot (A,B): then draw pictures of the first run, of these kinds or all (gpbench plot)
        json: print JSON: the records

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
    texts = list(overrides)
    if plan:  # of a job of a sweep, which has no words
        whole = RunPlan.from_json(sys.stdin.buffer.read())
        return _train(whole.cfg, whole, None, json)
    if cfg and "job" in texts:  # as Hydra's --cfg job
        texts.remove("job")
    require_once(texts, "" if multirun else " and add -m")
    texts, folders = with_cards(texts, config_dir)
    _check_options(multirun, cfg, dry_run, plot, json)
    if multirun:
        from gpbench.sweep.launcher import sweep

        return sweep(texts, folders, dry=dry_run)
    if dry_run:
        from gpbench.sweep.display import preview

        return preview([texts], folders)
    config = compose(texts, folders)
    if cfg:
        # as JSON first: a value that two sections share is written twice, without YAML's anchors
        text = dumps({key: value for key, value in config.items() if key not in _DERIVED})
        print(yamls.dump(loads(text), allow_unicode=True), end="")
        return 0
    require_one_job(config)
    return _train(config, None, plot, json)


def _train(config: Config, plan: RunPlan | None, plot: str | None, json: bool) -> int:
    """Trains what is missing of a configuration, or of a job's plan, and prints the results."""
    several = local.needs_several(config["run"])
    fault = "--plot is for runs of one process: leave it out; `gpbench plot RUN --kind A,B` draws later"
    require(not (plot and several), fault, ConfigError)
    if not (json or plan) and config["run"]["progress"] and sys.stderr.isatty() and not is_quiet():
        print(_title(config), file=sys.stderr, flush=True)  # before JAX, which takes seconds to import
    if several:
        whole = plan or RunPlan.from_config(config)
        with claim(whole.results, [run.id for run in whole.missing(Store(whole.results))]):
            return local.run_several(whole, json=json)
    # what a method of the user prints stands beside the JSON, not in it
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        runs = train_here(config, plan)
    if not runs:  # another process of this run speaks for it
        return 0
    if json:
        print(dumps({"records": [record.to_json() for record in runs], "already": runs.recorded_before}))
    else:
        if line := inputs_line(runs[0], config):
            print(line)
        print(runs)
        if plot:
            print(*plot_run(Store(runs.results), runs[0], plot, runs.results)[0], sep="\n")
        if config["run"]["progress"] and sys.stdout.isatty():
            print(_next(config, runs))
    if message := divergence(runs):
        raise DivergedError(message)
    return 0


def _check_options(multirun: bool, cfg: bool, dry_run: bool, plot: str | None, json: bool) -> None:
    """Raises ConfigError for options that do not go together, and for a kind of picture of which there is none."""
    listing = "--cfg" if cfg else "--dry-run"
    unread = "--dry-run" if cfg and dry_run else "--json" if json else "--plot" if plot else ""
    others = "`gpbench plot RUN --kind A,B` draws others"
    refuse(
        "",
        (plot and (multirun or json), f"--plot is for one job, without -m and --json; {others}"),
        (multirun and json, "--json is for one job, without -m; `gpbench ls runs --json` lists the records of a sweep"),
        ((cfg or dry_run) and unread, f"{unread}: {listing} trains nothing; leave {unread} out"),
        (multirun and cfg, "--cfg is for one job, without -m; --dry-run lists the jobs of a sweep"),
    )
    if plot and plot != "all":
        from gpbench.report.figures import offers

        for kind in plot.split(","):
            offers.check_kind(kind)


def _title(cfg: Config) -> str:
    split = dumps(cfg["split"], separators=(",", ":")).strip('"')
    changes = [f"{key}={as_word(value)}" for key, value in cfg["changes"].items()]
    words = [f"split={split}", *([f"seed={cfg['seed']}"] if cfg["seed"] else []), *changes]
    method = cfg["method"].get("name") or str(cfg["method"].get("_target_")).rpartition(".")[2]
    names = f"{method} on {cfg['dataset'].get('name')}, protocol {cfg['protocol'].get('name')}"
    return printable(f"{names}: {' '.join(words)}")


def _next(cfg: Config, runs: Runs) -> str:
    """A command that shows more of what was run: one run in full, or several in a table."""
    verb = "show --last" if len(runs) == 1 else f"table --dataset {shlex.quote(str(cfg['dataset']['name']))}"
    if runs.results.resolve() != paths.results_dir().resolve():
        verb += f" --results {shlex.quote(str(runs.results))}"
    return f"next: gpbench {verb}"
