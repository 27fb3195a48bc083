"""Predictions in other units than those of the file are named in a warning: they are absurd beside `constant`."""

import numpy as np
import pandas as pd
import pytest
from submitted import bring, data, records

DATASET, TRAIN, TEST = data("diabetes")
CENTRE, SPREAD = DATASET.y[TRAIN].mean(), DATASET.y[TRAIN].std()
RESIDUAL = 55.0 * np.random.default_rng(0).normal(size=len(TEST))
MEAN, STD = DATASET.y[TEST] - RESIDUAL, 55.0
SCALED = (MEAN - CENTRE) / SPREAD
CASES = {
    "right": (MEAN, STD**2, None),
    "rough, and too sure by a factor of 5": (MEAN, STD**2 / 5, None),
    "standard deviations": (MEAN, STD, "deviations"),
    "scaled variances": (MEAN, STD**2 / SPREAD**2, "scaled_variances"),
    "scaled means": (SCALED, STD**2, "scaled_means"),
    "all scaled": (SCALED, STD**2 / SPREAD**2, "scaled_variances"),
    "scaled means, standard deviations": (SCALED, STD, "deviations"),
    "the mean of the training rows": (np.full(len(TEST), CENTRE), SPREAD**2, None),
    "exact": (DATASET.y[TEST], 1.0, None),
    "far off, in any unit": (-MEAN, STD**2, None),
}
OF_UNITS = {"scaled_means", "deviations", "scaled_variances"}


@pytest.mark.parametrize(("mean", "variance", "doubt"), CASES.values(), ids=CASES)
def test_wrong_units_are_a_warning_of_a_line_and_right_ones_are_none(mean, variance, doubt, tmp_path, capsys):
    rows = {"dataset": "diabetes", "split": 0, "method": "theirs", "row": TEST, "mean": mean, "variance": variance}
    assert bring(tmp_path, pd.DataFrame(rows)) == 0
    (record,) = records(tmp_path)
    found = OF_UNITS & (record.diagnostics or {}).keys()
    assert found == ({doubt} if doubt else set()) | ({"scaled_means"} if mean is SCALED else set())
    lines = [line for line in capsys.readouterr().err.splitlines() if "with --again" in line]
    assert len(lines) == len(found) and all(line.startswith("gpbench: warning: diabetes theirs: ") for line in lines)


def test_the_doubts_of_our_own_runs_are_those_of_imported_ones_too(tmp_path, capsys):
    table = {"dataset": "diabetes", "split": 0, "method": "theirs", "row": TEST, "mean": 1e4, "variance": 1.0}
    assert bring(tmp_path, pd.DataFrame(table)) == 0
    assert records(tmp_path)[0].diagnostics["excess_rmse"] > 100
    assert "times that of method=constant, or of one standard deviation of the targets" in capsys.readouterr().err
