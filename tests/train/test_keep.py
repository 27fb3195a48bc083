"""`run.keep`: what pictures need is kept beside the trace, and a run without it is made again where it is asked for."""

import numpy as np
import pytest
from toys import job

from gpbench.errors import ConfigError
from gpbench.records.store import Store


def run(results, *words):
    (record,) = job(results, *words)
    return record, Store(results).trace(record.id)


def test_grid_predictions_rows_and_inducing_points_are_kept(tmp_path):
    words = ["dataset=moons", "method.inducing=5", "protocol.steps=3"]
    record, trace = run(tmp_path, *words)
    assert not record.kept and not any(name.startswith("kept_") for name in trace)
    again, trace = run(tmp_path, *words, "run.keep=true")
    assert again.id == record.id and again.kept and again.metrics == record.metrics
    assert trace["kept_inducing"].shape == (5, 2) and len(trace["kept_X"]) == len(trace["kept_y"])
    grid, X = trace["kept_grid"], trace["kept_X"]
    assert (grid.min(axis=0) < X.min(axis=0)).all() and (grid.max(axis=0) > X.max(axis=0)).all()
    np.testing.assert_allclose(np.exp(trace["kept_log_probs"]).sum(axis=1), 1, rtol=1e-5)
    third, _ = run(tmp_path, *words)
    assert third.created == again.created  # asked for less, it is the same run


def test_regression_on_one_input_keeps_mean_and_variance(tmp_path):
    _, trace = run(tmp_path, "dataset=sinc", "method=linear", "run.keep=true")
    grid, X = trace["kept_grid"], trace["kept_X"]
    assert grid.shape == (1200, 1) and trace["kept_mean"].shape == trace["kept_var"].shape == (1200,)
    span = np.ptp(X)  # pictures may extrapolate by as much on either side
    np.testing.assert_allclose([grid.min(), grid.max()], [X.min() - span, X.max() + span], rtol=1e-5)


def test_more_than_two_inputs_are_refused_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match="one or two inputs, and these have 30"):
        run(tmp_path, "dataset=wdbc", "method=constant", "run.keep=true")
