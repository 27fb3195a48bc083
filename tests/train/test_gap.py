"""`run.gap`: the generalisation gap, against densities of the first training rows and of the test rows."""

import numpy as np
import pytest
from samples import sample
from scipy.stats import norm
from toys import job

from gpbench.config.compose import compose
from gpbench.records.identity import SCHEMA
from gpbench.records.plan import GAP, RunPlan
from gpbench.train import result
from gpbench.train.context import Context, load


def run(results, *words):
    (record,) = job(results, "dataset=sinc500", "split=0", *words)
    return record


@pytest.mark.parametrize("rows", [50, 10_000])
def test_the_gap_is_of_the_first_training_rows_and_a_record_without_it_is_made_again(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(result, "_GAP_ROWS", rows)
    without, record = (run(tmp_path, "method=constant", f"run.gap={value}") for value in ("false", "true"))
    assert GAP not in (without.diagnostics or {}) and record.id == without.id
    plan = RunPlan.from_config(compose(["dataset=sinc500", "split=0", "method=constant"]))
    _, (split,) = load(Context(plan), plan.runs)
    density = norm(np.mean(split.y), np.std(split.y)).logpdf
    gap = density(split.y[:rows]).mean() - density(split.y_test).mean()
    assert record.diagnostics[GAP] == pytest.approx(gap, rel=1e-3, abs=1e-6)
    again = run(tmp_path, "method=constant", "run.gap=true")
    assert again.created == record.created


def test_a_run_that_is_made_again_for_its_gap_keeps_its_state_and_the_other_way_round(tmp_path):
    run(tmp_path, "method=constant", "run.save=true")
    record = run(tmp_path, "method=constant", "run.gap=true")
    assert record.saved and GAP in record.diagnostics
    record = run(tmp_path, "method=constant", "run.keep=true")
    assert record.saved and record.kept and GAP in record.diagnostics


def test_a_run_that_failed_is_not_made_again_for_what_it_cannot_have():
    plan = RunPlan.from_config(compose(["dataset=sinc500", "split=0", "method=constant", "run.gap=true"]))
    (only,) = plan.runs
    failed = sample(only.id, status="failed", schema=SCHEMA, metrics={})
    assert plan.recorded({only.id: failed}) == {only.id: failed}
