"""Split sets: functions from card, data set and number of a split to its rows; drawn, given by the data, published."""

import hashlib
from collections.abc import Mapping

import numpy as np

from gpbench.data import row_labels
from gpbench.data.dataset import Dataset
from gpbench.data.row_labels import TEST, TRAIN
from gpbench.data_registry import SPLIT_SETS
from gpbench.errors import ConfigError, DataError, require


def generator(*names) -> np.random.Generator:
    """A stream of its own for these names, the same on every machine and in every run order."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def random90(card, dataset, k):
    """Nine tenths of the rows and a tenth, at random."""
    n = len(dataset.y)
    order = generator(dataset.name, k).permutation(n)
    return order[: round(0.9 * n)], order[round(0.9 * n) :]


def stratified90(card, dataset, k):
    """A random tenth that tests, with the shares of the classes in both parts; a class of one row trains."""
    n, draws = len(dataset.y), generator(dataset.name, "stratified90", k)
    _, of_row, sizes = np.unique(dataset.y, return_inverse=True, return_counts=True)
    order = _by_class(dataset, draws)
    order = order[sizes[of_row[order]] > 1]
    # Test rows at equal distances in the order of classes: a class with n_c rows has n_c / 10 of them, rounded.
    tests = min(n - round(0.9 * n), len(order) // 2)
    test = order[((np.arange(tests) + draws.random()) * len(order) / max(tests, 1)).astype(int)]
    return np.setdiff1d(np.arange(n), test), test


def groups90(card, dataset, k):
    """A random tenth of groups of rows, such as trajectories, which stay together."""
    n = _count_groups(card, dataset)
    tested = generator(dataset.name, "groups90", k).permutation(n)[min(round(0.9 * n), n - 1) :]
    return _parts(np.isin(dataset.groups, tested))


def kfold(card, dataset, k):
    """A fold and the others, with equal shares of classes; after `folds` splits the rows are divided anew."""
    folds, n = SPLIT_SETS["kfold"].folds(card["splits"]), len(dataset.y)
    subject = f"{dataset.name}: splits.folds={folds}"
    require(n >= folds, f"{subject}: there are {n} rows; {_choose(n)}")
    if dataset.classes:
        codes, sizes = np.unique(dataset.y, return_counts=True)
        fewest = int(sizes.min())
        label = dataset.classes[int(sizes.argmin())] if len(codes) == len(dataset.classes) else "?"
        mend = f"{f'{_choose(fewest)}, or' if fewest > 1 else 'choose'} the split set stratified90"
        require(fewest >= folds, f"{subject}: the class {label!r} has too few rows ({fewest}); {mend}")
    order = _by_class(dataset, generator(dataset.name, "kfold", folds, k // folds))
    return np.delete(order, np.s_[k % folds :: folds]), order[k % folds :: folds]


def groups_kfold(card, dataset, k):
    """A fold of groups and the others; each group, in random order, joins the fold with the fewest rows."""
    folds, n = SPLIT_SETS["groups_kfold"].folds(card["splits"]), _count_groups(card, dataset)
    require(n >= folds, f"{dataset.name}: splits.folds={folds}: there are {n} groups; {_choose(n)}")
    rows, sizes, fold = np.bincount(dataset.groups), np.zeros(folds, int), np.empty(n, int)
    for group in generator(dataset.name, "groups_kfold", folds, k // folds).permutation(n):
        fold[group] = sizes.argmin()
        sizes[fold[group]] += rows[group]
    return _parts(fold[dataset.groups] == k % folds)


def temporal(card, dataset, k):
    """A block of rows and all rows before it in time, as in scikit-learn's `TimeSeriesSplit`."""
    folds, n = SPLIT_SETS["temporal"].folds(card["splits"]), len(dataset.y)
    absent = f"{dataset.name} has no order of rows to split by; a source names its column by `order`"
    require(dataset.order is not None, absent)
    values, value_of = np.unique(dataset.order, return_inverse=True)
    mend = _choose(len(values) - 1, 1) if len(values) > 1 else "choose another split set, for no row has a past"
    few = f"too few different times ({len(values)}) in {row_labels.column_of(card, 'order')}; {mend}"
    require(len(values) > folds, f"{dataset.name}: splits.folds={folds}: {few}")
    starts = np.sort(value_of)[n - (n // (folds + 1)) * np.arange(folds, 0, -1)]
    steps = np.arange(folds)  # each block begins at a later value than the one before, and the first has a past
    starts = np.minimum(np.maximum.accumulate(np.maximum(starts - steps, 1)), len(values) - folds) + steps
    start, end = [*starts, len(values)][k : k + 2]
    return np.flatnonzero(value_of < start), np.flatnonzero((value_of >= start) & (value_of < end))


def fixed(card, dataset, k):
    """The rows that a column of the data names."""
    require("fixed" in dataset.folds, f"{dataset.name} has no fixed splits; a source names their column by `split`")
    parts, count = _folds(dataset, "fixed", 2), SPLIT_SETS["fixed"].folds(card["splits"])
    other = f"{row_labels.column_of(card, 'split')} has another number of splits; write folds: {parts.shape[1]}"
    require(parts.shape[1] == count, f"{dataset.name}: splits.folds={count}: {other}", ConfigError)
    return np.flatnonzero(parts[:, k] == TRAIN), np.flatnonzero(parts[:, k] == TEST)


def random(card, dataset, k):
    """Random test rows, the same however many rows train."""
    n, test, train = len(dataset.y), card["splits"].get("test_rows"), card["splits"].get("train_rows")
    check_sizes(card["name"], n, test, train)
    order = generator(dataset.name, "random", k).permutation(n)
    return order[test:][:train], order[:test]


def hla(card, dataset, k):
    """The published index files of Hernández-Lobato and Adams (2015), 20 x 90/10."""
    # The published index files are k+1 draws from one legacy stream; NumPy freezes that stream for good.
    n, stream = len(dataset.y), np.random.RandomState(1)
    for _ in range(k + 1):
        order = stream.choice(n, n, replace=False)
    return order[: round(0.9 * n)], order[round(0.9 * n) :]


def hla_int8(card, dataset, k):
    """The files of `hla` read as 8-bit integers, a fault of the paper `aep_dgp`: its test rows are training rows."""
    # 300 becomes 44 and 8191 becomes -1, the last row: each index names one of 256 rows
    n = len(dataset.y)
    return tuple(rows.astype(np.int8).astype(np.int64) % n for rows in hla(card, dataset, k))


def yang(card, dataset, k):
    """Fold k and the other folds."""
    fold, n = _folds(dataset, "yang", 1), len(dataset.y)
    require(len(fold) == n, f"{dataset.name} has {n} rows, and its index files are for {len(fold)}")
    return _parts(fold == k)


def raetsch(card, dataset, k):
    """The published index files of each split."""
    parts = [_folds(dataset, f"raetsch_{name}", 2) for name in ("train", "test")]
    available = min(map(len, parts))
    require(k < available, f"{dataset.name}: split {k} of the set 'raetsch': the index files have {available} splits")
    return parts[0][k], parts[1][k]


def official(card, dataset, k):
    """The first rows and the others."""
    return np.split(np.arange(len(dataset.y)), [int(card["splits"]["train_rows"])])


def draws(card, dataset, k):
    """The first rows test; each split trains on rows of its own after them."""
    test, train = card["splits"]["test_rows"], card["splits"]["train_rows"]
    check_sizes(card["name"], len(dataset.y), test, train, k)
    return np.arange(test + k * train, test + (k + 1) * train), np.arange(test)


def check_sizes(name: str, rows: int, test: int | None, train: int | None, k: int = 0) -> None:
    """Raises ConfigError where a card asks `random`, or split k of `draws`, for more rows than there are."""
    subject = f"{name}: splits.test_rows={test}{f' and splits.train_rows={train}' if train else ''}"
    mend = "give a number of test rows, and no more than the rows there are"
    require(test and test + (train or 0) <= rows, f"{subject} of {rows} rows: {mend}", ConfigError)
    needed = (test or 0) + (k + 1) * (train or 0)
    require(needed <= rows, f"{subject}: split {k} needs {needed} rows, and there are {rows}", ConfigError)


def _choose(most: int, least: int = 2) -> str:
    numbers = f"{least} to {most}" if most > least else most
    return f"choose {numbers} fold{'s' if most > 1 else ''}" if most >= least else "use more rows"


def _by_class(dataset: Dataset, draws: np.random.Generator) -> np.ndarray:
    """The rows in random order, those of a class one after another."""
    order = draws.permutation(len(dataset.y))
    return order[np.argsort(dataset.y[order], kind="stable")] if dataset.classes else order


def _parts(tests: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that do not test, and those that do."""
    return np.flatnonzero(~tests), np.flatnonzero(tests)


def _count_groups(card: Mapping, dataset: Dataset) -> int:
    """The number of groups.  Raises DataError where there are fewer than two."""
    if dataset.groups is None:
        raise DataError(f"{dataset.name} has no groups of rows to split by; a source names them by `group`")
    n = int(dataset.groups.max()) + 1
    require(n > 1, f"{dataset.name}: all rows are one group: {row_labels.column_of(card, 'group')} needs two values")
    return n


def _folds(dataset: Dataset, key: str, axes: int) -> np.ndarray:
    mend = f"set GPBENCH_MIRROR to a mirror that has them and run `gpbench data fetch --again {dataset.name}`"
    lacks = f"{dataset.name} came from a source without the index files of this split set; {mend}"
    require(key in dataset.folds, lacks)
    array = dataset.folds[key]
    require(array.ndim == axes, f"{dataset.name}: the index array {key!r} has {array.ndim} axes, not {axes}")
    return array
