"""`scripts/again.py`: the words of a record lead to the record, and what counts as a difference."""

import dataclasses
import math
from pathlib import Path

import again
import pytest

from gpbench.experiments.plan import plans
from gpbench.records.collection import open_store

ROOT = Path(__file__).resolve().parents[2]


def test_the_words_of_a_run_have_its_id_alone():
    words = again.commands(["svdgp/table3", "gam/classification"])
    ids = [*list(words)[::10], list(words)[-1]]
    assert len(ids) > 3
    assert [[run.id for run in plan.runs] for plan in plans([words[id] for id in ids])] == [[id] for id in ids]


def test_a_difference_is_in_standard_deviations_over_the_cell():
    store = open_store(ROOT / "results/aep_dgp/records.parquet")
    cell = [record for record in store.all() if record.cell == store.all()[0].cell]
    old = cell[0]
    assert again.difference(old, old, cell) == 0
    spread = max(r.metrics["rmse"] for r in cell) - min(r.metrics["rmse"] for r in cell)
    moved = dataclasses.replace(old, metrics=dict(old.metrics) | {"rmse": old.metrics["rmse"] + spread})
    assert again.difference(old, moved, cell) > 1
    undefined = dataclasses.replace(old, metrics=dict(old.metrics) | {"rmse": None})
    assert again.difference(old, undefined, cell) == math.inf and again.difference(old, old, [*cell, undefined]) == 0
    assert again.difference(undefined, undefined, cell) == 0
    by_rows = dataclasses.replace(old, row_stderr=dict.fromkeys(old.metrics, 2 * spread))
    assert again.difference(by_rows, dataclasses.replace(moved), [by_rows]) == pytest.approx(0.5)
    assert again.difference(old, None, cell) == math.inf
    assert again.difference(old, dataclasses.replace(old, id="0" * 16), cell) == math.inf
    lost = dataclasses.replace(old, status="failed", message="no predictions after 22 CPU seconds", metrics={})
    assert again.difference(lost, lost, [lost]) == 0 and again.difference(lost, old, cell) == math.inf
