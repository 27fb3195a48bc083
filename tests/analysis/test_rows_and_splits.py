"""The variance of a difference, divided into that of rows and that of splits."""

import numpy as np
import pytest
from samples import sample

from gpbench.analysis.cells import group_runs
from gpbench.analysis.differences import paired_differences
from gpbench.analysis.power import lines, row_losses, spread
from gpbench.analysis.sides import Side
from gpbench.metrics import Scored, score


def cells(splits=3):
    records = [
        sample(id=f"{method}{k}", method=method, split=k, metrics={"nll": 0.1 * k + (method == "b")})
        for method in "ab"
        for k in range(splits)
    ]
    return records, *group_runs(records)


def simulation(splits, rows, split_std, row_std, seed=0):
    """Predictions by id whose differences a - b have these standard deviations."""
    rng = np.random.default_rng(seed)
    predictions = {}
    for k in range(splits):
        base = rng.normal(size=rows)
        difference = split_std * rng.normal() + row_std * rng.normal(size=rows)
        shared = {"row": np.arange(rows), "target": np.ones(rows)}
        predictions[f"a{k}"] = {**shared, "log_prob": base}
        predictions[f"b{k}"] = {**shared, "log_prob": base + difference}
    return lambda record: predictions.get(record.id, {})


@pytest.mark.parametrize(("split_std", "row_std"), [(0.3, 1.0), (0.0, 1.0), (0.5, 0.1)])
def test_the_parts_are_those_of_which_the_differences_were_made(split_std, row_std):
    splits, rows = 400, 25
    _, a, b = cells(splits)
    of = spread(a, b, "nll", simulation(splits, rows, split_std, row_std))
    assert (of.n_splits, of.n_rows) == (splits, splits * rows)
    assert of.row_std == pytest.approx(row_std, rel=0.04)
    assert of.rows == pytest.approx(row_std**2 / rows, rel=0.08)
    expected = split_std**2 + row_std**2 / rows
    assert of.total == pytest.approx(expected, rel=0.3)  # 4 standard errors of a variance of 400 values
    assert of.splits == pytest.approx(split_std**2, abs=0.3 * expected)


def test_the_parts_by_hand():
    _, a, b = cells(2)
    rows = {"row": np.arange(2), "target": np.zeros(2)}
    losses = {"a0": [1.0, 3.0], "b0": [0.0, 0.0], "a1": [6.0, 6.0], "b1": [0.0, 2.0]}
    predictions = {id: {**rows, "log_prob": -np.array(of)} for id, of in losses.items()}
    of = spread(a, b, "nll", lambda record: predictions[record.id])  # differences (1, 3) and (6, 4)
    assert (of.rows, of.total, of.splits) == (pytest.approx(1.0), pytest.approx(4.5), pytest.approx(3.5))
    assert of.row_std == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("change", ["one side", "other rows", "one split", "a metric that is no mean"])
def test_nothing_is_said_where_the_sides_have_no_two_splits_of_equal_rows(change):
    of = simulation(3, 5, 0.1, 0.1)
    metric = "auc" if change == "a metric that is no mean" else "nll"

    def predictions(record):
        if (change == "one side" and record.method == "b") or (change == "one split" and record.split):
            return {}
        shift = 1 if change == "other rows" and record.method == "b" else 0
        return {name: values + shift if name == "row" else values for name, values in of(record).items()}

    _, a, b = cells()
    assert spread(a, b, metric, predictions) is None


def test_a_comparison_has_one_line_of_it_and_the_mean_of_the_rows_is_the_metric():
    records, *_ = cells()
    pairs, _ = paired_differences(Side("method", "a"), Side("method", "b"), records, "nll")
    [line] = lines(pairs, simulation(3, 5, 0.1, 0.1))
    assert line.startswith("pima: over 3 splits with 15 test rows") and "is expected from rows alone" in line
    assert lines(pairs, lambda record: {}) == []
    rng = np.random.default_rng(1)
    y, probs = np.array([-1.0, 1.0, 1.0, -1.0]), rng.dirichlet([1.0, 1.0], size=4)
    scored = Scored(y=y, log_probs=np.log(probs), log_prob=np.log(probs[np.arange(4), (y > 0).astype(int)]))
    columns = {"log_prob_0": np.log(probs[:, 0]), "log_prob_1": np.log(probs[:, 1])}
    predictions = {"row": np.arange(4), "target": y, "log_prob": scored.log_prob, **columns}
    values = score("binary", scored)
    for metric in ("nll", "error", "brier"):
        assert row_losses(metric, predictions).mean() == pytest.approx(values[metric]), metric
