"""Splits of a user's own data: what each kind promises, in cards and in the arrays."""

from pathlib import Path

import numpy as np
import pytest

from gpbench.data import cards, sources, splits
from gpbench.errors import DataError, GpbenchError

RNG = np.random.default_rng(0)


@pytest.fixture
def own(own):
    """The same, from columns, the splits of the card, its task, other files and options of the source."""

    def make(columns: dict, chosen: dict | None = None, task: str = "regression", files: dict | None = None, **source):
        for name, text in (files or {}).items():
            Path(name).write_text(text)
        return own(columns, source, task=task, **({"splits": chosen} if chosen else {}))

    return make


def rows_of(n: int, **more) -> dict:
    return {"x": RNG.normal(size=n).round(4).tolist(), "y": RNG.normal(size=n).round(4).tolist(), **more}


def parts(card, dataset):
    return [splits.indices(card, dataset, k) for k in range(splits.count(card))]


def test_own_classes_are_stratified_unless_the_card_says_otherwise_and_a_class_of_one_row_trains(own):
    labels = ["a"] * 6 + ["b"] * 37 + ["c"] * 60
    card, dataset = own(rows_of(103) | {"y": labels}, task="multiclass")
    assert splits.identity(card) == {"set": "stratified90", "made_from": None} and splits.count(card) == 20
    sizes = {c: (dataset.y == c).sum() for c in range(3)}
    tested = np.zeros(103)
    for train, test in parts(card, dataset):
        assert (len(train), len(test)) == (93, 10)
        for c, size in sizes.items():
            assert np.floor(size * 10 / 103) <= (dataset.y[test] == c).sum() <= np.ceil(size * 10 / 103)
        tested[test] += 1
    assert 0 < tested.mean() < 5 and len({tuple(test) for _, test in parts(card, dataset)}) == 20
    assert splits.identity(own(rows_of(20))[0])["set"] == "random90"
    card, _ = own(rows_of(103) | {"y": labels}, {"set": "random90"}, "multiclass")
    assert splits.identity(card)["set"] == "random90"
    card, dataset = own(rows_of(30) | {"y": ["lone", "two", "two", *["many"] * 27]}, task="multiclass")
    for train, _ in parts(card, dataset):
        assert len(np.unique(dataset.y[train])) == 3


@pytest.mark.parametrize("folds", [3, 7])
def test_folds_are_disjoint_and_cover_all_rows_and_repeats_are_other_folds(own, folds):
    card, dataset = own(rows_of(40), {"set": "kfold", "folds": folds, "repeats": 2})
    tests = [test for _, test in parts(card, dataset)]
    assert len(tests) == 2 * folds and {len(test) for test in tests} <= {40 // folds, 40 // folds + 1}
    for division in (tests[:folds], tests[folds:]):
        assert sorted(np.concatenate(division)) == list(range(40))
    assert {tuple(sorted(t)) for t in tests[:folds]}.isdisjoint(tuple(sorted(t)) for t in tests[folds:])
    assert min(len(train) for train, _ in parts(card, dataset)) == splits.sizes({**card, "rows": 40})[0]


def test_the_number_of_folds_sets_runs_apart_that_of_repeats_does_not_and_folds_keep_the_shares_of_classes(own):
    of = lambda **keys: splits.identity(own(rows_of(40), {"set": "kfold", **keys})[0])
    assert of() == of(folds=10) == of(repeats=3) == of(folds=10, sets={"kfold": 30}) != of(folds=5)
    card, dataset = own(rows_of(47) | {"y": ["a"] * 13 + ["b"] * 34}, {"set": "kfold", "folds": 5}, "binary")
    assert {(dataset.y[test] == -1).sum() for _, test in parts(card, dataset)} == {2, 3}
    assert {(dataset.y[test] == 1).sum() for _, test in parts(card, dataset)} <= {6, 7}


def test_groups_are_never_on_both_sides_of_a_fold_and_blocks_of_time_have_equal_numbers_of_rows(own):
    person = RNG.integers(0, 9, 60).tolist()
    card, dataset = own(rows_of(60, person=person), {"set": "groups_kfold", "folds": 4, "repeats": 3}, group="person")
    for train, test in parts(card, dataset):
        assert {*dataset.groups[train]}.isdisjoint(dataset.groups[test]) and len(train) + len(test) == 60
    tests = [test for _, test in parts(card, dataset)]
    assert sorted(np.concatenate(tests[:4])) == list(range(60)) and dataset.columns == ("x",)
    card, dataset = own(rows_of(53, day=list(range(53))), {"set": "temporal", "folds": 6}, order="day")
    # as scikit-learn's TimeSeriesSplit(6): six blocks of 53 // 7 rows at the end
    for k, (train, test) in enumerate(parts(card, dataset)):
        assert sorted(train) == list(range(11 + 7 * k)) and test.tolist() == list(range(11 + 7 * k, 18 + 7 * k))


@pytest.mark.parametrize("ties", [1, 7])
def test_the_past_trains_and_the_future_tests(own, ties):
    times = RNG.permutation(50) // ties
    days = [str(np.datetime64("2024-01-01") + int(time)) for time in times]
    for column in (times.tolist(), days):
        card, dataset = own(rows_of(50, day=column), {"set": "temporal", "folds": 4}, order="day")
        tested = []
        for train, test in parts(card, dataset):
            assert times[train].max() < times[test].min() and len(test)
            tested += [times[test].min(), times[test].max()]
        assert tested == sorted(tested) and tested[-1] == times.max() and dataset.columns == ("x",)
    assert own(rows_of(12, day=list(range(12))), order="day", keep=["day"])[1].columns == ("x", "day")


def test_fixed_rows_come_from_columns_or_a_file(own):
    part = ["train"] * 6 + ["test"] * 3 + ["-"]
    card, dataset = own(rows_of(10, part=part), {"set": "fixed"}, split="part")
    ((train, test),) = parts(card, dataset)
    assert sorted(train) == [0, 1, 2, 3, 4, 5] and test.tolist() == [6, 7, 8] and dataset.columns == ("x",)
    card, dataset = own(rows_of(10, fold=[2, 1, 3] * 3 + [1]), {"set": "fixed", "folds": 3}, split="fold")
    assert [test.tolist() for _, test in parts(card, dataset)] == [[1, 4, 7, 9], [0, 3, 6], [2, 5, 8]]
    table = "a,b\n" + "\n".join(["train,test", "test,train"] * 5)
    fixed = {"set": "fixed", "folds": 2}
    card, in_file = own(rows_of(10), fixed, split_file="rows.csv", files={"rows.csv": table})
    assert [test.tolist() for _, test in parts(card, in_file)] == [[1, 3, 5, 7, 9], [0, 2, 4, 6, 8]]
    # other rows are other data, so that runs on them never share a cell
    assert len({dataset.checksum, in_file.checksum, own(rows_of(10))[1].checksum}) == 3


CLASSES = {"y": ["a"] * 3 + ["b"] * 17}
DAYS = [f"2024-01-{day:02}" for day in range(1, 21)]
WRONG = [
    ({}, {"kind": "kfold"}, {}, "splits has an unknown key 'kind'; "),
    ({}, {"set": "k-fold"}, {}, "no split set 'k-fold'; did you mean kfold"),
    ({}, {"set": "yang"}, {}, "no split set 'yang'; give the number of its splits, as in sets: {yang: 1}"),
    ({}, {"set": "kfold", "folds": 1}, {}, "splits: folds=1: must be a whole number from 2"),
    ({}, {"set": "kfold", "repeats": 0}, {}, "splits: repeats=0: must be"),
    ({}, {"folds": 5}, {}, "splits.folds=5: the split set random90 does not read it (kfold, groups_kfold, temporal or"),
    ({}, {"set": "kfold", "sets": {"kfold": 9}, "repeats": 2}, {}, "splits.repeats and splits.sets.kfold: both say"),
    ({}, {"set": "kfold", "folds": 21}, {}, "splits.folds=21: there are 20 rows; choose 2 to 20 folds"),
    (CLASSES, {"set": "kfold"}, {}, "the class 'a' has too few rows (3); choose 2 to 3 folds, or the split set"),
    ({}, {"set": "groups90"}, {}, "has no groups of rows to split by; a source names them by `group`"),
    ({"g": [1] * 20}, {"set": "groups90"}, {"group": "g"}, "all rows are one group"),
    ({"g": [1, 2] * 10}, {"set": "groups_kfold"}, {"group": "g"}, "there are 2 groups; choose 2 folds"),
    ({}, {"set": "temporal"}, {}, "has no order of rows to split by; a source names its column by `order`"),
    ({}, {"set": "temporal"}, {"order": "day"}, "no column 'day'; the table has x, y"),
    ({"d": [*DAYS[1:], ""]}, {"set": "temporal"}, {"order": "d"}, "column 'd' of `order` has 1 missing cell (row 20)"),
    ({"d": [*DAYS[1:], "Monday"]}, {"set": "temporal"}, {"order": "d"}, "row 20: 'Monday' is no date, as 2024-01-31"),
    ({"d": [1, 2] * 10}, {"set": "temporal"}, {"order": "d"}, "different times (2) in column 'd' of `order`; choose 1"),
    ({}, {"set": "fixed"}, {}, "has no fixed splits; a source names their column by `split`"),
    ({"p": ["train"] * 19 + ["x"]}, {"set": "fixed"}, {"split": "p"}, "own.csv: column 'p' of `split`, row 20: 'x' is"),
    ({"p": ["train"] * 20}, {"set": "fixed"}, {"split": "p"}, "column 'p' of `split` has no row 'test'"),
    ({"p": [0, 1] * 10}, {"set": "fixed"}, {"split": "p"}, "of `split` has another number of splits; write folds: 2"),
    ({}, {"set": "fixed"}, {"split_file": "none.csv"}, "no file none.csv in "),
    ({}, {"set": "fixed"}, {"split_file": "own.csv"}, "own.csv: column 'x', row 1: "),
]


def test_a_file_of_splits_with_fewer_lines_than_the_data_is_refused(own):
    with pytest.raises(DataError, match=r"own: rows\.csv has 2 rows, and the table 20"):
        own(rows_of(20), {"set": "fixed"}, split_file="rows.csv", files={"rows.csv": "a\ntrain\ntest\n"})


@pytest.mark.parametrize(("columns", "split", "source", "line"), WRONG, ids=[line for *_, line in WRONG])
def test_a_split_that_cannot_be_made_is_refused_in_one_line(own, columns, split, source, line, one_line):
    task = "binary" if "y" in columns else "regression"
    with one_line(GpbenchError, says=line):
        splits.indices(*own(rows_of(20) | columns, split, task, **source), 0)


def test_an_archive_of_arrays_has_groups_an_order_and_fixed_splits(tmp_path):
    days = np.array(["2024-01-03", "2024-01-01", "NaT", "2024-01-02"], "datetime64[D]")
    arrays = {"X": np.eye(4), "y": np.arange(4.0), "who": np.array([1, 1, 2, 3]), "day": days}
    np.savez(tmp_path / "own.npz", part=[["train", "test"], ["test", "train"], ["train", ""], ["-", "train"]], **arrays)
    source = {"kind": "file", "path": "own.npz", "reader": "npz", "group": "who", "split": "part"}
    card = {"name": "own", "task": "regression", "splits": {"set": "fixed", "folds": 2}, "sources": [source]}
    dataset = sources.load(card, config_dirs=[tmp_path])
    assert [test.tolist() for _, test in parts(cards.checked(card), dataset)] == [[1], [0]]
    assert dataset.groups.tolist() == [0, 0, 1, 2]
    timed = {**card, "sources": [source | {"order": "day"}]}
    with pytest.raises(DataError, match=r"own: file own.npz: column 'day' of `order` has 1 missing cell \(row 3\)"):
        sources.load(timed, config_dirs=[tmp_path])
    dataset = sources.load(timed | {"incomplete": "drop"}, config_dirs=[tmp_path])
    assert np.diff(dataset.order).tolist() == [-172800, 86400]
