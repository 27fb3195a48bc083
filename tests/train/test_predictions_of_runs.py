"""The predictions kept beside a record are those that were scored, and no part of what a run is."""

import numpy as np
import pytest
from toys import HERE, job

from gpbench.config.compose import compose
from gpbench.data import configured, splits
from gpbench.records.arrays import log_probs
from gpbench.records.store import Store
from gpbench.train import context

WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "run.together=true", "split=[0,1]"]
LINEAR = ["dataset=friedman", "method=linear", "split=3"]


@pytest.fixture(scope="module")
def of_classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    return job(folder, *WALK), Store(folder)


@pytest.fixture(scope="module")
def of_values(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    return job(folder, *LINEAR), Store(folder)


@pytest.mark.parametrize(("words", "fixture"), [(WALK, "of_classes"), (LINEAR, "of_values")])
def test_the_rows_are_the_test_rows_of_the_split_with_the_targets_of_the_data_set(words, fixture, request):
    records, store = request.getfixturevalue(fixture)
    cfg = compose(words, [HERE])
    dataset = configured(cfg)
    for record in records:
        predictions = store.predictions(record.id)
        _, test = splits.indices(cfg["dataset"], dataset, record.split)
        np.testing.assert_array_equal(predictions["row"], test)
        np.testing.assert_allclose(predictions["target"], dataset.y[test], rtol=1e-12)


def test_the_metrics_of_classes_and_of_values_follow_from_them_in_original_units(of_classes, of_values):
    records, store = of_classes
    for record in records:
        predictions = store.predictions(record.id)
        assert -predictions["log_prob"].mean() == pytest.approx(record.metrics["nll"], rel=1e-6)
        chosen = 2 * log_probs(predictions).argmax(axis=1) - 1
        assert np.mean(chosen != predictions["target"]) == pytest.approx(record.metrics["error"])
    ([record], store) = of_values
    predictions = store.predictions(record.id)
    assert predictions["log_prob"].mean() == pytest.approx(record.metrics["test_ll"], rel=1e-6)
    residuals = predictions["target"] - predictions["mean"]
    assert np.sqrt(np.mean(residuals**2)) == pytest.approx(record.metrics["rmse"], rel=1e-9)
    inside = np.abs(residuals) <= 1.959964 * np.sqrt(predictions["variance"])
    assert inside.mean() == pytest.approx(record.metrics["coverage95"])
    assert log_probs(predictions).shape == (len(residuals), 0)


def test_errors_over_test_rows_follow_from_them(of_classes, of_values):
    """s / √n of the rows' losses; of the RMSE through that of the mean squared error: s / (2 RMSE √n)."""
    for record in of_classes[0]:
        predictions = of_classes[1].predictions(record.id)
        n, log_prob = len(predictions["row"]), predictions["log_prob"].astype(float)
        wrong = 2 * log_probs(predictions).argmax(axis=1) - 1 != predictions["target"]
        assert record.row_stderr["nll"] == pytest.approx(log_prob.std(ddof=1) / np.sqrt(n), rel=1e-6)
        assert record.row_stderr["error"] == pytest.approx(np.sqrt(wrong.mean() * (~wrong).mean() / (n - 1)))
    ([record], store) = of_values
    predictions = store.predictions(record.id)
    squares, root = (predictions["target"] - predictions["mean"]) ** 2, np.sqrt(len(predictions["row"]))
    expected = squares.std(ddof=1) / root / (2 * record.metrics["rmse"])
    assert record.row_stderr["rmse"] == pytest.approx(expected, rel=1e-9)
    log_prob = predictions["log_prob"].astype(float)
    assert record.row_stderr["test_ll"] == pytest.approx(log_prob.std(ddof=1) / root, rel=1e-6)
    assert record.row_stderr["mnlp"] == record.row_stderr["test_ll"]


def test_false_keeps_none_and_auto_none_of_many_rows(tmp_path, monkeypatch):
    [record] = job(tmp_path / "false", *LINEAR, "run.predictions=false")
    assert Store(tmp_path / "false").predictions(record.id) == {}
    monkeypatch.setattr(context, "MOST_ROWS", 99)  # friedman has 100 test rows
    for value, kept in (("auto", False), ("true", True)):
        [record] = job(tmp_path / value, *LINEAR, f"run.predictions={value}")
        assert bool(Store(tmp_path / value).predictions(record.id)) is kept
