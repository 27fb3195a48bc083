"""Means, the corrected paired t test, its power, and its correction for each kind of split."""

import math
from statistics import StatisticsError

import numpy as np
import pytest
from samples import sample
from scipy import stats

from gpbench.analysis import best, differences, power, tables
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.differences import paired_differences
from gpbench.analysis.power import power_of, smallest_difference, splits_needed
from gpbench.analysis.sides import Side, parse_sides
from gpbench.analysis.statistics import UNTESTED, common_splits, largest_ratio, mean_stderr, paired_t_test
from gpbench.errors import ConfigError

A, B = [0.41, 0.50, 0.48, 0.54, 0.40], [0.44, 0.52, 0.47, 0.60, 0.45]


def test_the_standard_error_is_the_sample_deviation_over_root_n_and_splits_are_those_that_all_have():
    assert mean_stderr(A) == (pytest.approx(np.mean(A)), pytest.approx(stats.sem(A)))
    assert mean_stderr([0.3]) == (0.3, None)
    with pytest.raises(StatisticsError):
        mean_stderr([])
    assert mean_stderr([0.0, 1e200]) == (5e199, None)
    mean, stderr = mean_stderr([0.0, math.inf])
    assert mean == math.inf and math.isnan(stderr)
    assert largest_ratio([0.1, 0.2]) == 0.2 and largest_ratio([0.1, None]) is None and largest_ratio([]) is None
    assert common_splits([{2: 0.1, 0: 0.2}, {0: 0.3, 2: 0.4, 5: 0.5}]) == [0, 2]
    assert common_splits([{0: 0.1}, {}]) == [] and common_splits([]) == []


def test_interval_p_and_significance_are_those_of_scipys_paired_t_test_and_the_correction_by_hand():
    test = paired_t_test([a - b for a, b in zip(A, B)], 0.0)
    expected = stats.ttest_rel(A, B)
    assert (test.mean, test.p) == (pytest.approx(np.mean(A) - np.mean(B)), pytest.approx(expected.pvalue))
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    clear = paired_t_test([a - b - 1 for a, b in zip(A, B)], 0.0)
    assert (test.significant, clear.significant) == (expected.pvalue < 0.05, True) == (False, True)
    # mean 3, s^2 = (4 + 1 + 0 + 9) / 3 = 14/3, variance 14/3 (1/4 + 1/4) = 7/3, t = 3 / sqrt(7/3) with 3 degrees
    test = paired_t_test([1.0, 2.0, 3.0, 6.0], 0.25)
    t = 3 / math.sqrt(7 / 3)
    assert test.stderr == pytest.approx(math.sqrt(7 / 3)) and test.p == pytest.approx(2 * stats.t.sf(t, 3))
    # 3.1824 is the 97.5 % point of t with 3 degrees of freedom in printed tables
    assert test.high == pytest.approx(3 + 3.1824 * math.sqrt(7 / 3), abs=1e-4) and not test.significant


def test_equal_differences_are_ties_where_they_are_0_and_without_variance_or_ratio_there_is_no_test():
    assert paired_t_test([0.0, 0.0], 0.1).p == 1 and not paired_t_test([0.0, 0.0], 0.1).significant
    # one row of 27 more or less, on both splits
    assert not paired_t_test([1 / 27, 1 / 27], 27 / 243).possible and not paired_t_test([0.1, 0.1, 0.1], 0.1).possible
    for values, ratio in (([0.3], 0.1), ([0.1, 0.1, 0.7], None)):
        test = paired_t_test(values, ratio)
        assert test == (pytest.approx(0.3), None, None, None, None) and not test.significant and not test.possible


def test_splits_that_share_rows_mislead_the_plain_test_and_not_the_corrected_one():
    # y = x1 + x2 + noise: the errors of least squares on x1 alone and on x2 alone have the same expectation, so that
    # every rejection is an error of the first kind
    rng, sets, n, tested, count = np.random.default_rng(0), 1000, 100, 10, 15
    x = rng.normal(size=(sets, n, 2))
    y = x.sum(2) + rng.normal(size=(sets, n))
    rejected = {0.0: 0, tested / (n - tested): 0}
    for X, t in zip(x, y):
        differences = []
        for _ in range(count):
            order = rng.permutation(n)
            test, train = order[:tested], order[tested:]
            slopes = t[train] @ X[train] / (X[train] ** 2).sum(0)
            errors = ((t[test, None] - X[test] * slopes) ** 2).mean(0)
            differences.append(float(errors[0] - errors[1]))
        for ratio in rejected:
            rejected[ratio] += paired_t_test(differences, ratio).significant
    plain, corrected = (number / sets for number in rejected.values())
    # the standard error of a rate of 5 % over 1,000 data sets is 0.7 %
    assert corrected < 0.07 and plain > 0.15


OF_SEP, OF_SVI = [0.41, 0.50, 0.48, 0.54, 0.40, 0.46], [1.44, 1.53, 1.48, 1.60, 1.44, 1.49]


def runs(split_set: str, methods=(("sep", OF_SEP), ("svi", OF_SVI)), **fields):
    """Two repeats of three folds: 60 rows train and 30 test."""
    facts = {"dataset": "coffee", "setting": "", "split_set": split_set, "train_rows": 60, "test_rows": 30}

    def run(method, k, value):
        own = {"method": method, "split": k, "metrics": {"nll": value}, "cell": f"{method}{split_set}"}
        return sample(f"{method}{split_set}{k}", precision="float64", **facts | own | fields)

    return [run(method, k, value) for method, values in methods for k, value in enumerate(values)]


def compared(records):
    (difference,), _ = differences.paired_differences(*parse_sides("sep", "svi", records), records, "nll")
    return difference


def test_the_variance_over_repeated_folds_is_that_of_bouckaert_and_frank():
    test = compared(runs("kfold")).test
    values = [a - b for a, b in zip(OF_SEP, OF_SVI)]
    mean = sum(values) / 6
    variance = sum((value - mean) ** 2 for value in values) / 5
    k, r = 3, 2
    assert test.stderr == pytest.approx(math.sqrt((1 / (k * r) + 30 / 60) * variance))
    assert test.significant and compared(runs("kfold")).winner == "A"
    line = differences.feet("", [compared(runs("kfold"))])[-1]
    assert line.startswith(
        "coffee: k-fold; tests correct the variance, times 1/(k r) + n_test/n_train for r repeats of k"
    )
    feet = differences.sheet(*parse_sides("sep", "svi", runs("kfold")), [compared(runs("kfold"))], []).remarks
    assert "(Bouckaert and Frank 2004): variance times 1/(k r) +" in feet[0] and "Nadeau" not in " ".join(feet)
    assert "(Nadeau and Bengio 2003): variance times 1/n +" in differences.note([compared(runs("random90"))])
    assert "coffee" not in " ".join(differences.feet("", [compared(runs("random90"))]))


@pytest.mark.parametrize("split_set", UNTESTED)
def test_splits_that_are_not_exchangeable_have_no_verdict_and_the_foot_says_so(split_set):
    records = runs(split_set)
    difference = compared(records)
    assert (difference.test.p, difference.test.low, difference.winner) == (None, None, "")
    line = f"coffee: no test: no correction of the variance is known for {split_set} ({UNTESTED[split_set]})"
    row = entries(group_runs(records))
    assert {entry.mark for entry in tables.with_marks(row)} == {""}
    result = best.best_methods(records, "nll")
    assert all(score.p is None for scores in result.scores.values() for score in scores.values())
    for remarks in (tables.sheet(row).remarks, differences.feet("", [difference])):
        assert remarks.count(line) == 1


def test_runs_of_two_kinds_of_splits_share_no_cell_and_splits_with_rows_of_their_own_have_the_plain_test():
    cells = group_runs([*runs("kfold"), *runs("stratified90")])
    assert {(cell.method, cell.label, len(cell.records)) for cell in cells} == {
        (method, f"set={name}", 6) for method in ("sep", "svi") for name in ("kfold", "stratified90")
    }
    independent, overlapping = (compared(runs(name)) for name in ("draws", "random90"))
    assert independent.ratio == 0 and overlapping.ratio == 0.5
    assert overlapping.test.stderr == pytest.approx(independent.test.stderr * math.sqrt(1 + len(OF_SEP) * 0.5))


SIDES = Side("method", "sep"), Side("method", "svi")
NORMAL = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
"""The noncentrality of 80 % power with infinitely many degrees of freedom, 2.80."""


def paired(values, **fields):
    fields = {"train_rows": 90, "test_rows": 10} | fields
    jobs = [(m, k, v * (m == "sep")) for k, v in enumerate(values) for m in ("sep", "svi")]
    records = [sample(f"{m}{k}", method=m, split=k, metrics={"nll": nll}, **fields) for m, k, nll in jobs]
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
    for change, sd, ratio in ((0.1, 0.1, 0.0), (0.12, 0.1, 1 / 9), (-0.11, 0.1, 1 / 9), (0.02, 0.1, 0.0)):
        n = splits_needed(change, sd, ratio)
        reached = [power_of(change / (sd * math.sqrt(1 / k + ratio)), k) >= 0.8 for k in (int(n) - 1, int(n)) if k > 1]
        assert reached == ([False, True] if n > 2 else [True])
    floor = NORMAL * 0.1 * math.sqrt(1 / 9)
    assert splits_needed(0.999 * floor, 0.1, 1 / 9) == math.inf and splits_needed(1.001 * floor, 0.1, 1 / 9) < math.inf
    assert splits_needed(0.01, 0.1, 0.0) == pytest.approx((NORMAL / 0.1) ** 2, abs=3)  # no floor without the correction
    assert splits_needed(0.0, 0.1, 0.0) == splits_needed(0.0, 0.0, 0.1) == math.inf
    assert splits_needed(0.1, 0.0, 0.1) == 2  # splits that agree exactly


def test_a_line_has_the_difference_and_what_n_splits_show_and_data_sets_without_a_test_are_named():
    values = [0.1, 0.3, 0.2, 0.6, 0.4]
    (line,) = power.sheet(*SIDES, paired(values)).rows
    sd = float(np.std(values, ddof=1))
    assert line["sd"] == pytest.approx(sd) and line["stderr"] == pytest.approx(sd * math.sqrt(1 / 5 + 1 / 9))
    assert line["smallest_difference"] == pytest.approx(smallest_difference(sd, 5, 1 / 9))
    assert line["floor"] == pytest.approx(NORMAL * sd / 3, rel=1e-4)
    assert (line["difference"], line["n_splits"]) == (pytest.approx(0.32), 5)
    assert line["splits_needed"] == splits_needed(0.32, sd, 1 / 9)
    (line,) = power.sheet(*SIDES, paired([0.1, 0.3, -0.2, 0.6, -0.4])).rows
    assert line["splits_needed"] == "never"
    single = paired([0.1], dataset="heart")
    sheet = power.sheet(*SIDES, [*paired([0.1, 0.3]), *single])
    assert len(sheet.rows) == 1 and "no test (a single split): heart" in sheet.remarks
    for untested in (single, paired([0.1, 0.3], test_rows=None)):
        with pytest.raises(ConfigError, match="no power without a test"):
            power.sheet(*SIDES, untested)
