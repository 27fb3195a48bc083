"""The power of the corrected resampled t test, against SciPy, closed forms and simulation."""

import math

import numpy as np
import pytest
from samples import sample
from scipy import stats

from gpbench.analysis import power
from gpbench.analysis.differences import paired_differences
from gpbench.analysis.power import power_of, smallest_difference, splits_needed
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import paired_t_test
from gpbench.errors import ConfigError

SIDES = Side("method", "sep"), Side("method", "svi")
NORMAL = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
"""The noncentrality of 80 % power with infinitely many degrees of freedom, 2.80."""


def record(method, split, nll, dataset="pima", **rows):
    fields = {"dataset": dataset, "method": method, "split": split, "metrics": {"nll": nll}}
    return sample(f"{method}{dataset}{split}", **fields | {"train_rows": 90, "test_rows": 10} | rows)


def differences(values, **fields):
    records = [record(m, k, v * (m == "sep"), **fields) for k, v in enumerate(values) for m in ("sep", "svi")]
    return paired_differences(*SIDES, records, "nll")[0]


def test_power_is_that_of_the_noncentral_t_distribution_and_80_percent_at_the_smallest_difference():
    for n, shift in ((2, 1.0), (5, 2.8), (20, 0.5), (100, 4.0)):
        t, T = stats.t.ppf(0.975, n - 1), stats.nct(n - 1, shift)
        assert power_of(shift, n) == power_of(-shift, n) == pytest.approx(T.cdf(-t) + T.sf(t), rel=1e-9)
    assert power_of(0.0, 7) == pytest.approx(0.05)
    assert power_of(1e9, 2) == pytest.approx(1) and power_of(50.0, 100) == pytest.approx(1)
    for n in (*range(2, 41), 100, 1000, 10**6):  # SciPy's function is NaN at some shifts: the search failed at n = 25
        shift = smallest_difference(1.0, n, 0.0) * math.sqrt(n)
        assert power_of(shift, n) == pytest.approx(0.8, abs=1e-5)
        assert all(0.05 - 1e-9 <= power_of(far, n) <= 1 for far in np.linspace(0, 100, 201))


def test_the_smallest_difference_is_shown_in_80_percent_of_simulated_sets_of_splits():
    # differences share a part, with the correlation n_test / (n_test + n_train) of Nadeau and Bengio's correction
    rng, sets, n, ratio, sd = np.random.default_rng(0), 4000, 8, 1 / 9, 0.3
    delta = smallest_difference(sd, n, ratio)
    shared = rng.normal(size=(sets, 1)) * sd * math.sqrt(ratio)
    values = delta + shared + rng.normal(size=(sets, n)) * sd
    rate = np.mean([paired_t_test(row, ratio).significant for row in values.tolist()])
    assert abs(rate - 0.8) < 4 * math.sqrt(0.8 * 0.2 / sets)  # four standard errors of 0.6 %


def test_the_splits_needed_are_the_fewest_with_80_percent_and_none_below_the_floor():
    for difference, sd, ratio in ((0.1, 0.1, 0.0), (0.12, 0.1, 1 / 9), (-0.11, 0.1, 1 / 9), (0.02, 0.1, 0.0)):
        n = splits_needed(difference, sd, ratio)
        reached = [
            power_of(difference / (sd * math.sqrt(1 / k + ratio)), k) >= 0.8 for k in (int(n) - 1, int(n)) if k > 1
        ]
        assert reached == ([False, True] if n > 2 else [True])
    floor = NORMAL * 0.1 * math.sqrt(1 / 9)
    assert splits_needed(0.999 * floor, 0.1, 1 / 9) == math.inf and splits_needed(1.001 * floor, 0.1, 1 / 9) < math.inf
    assert splits_needed(0.01, 0.1, 0.0) == pytest.approx((NORMAL / 0.1) ** 2, abs=3)  # no floor without the correction
    assert splits_needed(0.0, 0.1, 0.0) == splits_needed(0.0, 0.0, 0.1) == math.inf
    assert splits_needed(0.1, 0.0, 0.1) == 2  # splits that agree exactly


def test_a_line_has_the_observed_difference_and_what_n_splits_show_and_none_below_the_floor():
    values = [0.1, 0.3, 0.2, 0.6, 0.4]
    (line,) = power.sheet(*SIDES, differences(values)).rows
    sd = float(np.std(values, ddof=1))
    assert line["sd"] == pytest.approx(sd) and line["stderr"] == pytest.approx(sd * math.sqrt(1 / 5 + 1 / 9))
    assert line["smallest_difference"] == pytest.approx(smallest_difference(sd, 5, 1 / 9))
    assert line["floor"] == pytest.approx(NORMAL * sd / 3, rel=1e-4)
    assert (line["difference"], line["n_splits"]) == (pytest.approx(0.32), 5)
    assert line["splits_needed"] == splits_needed(0.32, sd, 1 / 9)
    (line,) = power.sheet(*SIDES, differences([0.1, 0.3, -0.2, 0.6, -0.4])).rows
    assert line["splits_needed"] == "never"


def test_data_sets_without_a_test_are_named_and_none_with_one_is_one_line():
    single = differences([0.1], dataset="heart")
    sheet = power.sheet(*SIDES, [*differences([0.1, 0.3]), *single])
    assert len(sheet.rows) == 1 and "no test (a single split): heart" in sheet.remarks
    for untested in (single, differences([0.1, 0.3], test_rows=None)):
        with pytest.raises(ConfigError, match="no power without a test"):
            power.sheet(*SIDES, untested)
