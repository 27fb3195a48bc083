"""`run.gap`: the generalisation gap, against densities of the first training rows and of the test rows."""

import numpy as np
import pytest
from scipy.stats import norm

from gpbench.config.compose import compose
from gpbench.records.plan import GAP, RunPlan
from gpbench.records.store import Store
from gpbench.train.context import Context
from gpbench.train.grouping import load
from gpbench.train.job import run_job
from gpbench.train.progress import make
from gpbench.train.stop import StopRequest

WORDS = ["dataset=friedman_large", "dataset.splits.train_rows=600", "dataset.splits.test_rows=50", "split=0"]


def run(results, *overrides):
    plan = RunPlan.from_config(compose([*WORDS, *overrides, f"run.results={results}", "run.progress=false"]))
    (record,) = run_job(plan, store=Store(results), progress=make(False), stop=StopRequest(None))
    return plan, record


def test_the_gap_is_of_the_first_500_training_rows_and_a_record_without_it_is_made_again(tmp_path):
    _, without = run(tmp_path, "method=constant")
    plan, record = run(tmp_path, "method=constant", "run.gap=true")
    assert GAP not in (without.diagnostics or {}) and record.id == without.id
    _, (split,) = load(Context.create(plan), plan.runs)
    density = norm(np.mean(split.y), np.std(split.y)).logpdf
    gap = density(split.y[:500]).mean() - density(split.y_test).mean()
    assert record.diagnostics[GAP] == pytest.approx(gap, rel=1e-3)
    _, again = run(tmp_path, "method=constant", "run.gap=true")
    assert again.created == record.created


def test_of_a_method_of_some_rows_it_is_of_these(tmp_path):
    """An exact GP of 20 rows predicts these well, and others badly."""
    _, record = run(tmp_path, "method=gpr", "method.rows=20", "protocol=cheng2017", "method.steps=100", "run.gap=true")
    assert record.diagnostics[GAP] > 1.0
