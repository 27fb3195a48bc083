"""Training and test rows.  Every split is a function of its own names alone, never of run order.

Split sets: `random90` (seeded 90/10), `groups90` (the same of groups of rows that stay together, such as trajectories),
`random` (seeded: `test_rows` rows test, and of the others all or `train_rows` train; the test rows are the same however
many train), `hla` (Hernández-Lobato & Adams 2015, 20 x 90/10), `hla_int8` (the same index files read as 8-bit integers,
a fault of the paper `aep_dgp`: its test rows are training rows), `yang` (ten disjoint folds that
came with the data), `raetsch` (index files that came with the data), `official` (the first `train_rows` rows), `draws`
(the first `test_rows` rows test in every split, and each split has `train_rows` training rows of its own after them).
A card's `splits` names the sets it has, `sets: {name: count}`, and the one in use, `set`.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from gpbench.data.dataset import Dataset
from gpbench.data_registry import SPLIT_SETS
from gpbench.errors import ConfigError, DataError, nearest

_DEFAULT: Mapping = {"set": "random90", "sets": {"random90": 20}}  # of a card that says nothing


def _split_set(card: Mapping) -> tuple[str, int]:
    """The split set in use and how many splits it has."""
    splits = card.get("splits") or _DEFAULT
    sets = splits.get("sets") or _DEFAULT["sets"]
    name = splits.get("set") or next(iter(sets))
    if name not in sets or name not in SPLIT_SETS:
        raise ConfigError(f"{card['name']} has no split set {name!r}: {nearest(name, set(sets) & set(SPLIT_SETS))}")
    return name, int(sets[name])


def count(card: Mapping) -> int:
    """The number of splits of the split set in use.  Raises ConfigError for an unknown set."""
    return _split_set(card)[1]


def split_numbers(card: Mapping, split: int | str | Sequence[int]) -> list[int]:
    """The numbers of these splits as a list.

    Args:
        card: the data card.
        split: "all", a number from 0, or a list of numbers.

    Raises:
        ConfigError: no such split.
    """
    last = count(card) - 1
    numbers = list(range(last + 1)) if split == "all" else [split] if isinstance(split, int) else list(split)
    for k in numbers:
        if not isinstance(k, int) or not 0 <= k <= last:
            there_are = f"splits 0 to {last}" if last else "split 0 alone"
            raise ConfigError(f"split={k}: {card['name']} has {there_are}")
    return numbers  # type: ignore[return-value]


def with_set(card: Mapping, name: str | None) -> Mapping:
    """The card with this split set in use; as it is with None."""
    return {**card, "splits": {**(card.get("splits") or _DEFAULT), "set": name}} if name else card


def identity(card: Mapping) -> dict:
    """The part of a card that decides the rows of a split: the split set and the numbers it is made from."""
    name, _ = _split_set(card)
    splits = card.get("splits") or _DEFAULT
    made_from = {
        "official": splits.get("train_rows"),
        "random": [splits.get("test_rows"), splits.get("train_rows")],
        "draws": [splits.get("test_rows"), splits.get("train_rows")],
        "yang": card.get("folds_checksum"),
        "raetsch": card.get("folds_checksum"),
    }
    return {"set": name, "made_from": made_from.get(name)}


def indices(
    card: Mapping, dataset: Dataset, k: int, seed: int = 0
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """The numbers of the training rows and of the test rows of split k.

    Args:
        card: the data card, which names the split set.
        dataset: the data set.
        k: number of the split, from 0.
        seed: changes the order of the training rows, which is random, and nothing else.

    Raises:
        ConfigError: no such split.
        DataError: too few rows, no index files, or index files that do not fit the rows.
    """
    name, available = _split_set(card)
    if not 0 <= k < available:
        raise ConfigError(f"split {k} out of range: {card['name']} has splits 0..{available - 1} in set {name!r}")
    train, test = SPLIT_SETS[name].function(card, dataset, k)
    _check_rows(dataset, name, k, (train, test))
    if len(train) < 2 or len(test) < 1:
        raise DataError(f"{card['name']}: {len(dataset.y)} rows are too few to split")
    order = _generator(dataset.name, name, k, seed).permutation(len(train))
    return train[order].astype(np.int64), test.astype(np.int64)


def sizes(card: Mapping) -> tuple[int, int] | None:
    """The numbers of training and test rows of every split, where the card alone says them; else None.

    Raises ConfigError for an unknown set.
    """
    name, _ = _split_set(card)
    splits, rows = card.get("splits") or _DEFAULT, card.get("rows")
    if not rows or name not in ("random90", "hla", "hla_int8", "random", "official", "draws"):
        return None
    if name in ("random", "draws"):
        test, train = splits["test_rows"], splits.get("train_rows")
        return train or rows - test, test
    train = splits["train_rows"] if name == "official" else round(0.9 * rows)
    return train, rows - train


def _check_rows(dataset: Dataset, name: str, k: int, parts: Sequence[np.ndarray]) -> None:
    """Raises DataError for row numbers that the data set does not have; NumPy counts negative ones from the end."""
    n = len(dataset.y)
    for rows in parts:
        if (outside := rows[(rows < 0) | (rows >= n)]).size:
            rows_are = f"rows are 0 to {n - 1}: its index files belong to other data"
            raise DataError(f"{dataset.name}: split {k} of the set {name!r} has row {outside[0]}, and {rows_are}")


def _generator(*names) -> np.random.Generator:
    """A stream of its own for these names, the same on every machine and in every run order."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def random90(card, dataset, k):
    """Nine tenths of the rows and a tenth, at random."""
    n = len(dataset.y)
    order = _generator(dataset.name, k).permutation(n)
    return order[: round(0.9 * n)], order[round(0.9 * n) :]


def groups90(card, dataset, k):
    """The same of groups of rows, which stay together."""
    if dataset.groups is None:
        raise DataError(f"{dataset.name} has no groups of rows to split by; a source names them by `group`")
    if (n := int(dataset.groups.max()) + 1) < 2:
        raise DataError(f"{dataset.name}: all rows are one group: the column of `group` has one value, and needs two")
    tested = _generator(dataset.name, "groups90", k).permutation(n)[min(round(0.9 * n), n - 1) :]
    tests = np.isin(dataset.groups, tested)
    return np.flatnonzero(~tests), np.flatnonzero(tests)


def random(card, dataset, k):
    """Random test rows, the same however many rows train."""
    n, test, train = len(dataset.y), card["splits"].get("test_rows"), card["splits"].get("train_rows")
    if not test or test + (train or 0) > n:
        raise ConfigError(
            f"{card['name']}: splits.test_rows={test} and splits.train_rows={train} of {n} rows: give a"
            " number of test rows, and no more than the rows there are"
        )
    order = _generator(dataset.name, "random", k).permutation(n)
    return order[test:][:train], order[:test]


def hla(card, dataset, k):
    """The published index files of Hernández-Lobato and Adams (2015)."""
    # The published index files are k+1 draws from one legacy stream; NumPy freezes that stream for good.
    n, stream = len(dataset.y), np.random.RandomState(1)
    for _ in range(k + 1):
        order = stream.choice(n, n, replace=False)
    return order[: round(0.9 * n)], order[round(0.9 * n) :]


def hla_int8(card, dataset, k):
    """The same files read as 8-bit integers."""
    # 300 becomes 44 and 8191 becomes -1, the last row: each index names one of 256 rows
    n = len(dataset.y)
    return tuple(rows.astype(np.int8).astype(np.int64) % n for rows in hla(card, dataset, k))


def yang(card, dataset, k):
    """Fold k and the other folds."""
    fold = _folds(dataset, "yang", 1)
    if len(fold) != len(dataset.y):
        raise DataError(f"{dataset.name} has {len(dataset.y)} rows, and its index files are for {len(fold)}")
    return np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def raetsch(card, dataset, k):
    """The published index files of each split."""
    parts = [_folds(dataset, f"raetsch_{name}", 2) for name in ("train", "test")]
    if k >= (available := min(map(len, parts))):
        raise DataError(f"{dataset.name}: split {k} of the set 'raetsch': the index files have {available} splits")
    return parts[0][k], parts[1][k]


def official(card, dataset, k):
    """The first rows and the others."""
    return np.split(np.arange(len(dataset.y)), [int(card["splits"]["train_rows"])])


def draws(card, dataset, k):
    """The first rows test; each split trains on rows of its own after them."""
    n, test, train = len(dataset.y), card["splits"]["test_rows"], card["splits"]["train_rows"]
    start = test + k * train
    if start + train > n:
        sizes = f"splits.test_rows={test} and splits.train_rows={train}"
        raise ConfigError(f"{card['name']}: {sizes}: split {k} needs {start + train} rows, and there are {n}")
    return np.arange(start, start + train), np.arange(test)


def _folds(dataset: Dataset, key: str, axes: int) -> np.ndarray:
    if key not in dataset.folds:
        raise DataError(
            f"{dataset.name} came from a source without the index files of this split set; "
            f"set GPBENCH_MIRROR to a mirror that has them and run `gpbench data fetch --again {dataset.name}`"
        )
    if (array := dataset.folds[key]).ndim != axes:
        raise DataError(f"{dataset.name}: the index array {key!r} has {array.ndim} axes, not {axes}")
    return array
