"""Committed records, and the plans of the experiments' jobs, made once in a process: many tests share them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from gpbench.experiments import plan
from gpbench.records import collection

PLANNER = plan.Planner()
"""Plans jobs, with no folders of a user's."""

_Planner = plan.Planner
_read_once = cache(collection.read)


def _planner(config_dirs: Sequence[Path] = ()) -> plan.Planner:
    return _Planner(config_dirs) if config_dirs else PLANNER


def share(patch: pytest.MonkeyPatch) -> None:
    """Makes commands read a file of records once, and plan a job once, whichever of them needs it."""
    patch.setattr(collection, "read", _read_once)
    patch.setattr(plan, "Planner", _planner)
