"""Plans on disk: a job is composed once, whichever list of jobs it is part of."""

import pytest

from gpbench.config import compose
from gpbench.experiments.plan import plans

FIRST, SECOND = ["method=logistic", "dataset=moons"], ["method=constant", "dataset=moons"]


@pytest.fixture
def composed(monkeypatch, tmp_path) -> list[list[str]]:
    """The jobs that are composed, with an empty cache."""
    jobs: list[list[str]] = []
    compose_one = compose.Composer.compose
    monkeypatch.setenv("GPBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(compose.Composer, "compose", lambda self, job: jobs.append(list(job)) or compose_one(self, job))
    return jobs


def test_only_jobs_without_a_plan_are_composed_and_the_order_is_that_of_the_jobs(composed):
    first, second = plans([FIRST, SECOND])
    assert plans([SECOND, FIRST, SECOND]) == [second, first, second]
    assert plans([SECOND]) == [second]
    assert composed == [FIRST, SECOND]


def test_a_damaged_plan_is_composed_again(composed, tmp_path):
    whole = plans([FIRST, SECOND])
    damaged, *_ = (tmp_path / "plans").rglob("*.json")
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert plans([FIRST, SECOND]) == whole
    assert len(composed) == 3


def test_a_changed_results_folder_needs_plans_of_its_own(composed, monkeypatch, tmp_path):
    plans([FIRST])
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "elsewhere"))
    (plan,) = plans([FIRST])
    assert plan.cfg["run"]["results"] == str(tmp_path / "elsewhere")
    assert len(composed) == 2
