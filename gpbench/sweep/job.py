"""A job of a sweep: the words that name it, and the plan of its runs."""

from dataclasses import dataclass

from gpbench.records import locks
from gpbench.records.collection import open_store
from gpbench.records.plan import RunPlan
from gpbench.sweep import outcome
from gpbench.sweep.outcome import Outcome


@dataclass
class Job:
    """A job that is not done.  `plan` is None where its runs are unknown: its own process then says why.

    `not_before` is when it may start next, by the monotonic clock; `stops`, how often it was stopped.
    """

    overrides: list[str]
    plan: RunPlan | None
    not_before: float = 0.0
    stops: int = 0

    def finished(self) -> Outcome | None:
        """Its outcome, if all its runs are recorded."""
        if self.plan is None:
            return None
        records = list(self.plan.recorded(open_store(self.plan.results)).values())
        return outcome.recorded_before(self.overrides, records) if len(records) == len(self.plan.runs) else None

    def claimed(self) -> bool:
        """Whether another process trains one of its runs."""
        if self.plan is None:
            return False
        missing = self.plan.missing(open_store(self.plan.results))
        return any(locks.holder(self.plan.results, run.id) for run in missing)

    def limited(self, seconds: float | None) -> "Job":
        """The same with another time limit, None for none."""
        words = [word for word in self.overrides if not word.startswith("run.time_limit=")]
        words += [] if seconds is None else [f"run.time_limit={seconds:.3f}"]
        return Job(words, self.plan and self.plan.with_run(time_limit=seconds))
