"""Committed records, and the plans of the experiments' jobs, made once in a process: many tests share them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from gpbench.experiments import plan
from gpbench.records import collection

PLANS: plan.Plans = {}
"""Plans of jobs by their words, with no folders of a user's."""

_plan_jobs = plan.plans
_read_once = cache(collection.read)


def _plan_once(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path] = (), known: plan.Plans | None = None):
    return _plan_jobs(jobs, config_dirs, known if known is not None or config_dirs else PLANS)


def share(patch: pytest.MonkeyPatch) -> None:
    """Makes commands read a file of records once, and plan a job once, whichever of them needs it."""
    patch.setattr(collection, "read", _read_once)
    patch.setattr(plan, "plans", _plan_once)
