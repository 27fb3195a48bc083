"""Training from Python: `run` is one job, `multirun` one for each combination of values; both return `Runs`."""

import itertools
import threading
import time
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from gpbench import runtime
from gpbench.api.runs import Runs
from gpbench.api.words import Folders, folders, with_cards, with_results, words
from gpbench.arguments import checked
from gpbench.config.compose import Composer, compose
from gpbench.config.values import Config, Run
from gpbench.config.words import GROUPS, require_once, word
from gpbench.errors import ConfigError, DivergedError, GpbenchError, require
from gpbench.records.absences import divergence
from gpbench.records.collection import open_store
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store

_POLL_S = 0.05


@checked
def run(
    *, overrides: Iterable[str] = (), config_dir: Folders = (), results: str | PathLike[str] | None = None, **keys: Any
) -> Runs:
    """Trains a method on splits of a data set, scores it on the test rows and records the result.

    The same as `gpbench run`: a run that is recorded is not trained again, and one that was stopped is resumed from its
    last checkpoint.

        runs = gpbench.run(method="sep", dataset="moons", split=[0, 1], method__inducing=20, run__save=True)

    Args:
        overrides: words as on the command line, such as "method.inducing=0.25".
        config_dir: folders with dataset/, method/ and protocol/ files of yours, and the modules that they name.
        results: the results folder; by default `GPBENCH_RESULTS`, or results/ here.
        **keys: the keys of the command line with their values; `gpbench run --cfg` shows all.  Two underscores stand
            for a dot: `method__inducing=0.25`, `run__save=True`, `run__again=True`.  Lists are lists: `split=[0, 3]`.
            `optional__method__inducing=0.25` sets a key only where the method has it.

    Returns:
        The runs, including those that were recorded before.

    Raises:
        ConfigError: a name, key or value is wrong.
        DataError: the data are missing or damaged.
        DivergedError: the objective of a run stopped being finite; the attribute `runs` has all of them.
        Stopped: interrupted, or `run.time_limit` is over; the same call resumes.
        ClaimedError: another process trains one of these runs.

    Training happens in this process where JAX can be set up for it, and otherwise in one of its own: outside the main
    thread, with `run.processes`, `run.cores`, `run.memory_fraction` or `run.cpu_limit`, or with JAX set up otherwise.
    """
    from gpbench.train import session

    _require_names(keys)
    for group in GROUPS:
        value = keys.get(group)
        is_one = isinstance(value, str | Mapping) or not isinstance(value, Iterable)
        require(is_one, f"{group} has several values, which is a sweep: call gpbench.multirun", ConfigError)
    texts, config_dirs = with_cards(words(with_results(keys, overrides, results), overrides), folders(config_dir))
    cfg = compose(texts, config_dirs)
    require_one_job(cfg)
    in_process = _trains_here(cfg["run"])
    if in_process:
        session.configure(cfg["run"])  # before a plan imports NumPy
    plan = RunPlan.from_config(cfg)
    recorded = plan.recorded(Store(plan.results))
    if len(recorded) == len(plan.runs):
        runs = Runs(recorded.values(), plan.results, len(recorded))
    else:
        runs = train_here(cfg, plan) if in_process else _train_in_child(plan, len(recorded))
    if message := divergence(runs):
        error = DivergedError(message)
        error.runs = runs
        raise error
    return runs


def _require_names(keys: Mapping[str, Any]) -> None:
    """Raises ConfigError where a table stands in the place of its path."""
    for group in GROUPS:
        fault = f"{group} is a DataFrame: give the path of a table, or use gpbench.Regressor or Classifier"
        require(not hasattr(keys.get(group), "columns"), fault, ConfigError)


def require_one_job(cfg: Config) -> None:
    """Raises ConfigError for a configuration that asks for several processes of a sweep, but is of one job."""
    jobs = cfg["run"]["jobs"]
    fault = f"run.jobs={jobs}: these are the processes of a sweep: add -m, or leave the word out"
    require(jobs == 1, fault, ConfigError)


@checked
def multirun(
    *,
    jobs: int = 1,
    overrides: Iterable[str] = (),
    config_dir: Folders = (),
    results: str | PathLike[str] | None = None,
    **keys: Any,
) -> Runs:
    """Trains one job for each combination of values, each in a process of its own, as `gpbench run -m` does.

        gpbench.multirun(method=["logistic", "constant"], dataset=["wdbc", "moons"], split=[0, 1], jobs=2)

    Args:
        jobs: the number of processes at a time.
        overrides: words for every job.
        config_dir, results: as for `run`.
        **keys: as for `run`, but a list is one job for each of its values.  A list of `split` or `output` is one value,
            as for `run`: the splits of one configuration are one job.

    Returns:
        The runs of all jobs.

    Raises:
        ConfigError: a job has a wrong name, key or value; no job has started.
        SweepError: some jobs failed; the others are recorded.
        DivergedError, Stopped: as for `run`.
    """
    from gpbench.experiments.plan import plans
    from gpbench.sweep.jobs import Jobs
    from gpbench.sweep.launcher import chosen_launcher

    _require_names(keys)
    config_dirs, texts = folders(config_dir), list(overrides)
    choices = {key: _words_of_choices(key, value) for key, value in with_results(keys, texts, results).items()}
    tables = [*choices.get("dataset", ()), *choices.get("target", ())]
    data, config_dirs = with_cards(tables, config_dirs)
    if data != tables:  # whose cards may be several
        choices["dataset"] = [f"dataset={name}" for text in data for name in text.partition("=")[2].split(",")]
        choices.pop("target", None)
    common = [text for text in texts if not text.startswith("hydra")]
    listed = [[*job, *common] for job in itertools.product(*choices.values())]
    require_once([*listed[0], f"run.jobs={word(jobs)}"])
    settings = [text for text in listed[0] if text.startswith(("run.", "data."))]
    cfg = compose([*settings, f"run.jobs={word(jobs)}"], config_dirs)
    launcher = chosen_launcher([text for text in texts if text.startswith("hydra")], config_dirs)
    listed, lines = Composer(config_dirs).applicable(listed)
    print("\n".join([*lines, ""]), end="")
    sweep = Jobs(config_dirs, cfg["run"], *launcher)
    sweep.launch(listed)
    sweep.conclude()
    records: dict[str, Record] = {}
    for plan in plans(listed, config_dirs):
        assert isinstance(plan, RunPlan)  # else a job had failed
        records |= plan.with_run(again=False).recorded(open_store(plan.results))
    return Runs(records.values(), cfg["run"]["results"])


def _words_of_choices(key: str, value: Any) -> list[str]:
    """A word for each value in a list, or the one word of another value.  Raises ConfigError for an empty list."""
    several = isinstance(value, Iterable) and not isinstance(value, str | Mapping) and key not in ("split", "output")
    values = list(value) if several else [value]
    require(values, f"{key}=[]: give at least one value", ConfigError)
    return [text for choice in values for text in words({key: choice})]


def train_here(cfg: Config, plan: RunPlan | None = None) -> Runs:
    """The runs of a configuration, trained here where they are missing; of several processes the first has them."""
    from gpbench.train import session
    from gpbench.train.stop import StopRequest

    with StopRequest(cfg["run"]["time_limit"]) as stop:
        session.configure(cfg["run"])
        plan = plan or RunPlan.from_config(cfg)
        records, recorded_before = session.train(plan, store=Store(plan.results), stop=stop)
    return Runs(records, plan.results, recorded_before)


def _trains_here(run: Run) -> bool:
    """True if this process can train with these settings: JAX has them, or is not imported yet."""
    own = run["processes"] != 1 or any(run[key] is not None for key in ("cores", "memory_fraction", "cpu_limit"))
    in_main_thread = threading.current_thread() is threading.main_thread()  # the only one that can handle signals
    return in_main_thread and not own and runtime.can_configure(run["device"], run["devices"] or 1)


def _train_in_child(plan: RunPlan, recorded_before: int) -> Runs:
    """Trains the missing runs of a plan in a process of its own.  Raises the error that the process printed."""
    from gpbench.sweep.local import Child
    from gpbench.train.stop import StopRequest

    with StopRequest() as stop:
        child = Child([], [f"--config-dir={folder}" for folder in plan.cfg["config_dirs"]], {}, plan=plan)
        while not (child.ended() or stop.reason):
            time.sleep(_POLL_S)
        if stop.reason:
            child.terminate()
        outcome, code = child.outcome(), child.process.wait()
    if code not in (0, DivergedError.exit_code):
        kinds = {kind.exit_code: kind for kind in GpbenchError.__subclasses__()}
        raise kinds.get(code, GpbenchError)(outcome.text)
    records = plan.with_run(again=False).recorded(Store(plan.results))
    if len(records) < len(plan.runs):
        raise GpbenchError(outcome.text)
    return Runs(records.values(), plan.results, recorded_before)
