"""The local store: arrays at `<store>/<name>/<16 digits of the checksum>.npz`, checked at every load."""

import errno
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpbench import limits, npz
from gpbench.data.dataset import Dataset, canonical, checksum, differences
from gpbench.errors import DataError, failure, require
from gpbench.log import warn
from gpbench.outputs import whole_file

_NAMES = "names"
_RULES = ("levels", "impute", "indicators")
_KNOWN = {"X", "y", "groups", "order", *_RULES, "columns", "classes", "outputs", "target", _NAMES}


def path(card: Mapping, store: Path) -> Path | None:
    """The file of this data set in the store; None for a user's or a generated one without a checksum: not stored."""
    if card.get("checksum"):
        return store / card["name"] / f"{card['checksum'][:16]}.npz"
    if not any(source["kind"] in ("official", "copy") for source in card["sources"]):
        return None
    makes_arrays = [card.get(key) for key in ("task", "variant", "sources", "labels", "columns", "incomplete")]
    makes_arrays += [card["impute"]] if card.get("impute") else []
    digest = hashlib.sha256(json.dumps(makes_arrays, default=str).encode()).hexdigest()
    return store / card["name"] / f"as-fetched-{digest[:16]}.npz"


def get(card: Mapping, store: Path) -> Dataset | None:
    """The stored data set, None where there is none.  Raises DataError where the file is not what its name says."""
    file = path(card, store)
    if file is None or not file.is_file():
        return None
    try:
        with npz.opened(file, limits.DATA) as archive:
            arrays = dict(archive)
        others = [name for name in arrays if name not in _KNOWN and not name.startswith("fold_")]
        if _NAMES in arrays:  # not so in files from before there was a list, which zip's checksums do not cover
            others += {*arrays} ^ {*arrays.pop(_NAMES).tolist(), _NAMES}
        require(not others, f"{file} is damaged (an array has another name: {''.join(map(ascii, others[:1]))})")
        X, y = arrays["X"].astype("<f8"), arrays["y"]
        arrays.setdefault("outputs", np.array([], dtype=str))  # of a file from before there were any
        columns, classes, outputs = (tuple(map(str, arrays[key])) for key in ("columns", "classes", "outputs"))
        target = str(arrays.get("target", "target"))
        rules = {key: json.loads(str(arrays[key])) for key in _RULES if key in arrays}
        rules["levels"] = {name: tuple(levels) for name, levels in rules.get("levels", {}).items()}
    except npz.damaged() as error:
        raise DataError(f"{file} is damaged ({' '.join(str(error).split())})") from None
    folds = {key.removeprefix("fold_"): value for key, value in arrays.items() if key.startswith("fold_")}
    groups, order = arrays.get("groups"), arrays.get("order")
    actual = checksum(canonical(X, y, groups, order, folds))
    require(not differences(card, actual, folds), f"{file} is damaged (its arrays have another checksum)")
    return Dataset(
        card["name"], card["task"], X, y, columns, classes, actual, folds, outputs, groups, target, order, **rules
    )


def save(dataset: Dataset, card: Mapping, store: Path) -> None:
    """Keeps a data set.  Where that fails, a warning, and the run continues with the data in memory."""
    file = path(card, store)
    if file is None:
        return
    arrays = canonical(dataset.X, dataset.y, dataset.groups, dataset.order, {}) | {"X": _small(dataset.X)}
    arrays |= {key: np.array(getattr(dataset, key), dtype=str) for key in ("columns", "classes", "outputs", "target")}
    arrays |= {key: np.array(json.dumps(value)) for key in _RULES if (value := getattr(dataset, key))}
    arrays |= {f"fold_{key}": value for key, value in dataset.folds.items()}
    arrays = {_NAMES: np.array([*arrays]), **arrays}  # first, where no other entry's lengths can hide it
    try:
        with whole_file(file) as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
    except OSError as error:
        error.strerror = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        reason = failure(error, "set GPBENCH_STORE or --store to a folder that can be written")
        warn(f"{dataset.name} is not kept in {store}: {reason}")


def _small(X: np.ndarray) -> np.ndarray:
    """The numbers in an eighth or a quarter of the space where they are whole (images, ratings, times)."""
    for dtype in (np.uint8, np.int16):
        is_within = np.iinfo(dtype).min <= X.min() and X.max() <= np.iinfo(dtype).max
        if is_within and np.array_equal(small := X.astype(dtype), X):
            return small
    return X
