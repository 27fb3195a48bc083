"""Statistics of each kind of split: the correction of folds, and no verdict where none is known."""

import math

import pytest
from samples import sample

from gpbench.analysis import best, differences, tables
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.sides import parse_sides
from gpbench.analysis.statistics import UNTESTED

A, B = [0.41, 0.50, 0.48, 0.54, 0.40, 0.46], [1.44, 1.53, 1.48, 1.60, 1.44, 1.49]


def runs(split_set: str, methods=(("sep", A), ("svi", B)), **fields):
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
    values = [a - b for a, b in zip(A, B)]
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
    assert overlapping.test.stderr == pytest.approx(independent.test.stderr * math.sqrt(1 + len(A) * 0.5))
