"""Training and test rows, and the members of runs; every split is a function of its own names alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from gpbench.config.cards import split_set, split_sets
from gpbench.config.values import RECALIBRATIONS
from gpbench.data.dataset import Dataset
from gpbench.data.faults import reject
from gpbench.data.split_sets import check_sizes, generator
from gpbench.data_registry import SPLIT_SETS
from gpbench.errors import ConfigError, either, require

_Choice = int | str | Sequence[int]  # `all`, a number from 0, or a list of them


def count(card: Mapping) -> int:
    """The number of splits of the split set in use.  Raises ConfigError for an unknown set."""
    return split_sets(card)[split_set(card)]


def split_numbers(card: Mapping, split: _Choice) -> list[int]:
    """The numbers of these splits as a list.  Raises ConfigError: no such split."""
    last = count(card) - 1
    known = f"splits 0 to {last}" if last else "split 0 alone"
    return _numbers("split", split, last + 1, f"{card['name']} has {known}")


def _numbers(key: str, choice: _Choice, count: int, known: str) -> list[int]:
    """The numbers of a choice, all below `count`.  Raises ConfigError, which says what is known."""
    numbers = [*range(count)] if choice == "all" else [choice] if isinstance(choice, int | str) else [*choice]
    reject((f"{key}={k}: {known}" for k in numbers if not (isinstance(k, int) and 0 <= k < count)), ConfigError)
    return [int(k) for k in numbers]


def with_set(card: Mapping, name: str | None) -> Mapping:
    """The card with this split set in use; as it is with None."""
    return {**card, "splits": {**(card.get("splits") or {}), "set": name}} if name else card


def identity(card: Mapping) -> dict:
    """The part of a card that decides the rows of a split: the split set and the numbers it is made from."""
    count(card)
    name, splits = split_set(card), card.get("splits") or {}
    if "folds" in SPLIT_SETS[name].options.keys:
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
    reject(f"{dataset.name}: split {k} of the set {name!r} has row {row}, and {rows_are}" for row in wrong)
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
    train, test = splits.get("train_rows") or 0, splits.get("test_rows") or 0
    if rows and name in ("random", "draws"):
        check_sizes(card["name"], rows, test, train)
        return train or rows - test, test
    tests = dict.fromkeys(("random90", "stratified90", "hla", "hla_int8"), rows - round(0.9 * rows))
    tests |= {"official": rows - train, "kfold": -(-rows // SPLIT_SETS["kfold"].folds(splits))}
    return (rows - tests[name], tests[name]) if rows and name in tests else None


def recalibration_rows(name: str | None, task: str, rows: int) -> int:
    """How many of these rows a recalibration keeps out of training: a tenth, 50 to 5,000.  Raises ConfigError."""
    if name is None:
        return 0
    key, tasks, count = f"protocol.recalibrate={name}", RECALIBRATIONS[name], min(max(round(0.1 * rows), 50), 5_000)
    require(task in tasks, f"{key} is for {either(tasks)} data, and these are {task}: leave it out", ConfigError)
    fault = f"{key} keeps {count} training rows out, and there are {rows}: it needs twice as many"
    require(rows >= 2 * count, fault, ConfigError)
    return count


class Member(NamedTuple):
    """A split and the number of an output, None for a data set with one output."""

    split: int
    output: int | None = None

    @property
    def identity(self) -> dict[str, int]:
        """The part of a run's identity that the member decides."""
        return {"split": self.split} | self.cell

    @property
    def cell(self) -> dict[str, int]:
        """The part of a cell's identity that the member decides: the output."""
        return {} if self.output is None else {"output": self.output}


def members(card: Mapping, split: _Choice, output: _Choice = "all") -> list[Member]:
    """The members of these splits and outputs, split by split.  Raises ConfigError: no such split or output."""
    return [Member(k, o) for k in split_numbers(card, split) for o in outputs(card, output)]


def outputs(card: Mapping, output: _Choice) -> list[int | None]:
    """The numbers of these outputs, [None] for a data set with one output.  Raises ConfigError: no such output."""
    count = int(card.get("outputs") or 1)
    if count == 1:
        sole = f"{card['name']} has one output only; leave `output` out"
        require(output in ("all", 0), f"output={output}: {sole}", ConfigError)
        return [None]
    return list(_numbers("output", output, count, f"{card['name']} has outputs 0 to {count - 1}"))


def name_of_output(card: Mapping, output: int | None) -> str:
    """The name of the output of this number, as in `Dataset.outputs`; "" for None."""
    if output is None:
        return ""
    names = card.get("output_names")
    return str(names[output]) if names else f"y{output + 1}"


def label(group: Sequence[Member]) -> str:
    """A label for a group of members: "splits 0-4", or "split 0, outputs 0-8"."""
    split_numbers = sorted({member.split for member in group})
    output_numbers = sorted({member.output for member in group if member.output is not None})
    parts = []
    for noun, numbers in (("split", split_numbers), ("output", output_numbers)):
        if numbers:
            consecutive = numbers == [*range(numbers[0], numbers[-1] + 1)]
            several = f"{numbers[0]}-{numbers[-1]}" if consecutive else ",".join(map(str, numbers))
            parts.append(f"{noun}s {several}" if len(numbers) > 1 else f"{noun} {numbers[0]}")
    return ", ".join(parts)
