"""The order in which the jobs of a sweep start: the longest first, so that all workers are busy to the end."""

import math
from collections.abc import Sequence

from gpbench.records.store import Store
from gpbench.sweep.job import Job


def longest_first(jobs: Sequence[Job], store: Store) -> list[Job]:
    """Orders jobs by the seconds that their runs took before.  Returns the jobs with a run that nobody has recorded, in
    their order, since any of them may be the longest; then the others, the longest first.
    """
    return sorted(jobs, key=lambda job: -_seconds(job, store))


def _seconds(job: Job, store: Store) -> float:
    records = [store.get(run.id, whole=False) for run in job.plan.runs] if job.plan else [None]
    return sum(sum(filter(None, record.seconds.values())) if record else math.inf for record in records)
