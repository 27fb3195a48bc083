"""`gpbench run --dry-run`: which jobs a command line is made of, and what it would train."""

from collections.abc import Sequence
from pathlib import Path

from gpbench.errors import SweepError
from gpbench.experiments.plan import plans
from gpbench.records import locks
from gpbench.records.collection import open_store
from gpbench.records.plan import RunPlan
from gpbench.sweep.display import Lines


def preview(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path]) -> int:
    """Prints a line for each job (a list of overrides) and how many runs are to train; trains and writes nothing.

    Raises ConfigError where any job cannot be composed, SweepError where the runs of some are unknown.
    """
    view = Lines(jobs)
    train, failed = 0, 0
    for words, plan in zip(jobs, plans(jobs, config_dirs), strict=True):
        if isinstance(plan, RunPlan):
            missing, text = _state(plan)
            train += missing
        else:
            failed, text = failed + 1, f"fails: {' '.join(str(plan).split())}"
        view.print(f"{text}  {view.label(words) if len(jobs) > 1 else ' '.join(words)}".rstrip())
    print(f"{_counted(len(jobs), 'job')}; {_counted(train, 'run')} to train")
    if failed:
        raise SweepError(f"{failed} of {len(jobs)} jobs would fail, as listed above")
    return 0


def _state(plan: RunPlan) -> tuple[int, str]:
    """How many runs of a plan are not recorded, and the same in words."""
    runs, missing = plan.runs, plan.missing(open_store(plan.results))
    if not missing:
        return 0, f"recorded  {_counted(len(runs), 'run')}"
    held = sum(bool(locks.holder(plan.results, run.id)) for run in missing)
    busy = f", {held} by another process" * bool(held)
    return len(missing), f"to train  {len(missing)} of {_counted(len(runs), 'run')}{busy}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
