"""Doubtful things in a data set, as a careful colleague would name them before anybody trains on it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gpbench import paths
from gpbench.config.cards import reader
from gpbench.data import splits
from gpbench.data.dataset import Dataset
from gpbench.data.faults import UNKNOWN, Finding
from gpbench.data.scaling import LARGEST
from gpbench.errors import listed

_Parts = Sequence[tuple[np.ndarray, np.ndarray]]  # training and test rows of some splits


def find(card: Mapping[str, Any], dataset: Dataset, parts: _Parts) -> list[Finding]:
    """Finds what is doubtful in a data set."""
    findings = [
        *dataset.notes,
        *_cells(dataset),
        *_inputs(card, dataset),
        *_of_target(card, dataset),
        *_repeated(card, dataset, parts),
        *(_classes(card, dataset, parts) if dataset.classes else _values(card, dataset)),
        *(_groups(dataset.groups, parts) if dataset.groups is not None else ()),
    ]
    if not (paths.conf_dir() / "dataset" / f"{card['name']}.yaml").exists():
        return findings
    # nobody edits the cards that ship: only a split set can be chosen on the command line
    sets = ((text, re.match(r"splits: \{set: (\w+)\}", mend)) for text, mend in findings)
    return [Finding(text, f"dataset.splits.set={match[1]}" if match else "") for text, match in sets]


def count_classes(dataset: Dataset) -> dict[str, int]:
    """Counts the rows of each class; none for numbers."""
    codes = dataset.y > 0 if dataset.task == "binary" else dataset.y
    return {name: int((codes == code).sum()) for code, name in enumerate(dataset.classes)}


def _cells(dataset: Dataset) -> Iterator[Finding]:
    """Missing cells, levels and classes that look like marks of them, and numbers whose squares float64 cannot hold."""
    for reason in dataset.left_out:
        quoted = re.match("'(.+)' ", reason)
        yield Finding(f"{reason}: no input", f"keep: [{quoted[1]}]" if quoted else "name it in the file to keep it")
    gaps = {name: int(np.isnan(column).sum()) for name, column in targets_of(dataset)}
    if any(gaps.values()):
        rows = listed([f"{name} {count}" for name, count in gaps.items() if count])
        yield Finding(f"rows that lack an output count for the others alone ({rows})")
    if missing := {name: n for name, count in dataset.missing.items() if (n := count - gaps.get(name, 0))}:
        cells = listed([f"{name} {count}" for name, count in missing.items()])
        remedy = "missing cells are filled" if dataset.impute else "rows with missing cells are left out"
        yield Finding(f"{remedy} ({cells})")
    for name, levels in {**dataset.levels, dataset.target: dataset.classes}.items():
        for level in levels:
            if level.lower() in ("", *UNKNOWN):
                yield Finding(f"{name!r} has the level {level!r}", f'missing: "{level}" if it marks missing cells')
        if name in dataset.levels and 2 * len(levels) > len(dataset.y):
            text = f"{name!r} has {len(levels):,} levels in {len(dataset.y):,} rows, as labels of rows have"
            yield Finding(text, f"drop: [{name}]")
    # splits fail where they train, and diverge where they test
    for name, column in [*zip(dataset.columns, dataset.X.T), *targets_of(dataset)]:
        row = int(np.nanargmax(np.abs(column)))
        if abs(column[row]) > LARGEST:
            text = f"{name!r} has {column[row]:.3g} in row {row + 1}, whose square float64 cannot hold"
            yield Finding(text, "mend it in the file, or mark it as missing")


def targets_of(dataset: Dataset) -> Iterable[tuple[str, Float[np.ndarray, " N"]]]:
    """The targets by name; NaN where a row lacks one of several."""
    return zip(dataset.outputs or (dataset.target,), dataset.y.reshape(len(dataset.y), -1).T)


def _inputs(card: Mapping[str, Any], dataset: Dataset) -> Iterator[Finding]:
    """Inputs without information, and inputs that only number the rows."""
    X, names = (dataset.X[:, :-1], dataset.columns[:-1]) if dataset.exposure else (dataset.X, dataset.columns)
    constant = np.ptp(X, axis=0) == 0
    if constant.any():
        same = [name for name, is_constant in zip(names, constant) if is_constant]
        yield Finding(f"constant: {listed(same)}", _drop(card, same))
    varied = np.flatnonzero(~constant)
    for first, second in _doubles(X, varied):
        yield Finding(f"{names[second]!r} is {names[first]!r} again, or linear in it", _drop(card, [names[second]]))
    for name, values in ((names[i], X[:, i]) for i in varied if len(X) >= 10):
        mend = _drop(card, [name])
        if _ascends(values):
            ordered = f"{mend} if it numbers them; order: {name}, splits: {{set: temporal}} if it is a time"
            text = f"{name!r} orders the rows: the test rows of random splits lie between training rows"
            yield Finding(text, mend and ordered)
        elif np.ptp(values) < 2 * len(X) and (values == np.rint(values)).all() and len({*values}) == len(X):
            yield Finding(f"{name!r} has a different whole number in each row, as labels do", mend)
        elif zeros := _zeros(values):
            yield Finding(f"{name!r} is 0 in {zeros} rows, far from all others: is it missing there?")
        if mark := _marker(values):
            yield Finding(f"{name!r} is {mark[0]:g} in {mark[1]} rows, far from all others", f"missing: {mark[0]:g}")


def _ascends(values: Float[np.ndarray, " N"]) -> bool:
    """Whether ten values or more come one after another, up or down."""
    steps = np.diff(values)
    return bool(np.count_nonzero(steps) >= 10 and ((steps >= 0).all() or (steps <= 0).all()))


def _doubles(X: Float[np.ndarray, "N D"], varied: Int[np.ndarray, " varied"]) -> Iterator[tuple[int, int]]:
    """Pairs of inputs of which the second is linear in the first: those of some rows, confirmed on all of them."""
    standard = lambda table: (table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-300)
    some = standard(X[:: -(-len(X) // 2000)][:, varied])
    is_double = np.triu(np.abs(some.T @ some) / len(some) > 1 - 1e-9, 1)
    for second in np.flatnonzero(is_double.any(axis=0)):
        pair = varied[[np.flatnonzero(is_double[:, second])[0], second]]
        if len(X) > 2 and abs(np.mean(standard(X[:, pair]).prod(axis=1))) > 1 - 1e-9:
            yield int(pair[0]), int(pair[1])


_MARKERS = (-9, 99, -99, -200, 999, -999, 9999, -9999, 99999, -99999)
"""Numbers that stand for missing cells in many files."""


def _marker(values: Float[np.ndarray, " N"]) -> tuple[int, int] | None:
    """A number that may mark missing cells, and how many: repeated, and farther out than all others are wide."""
    for mark in _MARKERS:
        is_mark = values == mark
        if (count := int(is_mark.sum())) > 1 and count < len(values) - 1:
            others = values[~is_mark]
            distance = others.min() - mark if mark < 0 else mark - others.max()
            if distance > np.ptp(others):
                return mark, count
    return None


def _zeros(values: Float[np.ndarray, " N"]) -> int:
    """The number of zeros, where few are zero and the others are many different numbers far above."""
    others = values[values != 0]
    zeros = len(values) - len(others)
    if not 1 < zeros < 0.1 * len(values) or others.min() < 0.1 * others.max():
        return 0
    return zeros if len({*others[:1000].tolist()}) > 10 else 0


def _of_target(card: Mapping[str, Any], dataset: Dataset) -> Iterator[Finding]:
    """Inputs that tell the target, and rows in its order."""
    tells = _separates if dataset.classes else _follows
    for name, column in targets_of(dataset):
        known = ~np.isnan(column)
        X, column = (dataset.X, column) if known.all() else (dataset.X[known], column[known])
        if len(column) < 10:
            continue
        if not dataset.classes and _ascends(column):
            yield Finding(f"the rows are in the order of {name!r}: a column that numbers them would tell it")
        some = slice(None, None, -(-len(column) // 1000))
        for of_input, values in zip(dataset.columns, X.T):
            if tells(values[some], column[some]) and tells(values, column):
                text = f"{of_input!r} alone tells {name!r}: is it known before {name!r} is?"
                yield Finding(text, _drop(card, [of_input]))


def _separates(values: Float[np.ndarray, " N"], labels: Float[np.ndarray, " N"]) -> bool:
    """Tests whether each class has an interval of its own."""
    order = np.lexsort([labels, values])
    values, labels = values[order], labels[order]
    changes = labels[1:] != labels[:-1]
    return bool(np.count_nonzero(changes) < len({*labels}) and not (changes & (values[1:] == values[:-1])).any())


def _follows(values: Float[np.ndarray, " N"], target: Float[np.ndarray, " N"]) -> bool:
    """Tests whether the correlation with the target, of numbers or of their ranks, is more than .999."""
    from scipy.stats import rankdata

    pair = (values, target)
    return any(abs(np.corrcoef(kind)[0, 1]) > 0.999 for kind in (pair, rankdata(pair, axis=1)))


def _repeated(card: Mapping[str, Any], dataset: Dataset, parts: _Parts) -> Iterator[Finding]:
    """Rows that stand more than once, and how many of them are trained on and tested."""
    n = len(dataset.y)
    inputs = _identities(dataset.X)
    rows = _identities(np.column_stack([inputs, dataset.y]))
    different = int(inputs.max()) + 1
    if repeats := n - int(rows.max()) - 1:
        both = span(int(np.isin(rows[test], rows[train]).sum()) for train, test in parts)
        tests = f"{both} of the {span(len(test) for _, test in parts)} test rows of a split are training rows"
        mend = "group: COLUMN, splits: {set: groups90} keeps them on one side"
        fact = f"{repeats:,} of {n:,} rows repeat{'s' if repeats == 1 else ''} another one"
        yield Finding(f"{fact}; {tests}", mend if both != "0" and _drop(card, []) else "")
    if (unlike := n - different - repeats) > 0:
        have = "rows have" if unlike > 1 else "row has"
        yield Finding(f"{unlike:,} {have} the inputs of another row and another target")
    if different < n / 2:
        yield Finding(f"the inputs have {different:,} different rows: more inducing points than that add nothing")


def _identities(table: Float[np.ndarray, "N D"]) -> Int[np.ndarray, " N"]:
    """A number for each different row, from hashes of 64 bits: sorting whole rows takes minutes for images."""
    import pandas as pd

    return np.unique(pd.util.hash_pandas_object(pd.DataFrame(table), index=False), return_inverse=True)[1]


def _classes(card: Mapping[str, Any], dataset: Dataset, parts: _Parts) -> Iterator[Finding]:
    counts = count_classes(dataset)
    rarest = min(counts, key=counts.__getitem__)
    stratified = splits.split_set(card) == "stratified90"  # which cannot keep the share of a class of few rows
    mend = "" if stratified else "splits: {set: stratified90} keeps the shares of classes"
    if counts[rarest] < 10 or counts[rarest] < 0.05 * len(dataset.y):
        yield Finding(f"class {rarest!r} has {counts[rarest]:,} of {len(dataset.y):,} rows")
    folded = [name.casefold() for name in counts]
    if alike := [name for name in counts if folded.count(name.casefold()) > 1]:
        code = -1 if len({*folded}) == 2 else 0
        mend_case = f'labels: {{"{alike[0]}": {code}, "{alike[1]}": {code}, ...}} joins them'
        yield Finding(f"classes that differ in case only: {listed(alike)}", mend_case)
    trained, tested = ([len(np.unique(dataset.y[rows])) for rows in kind] for kind in zip(*parts))
    if alone := tested.count(1):
        yield Finding(f"the test rows have one class only in {alone} of {len(parts)} splits: they have no AUC", mend)
    if lacking := sum(classes < len(counts) for classes in trained):
        yield Finding(f"the training rows lack a class in {lacking} of {len(parts)} splits", mend)


def _values(card: Mapping[str, Any], dataset: Dataset) -> Iterator[Finding]:
    if (threshold := card.get("threshold")) is not None:
        count, fault = int(np.sum(dataset.y > threshold)), ": scores of the tail say nothing of them"
        is_odd = count in (0, dataset.y.size)
        yield Finding(
            f"{count} of {dataset.y.size} targets are above the threshold {threshold:g}{fault if is_odd else ''}"
        )
    for name, column in targets_of(dataset):
        different = len(np.unique(column[~np.isnan(column)]))
        if different == 1:
            yield Finding(f"{name!r} has one value: there is nothing to learn")
        elif dataset.task != "count" and (mend := _transforms(column)):
            yield Finding(f"{name!r} is skewed: {mend}")
        elif dataset.task != "count" and different <= 10 and len(column) >= 5 * different:
            kind = "binary" if different == 2 else "multiclass"
            yield Finding(f"{name!r} has {different} different values", f"task: {kind} if they are classes")


def _transforms(column: Float[np.ndarray, " N"]) -> str:
    """The transforms that skewed numbers may need, with the numbers that say so; "" for others."""
    from scipy.stats import skew

    own = float(skew(column, nan_policy="omit"))
    if abs(own) <= 1.0:
        return ""
    of_log = float(skew(np.log(column), nan_policy="omit")) if np.nanmin(column) > 0 else np.inf
    log = f", of its logarithm {of_log:.2g}" if abs(of_log) < abs(own) / 2 else ""
    return f"skewness {own:.2g}{log}; try protocol.targets=yeo_johnson{' and log' if log else ''}"


def _groups(groups: Int[np.ndarray, " N"], parts: _Parts) -> Iterator[Finding]:
    if len(groups) == int(groups.max()) + 1:
        yield Finding("every row is a group of its own")
    elif torn := sum(bool(np.isin(groups[test], groups[train]).any()) for train, test in parts):
        yield Finding(f"groups are on both sides in {torn} of {len(parts)} splits", "splits: {set: groups90}")


def _drop(card: Mapping[str, Any], names: Sequence[str]) -> str:
    """The line that leaves out inputs, "" where the card's readers take none, or one is a part of a column."""
    if "table" not in map(reader, card["sources"]):
        return ""
    encoded = {column: f"{column}=" for source in card["sources"] for column in source.get("encode") or ()}
    parts = {name: column for name in names for column, start in encoded.items() if name.startswith(start)}
    columns = dict.fromkeys(parts.get(name, name) for name in names)
    rest = f", and take {listed(dict.fromkeys(parts.values()))} out of `encode`" if parts else ""
    return f"drop: [{', '.join(columns)}]{rest}"


def span(numbers: Iterable[int]) -> str:
    """Formats the smallest and the largest of some numbers, as in "3 to 5"."""
    ordered = sorted(numbers)
    return f"{ordered[0]:,} to {ordered[-1]:,}" if ordered[0] < ordered[-1] else f"{ordered[0]:,}"
