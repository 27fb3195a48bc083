"""`scripts/cores.py`: its cells are those of the tables, and shifts are multiples of their standard errors."""

import csv
import dataclasses
from pathlib import Path

import cores
import numpy as np
import pytest

from gpbench.experiments.plan import plans
from gpbench.records.collection import open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "results/gpbench/cores.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_cells_that_are_measured_are_committed_and_in_the_file(rows):
    made = plans([[*words.split(), "split=0"] for _, words in cores.CELLS])
    cells = []
    for (experiment, _), plan in zip(cores.CELLS, made, strict=True):
        store = open_store(ROOT / "results" / experiment.split("/")[0] / "records.parquet")
        record = store.get(plan.runs[0].id)
        cells.append((experiment, record.dataset, record.method, record.setting))
    assert cells == [*dict.fromkeys(tuple(row[name] for name in list(row)[:4]) for row in rows)]


def test_a_shift_is_a_multiple_of_the_standard_error_of_the_cell():
    store = open_store(ROOT / "results/gam/records.parquet")
    one = next(record for record in store.all() if record.dataset == "boston")
    cell = [record for record in store.all() if record.cell == one.cell]
    two = dataclasses.replace(one, metrics={**one.metrics, "rmse": one.metrics["rmse"] - 0.25})
    stderr = np.std([record.metrics["rmse"] for record in cell], ddof=1) / np.sqrt(len(cell))
    made = cores.shift(one, two, cell, "rmse")
    assert float(made["shift"]) == pytest.approx(0.25 / stderr, rel=0.05)
    assert float(made["committed shift"]) == 0 and made["splits"] == str(len(cell))
    assert cores.shift(one, two, [one], "rmse")["shift"] == ""  # one split has no standard error


def test_a_row_agrees_with_its_own_numbers(rows):
    for row in rows:
        for name, of in (("shift", "2 cores"), ("committed shift", "committed")):
            if row["standard error"]:
                change = abs(float(row[of]) - float(row["1 core"])) / float(row["standard error"])
                assert float(row[name]) == pytest.approx(change, rel=0.06, abs=2e-6)
