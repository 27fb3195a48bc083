"""Training and test rows.  Every split is a function of its own names alone, never of run order.  A card's `splits`
names the split set in use, `set`; those of `gpbench.data.split_sets` have as many splits as `sets` or `folds` say.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from gpbench.config.cards import split_set, split_sets
from gpbench.data.dataset import Dataset
from gpbench.data.faults import refuse
from gpbench.data.split_sets import generator
from gpbench.data_registry import SPLIT_SETS
from gpbench.errors import ConfigError, require


def count(card: Mapping) -> int:
    """The number of splits of the split set in use.  Raises ConfigError for an unknown set."""
    return split_sets(card)[split_set(card)]


def split_numbers(card: Mapping, split: int | str | Sequence[int]) -> list[int]:
    """The numbers of these splits as a list.  Raises ConfigError: no such split."""
    last = count(card) - 1
    numbers = list(range(last + 1)) if split == "all" else [split] if isinstance(split, int) else list(split)
    known = f"{card['name']} has {f'splits 0 to {last}' if last else 'split 0 alone'}"
    refuse((f"split={k}: {known}" for k in numbers if not (isinstance(k, int) and 0 <= k <= last)), ConfigError)
    return numbers  # type: ignore[return-value]


def with_set(card: Mapping, name: str | None) -> Mapping:
    """The card with this split set in use; as it is with None."""
    return {**card, "splits": {**(card.get("splits") or {}), "set": name}} if name else card


def identity(card: Mapping) -> dict:
    """The part of a card that decides the rows of a split: the split set and the numbers it is made from."""
    count(card)
    name, splits = split_set(card), card.get("splits") or {}
    if "folds" in SPLIT_SETS[name].options.known:
        return {"set": name, "made_from": SPLIT_SETS[name].folds(splits)}
    rows = [splits.get("test_rows"), splits.get("train_rows")]
    made_from = dict.fromkeys(("yang", "raetsch"), card.get("folds_checksum"))
    made_from |= {"random": rows, "draws": rows, "official": splits.get("train_rows")}
    return {"set": name, "made_from": made_from.get(name)}


def indices(
    card: Mapping, dataset: Dataset, k: int, seed: int = 0, output: int | None = None
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """The numbers of the training rows and of the test rows of split k: of an output those that have it."""
    name, available, n = split_set(card), count(card), len(dataset.y)
    splits = f"{card['name']} has splits 0..{available - 1} in set {name!r}"
    require(0 <= k < available, f"split {k} out of range: {splits}", ConfigError)
    train, test = SPLIT_SETS[name].function(card, dataset, k)
    rows_are = f"rows are 0 to {n - 1}: its index files belong to other data"
    wrong = (row for rows in (train, test) for row in rows[(rows < 0) | (rows >= n)])  # NumPy counts -1 from the end
    refuse(f"{dataset.name}: split {k} of the set {name!r} has row {row}, and {rows_are}" for row in wrong)
    rows, mend = f"{n} rows", ""
    if output is not None and dataset.y.ndim == 2 and output < dataset.y.shape[1]:
        known = ~np.isnan(dataset.y[:, output])
        train, test, rows = train[known[train]], test[known[test]], f"{known.sum()} rows of {dataset.outputs[output]!r}"
        mend = f" in split {k}; name other splits or outputs by split= and output="
    few = f"{rows} are too few to split: the set {name} leaves {len(train)} to train and {len(test)} to test{mend}"
    require(len(train) > 1 and len(test), f"{card['name']}: {few}")
    order = generator(dataset.name, name, k, seed).permutation(len(train))
    return train[order].astype(np.int64, copy=False), test.astype(np.int64)


def fewest(card: Mapping, dataset: Dataset) -> int | None:
    """The fewest training rows of an output in the first 100 splits, where rows lack outputs; else None."""
    if dataset.y.ndim == 1 or not np.isnan(dataset.y).any():
        return None
    known = ~np.isnan(dataset.y)
    return min(int(known[indices(card, dataset, k)[0]].sum(axis=0).min()) for k in range(min(count(card), 100)))


def sizes(card: Mapping) -> tuple[int, int] | None:
    """The fewest training rows of a split and the test rows with them, where the card alone says them; else None."""
    count(card)
    name, splits, rows = split_set(card), card.get("splits") or {}, card.get("rows") or 0
    train = splits.get("train_rows") if name in ("random", "draws", "official") else None
    tests = dict.fromkeys(("random90", "stratified90", "hla", "hla_int8"), rows - round(0.9 * rows))
    tests |= dict.fromkeys(("random", "draws"), splits.get("test_rows"))
    tests |= {"official": rows - (train or 0), "kfold": -(-rows // SPLIT_SETS["kfold"].folds(splits))}
    return (train or rows - tests[name], tests[name]) if rows and name in tests else None
