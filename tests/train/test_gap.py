"""`run.gap`: the generalisation gap, against densities of the first training rows and of the test rows."""

import numpy as np
import pytest
from samples import sample
from scipy.stats import norm

from gpbench.config.compose import compose
from gpbench.records.identity import SCHEMA
from gpbench.records.plan import GAP, RunPlan
from gpbench.records.store import Store
from gpbench.train import result
from gpbench.train.context import Context
from gpbench.train.grouping import load
from gpbench.train.job import run_job
from gpbench.train.progress import make
from gpbench.train.stop import StopRequest


def run(results, *words):
    plan = RunPlan.from_config(compose(["dataset=sinc500", "split=0", *words, f"run.results={results}"]))
    (record,) = run_job(plan, store=Store(results), progress=make(False), stop=StopRequest(None))
    return plan, record


@pytest.mark.parametrize("rows", [50, 10_000])
def test_the_gap_is_of_the_first_training_rows_and_a_record_without_it_is_made_again(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(result, "_GAP_ROWS", rows)
    _, without = run(tmp_path, "method=constant")
    plan, record = run(tmp_path, "method=constant", "run.gap=true")
    assert GAP not in (without.diagnostics or {}) and record.id == without.id
    _, (split,) = load(Context.create(plan), plan.runs)
    density = norm(np.mean(split.y), np.std(split.y)).logpdf
    gap = density(split.y[:rows]).mean() - density(split.y_test).mean()
    assert record.diagnostics[GAP] == pytest.approx(gap, rel=1e-3, abs=1e-6)
    _, again = run(tmp_path, "method=constant", "run.gap=true")
    assert again.created == record.created


def test_a_run_that_is_made_again_for_its_gap_keeps_its_state_and_the_other_way_round(tmp_path):
    run(tmp_path, "method=constant", "run.save=true")
    _, record = run(tmp_path, "method=constant", "run.gap=true")
    assert record.saved and GAP in record.diagnostics
    _, record = run(tmp_path, "method=constant", "run.keep=true")
    assert record.saved and record.kept and GAP in record.diagnostics


def test_a_run_that_failed_is_not_made_again_for_what_it_cannot_have():
    plan = RunPlan.from_config(compose(["dataset=sinc500", "split=0", "method=constant", "run.gap=true"]))
    (only,) = plan.runs
    failed = sample(only.id, status="failed", schema=SCHEMA, metrics={})
    assert plan.recorded({only.id: failed}) == {only.id: failed}
