"""One job of a sweep, and its outcome, judged from how its `gpbench run` ended or from the records there are."""

import json
import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gpbench.errors import ClaimedError, DivergedError, Stopped
from gpbench.records import locks
from gpbench.records.absences import absences, absences_text, divergence
from gpbench.records.collection import open_store
from gpbench.records.plan import Run, RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store

RECORDED = {"diverged": "diverged", "lost": "lost"}
"""Statuses of jobs whose runs are recorded without metrics, with what happened to them."""
STATUSES = ("done", "already", *RECORDED, "failed", "stopped")

Running = Any
"""A job that has been started: its `overrides`, the `last_line` that it said, `ended()` and then `outcome(stopping)`.
"""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job; "already": all its records were there before; "claimed": another process trains it."""

    overrides: list[str]
    status: str
    text: str
    seconds: float = 0.0


def judge(code: int, last_line: str, printed: str) -> tuple[str, str]:
    """The status and the text of a `gpbench run --json` by its exit code, last line on stderr, and output."""
    last = last_line.partition("gpbench: ")[2] or last_line  # a print may stand before
    statuses = {Stopped: "stopped", DivergedError: _recorded(last), ClaimedError: "claimed"}
    if known := [status for error, status in statuses.items() if error.exit_code == code]:
        return known[0], last
    if code < 0:
        name = signal.Signals(-code).name
        return "failed", f"killed by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"
    if code > 0:
        return "failed", last or f"exit code {code}"
    try:
        result = json.loads(printed)
        records = [Record.from_json(record) for record in result["records"]]
    except (ValueError, LookupError, TypeError):
        return "failed", "its process ended without an answer: does a module of yours call os._exit?"
    return "already" if result["already"] == len(records) else "done", _scores(records)


def _recorded_before(overrides: list[str], records: list[Record]) -> Outcome:
    """The outcome of a job whose runs are all recorded."""
    if line := divergence(records):
        return Outcome(overrides, _recorded(line), line)
    return Outcome(overrides, "already", _scores(records))


def _recorded(line: str) -> str:
    """The status of a job of which `divergence` says this."""
    return "lost" if re.match(r"splits? [\d, ]+ failed \(", line) else "diverged"


def _scores(records: list[Record]) -> str:
    """Each metric's mean over the job's splits."""
    means = []
    for metric in records[0].metrics:
        values = [value for record in records if (value := record.metrics[metric]) is not None]
        lost = absences(records, metric)
        mean = f"{fmean(values):.4g}" if values else ""
        means.append(f"{metric} " + ", ".join(filter(None, [mean, absences_text(lost)])))
    return "  ".join(means)


@dataclass
class Job:
    """A job that is not done: when it may start next, by the monotonic clock, and how often it was stopped."""

    overrides: list[str]
    plan: RunPlan
    not_before: float = 0.0
    stops: int = 0

    def missing(self) -> list[Run]:
        """The runs that are to train."""
        return self.plan.missing(open_store(self.plan.results))

    def work(self) -> float:
        """Runs times steps times rows: what its seconds grow with, as far as that is known before."""
        steps, rows = self.plan.cfg["method"].get("steps"), self.plan.cfg["dataset"].get("rows")
        return float(len(self.plan.runs) * (steps or 1) * (rows or 1))

    def finished(self) -> Outcome | None:
        """Its outcome, if all its runs are recorded."""
        records = list(self.plan.recorded(open_store(self.plan.results)).values())
        return _recorded_before(self.overrides, records) if len(records) == len(self.plan.runs) else None

    def claimed(self) -> bool:
        """True if another process trains one of its runs."""
        return any(locks.holder(self.plan.results, run.id) for run in self.missing())

    def limited(self, seconds: float | None) -> "Job":
        """The job with another time limit, None for none."""
        words = [word for word in self.overrides if not word.startswith("run.time_limit=")]
        words += [] if seconds is None else [f"run.time_limit={seconds:.3f}"]
        return Job(words, self.plan.with_run(time_limit=seconds))


def longest_first(jobs: Sequence[Job], store: Store) -> list[Job]:
    """The jobs with an unrecorded run, which may be the longest, then those whose runs took most seconds."""

    def seconds(job: Job) -> float:
        records = [store.get(run.id, whole=False) for run in job.plan.runs]
        return sum(sum(filter(None, record.seconds.values())) if record else math.inf for record in records)

    return sorted(jobs, key=seconds, reverse=True)
