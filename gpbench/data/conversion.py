"""Tables as readers return them, made data sets: a card's labels, names, groups and splits applied, cells checked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gpbench.data import coding, filling, row_labels
from gpbench.data.dataset import Dataset, Raw, canonical, checksum
from gpbench.data.encoding import columns_of_table, labels_and_keys
from gpbench.data.faults import first_rows
from gpbench.errors import DataError, require

_REAL = "biuf"  # kinds of dtype
_SHAPES = {1: "(rows,)", 2: "(rows, outputs)"}
_NOUNS = {"group": "groups", "order": "rows of `order`", "split": "rows of `split`"}


def from_raw(card: Mapping, raw: Raw, labels: Mapping | None = None) -> Dataset:
    """Applies a card to a table: drops incomplete rows if the card says so, codes labels, names columns."""
    name, task = card["name"], card["task"]
    _check_array(name, "inputs", raw.X, _REAL, {2: "(rows, inputs)"})
    _check_array(name, "targets", raw.target, f"{_REAL}U", _SHAPES)
    X, target, of_rows = raw.X.astype("<f8"), raw.target, _labels_of_rows(card, raw)
    lengths = {"targets": len(target), **{_NOUNS[key]: len(array) for key, array in of_rows.items()}}
    counts = " and ".join(f"{length} {noun}" for noun, length in lengths.items())
    require({*lengths.values()} == {len(X)}, f"{name}: {len(X)} rows of inputs, but {counts}")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    outputs: tuple[str, ...] = ()
    if target.ndim == 2:
        several = f"{target.shape[1]} outputs, but task {task}; several are for regression only"
        require(task == "regression", f"{name}: {several}")
        outputs = _names(name, "outputs", target.shape[1], card.get("output_names") or raw.outputs, "y")
    count = max(1, len(outputs))
    expected = card.get("outputs") or count
    require(expected == count, f"{name}: the table has {count} outputs, but its card says {expected}")
    target_names = outputs or raw.outputs or ("target",)
    if task in ("regression", "count"):
        y, codes_of = coding.numbers_of(name, task, target, raw.numbers, target_names)
    else:
        y, codes_of = coding.labels_of(name, task, target, raw.numbers, labels or card.get("labels") or {})
    unlabelled = np.isnan(y).reshape(len(y), -1)
    columns = _names(name, "inputs", X.shape[1], (not raw.levels and card.get("columns")) or raw.columns, "x")
    of_table = columns_of_table(columns, raw.levels)
    impute, indicators = filling.rules(name, card.get("impute"), columns, raw.levels, X)
    is_filled = np.array([column in impute for column in columns], dtype=bool)
    lacking = {
        row_labels.column_of(card, key): (array < 0).any(axis=1) if key == "split" else row_labels.missing(array)
        for key, array in of_rows.items()
    }
    gaps = dict(zip(of_table, np.isnan(X).sum(axis=0).tolist()))
    gaps |= dict(zip(target_names, unlabelled.sum(axis=0).tolist()))
    gaps |= {column: int(lacks.sum()) for column, lacks in lacking.items()}
    rows = np.arange(len(X))
    if card.get("incomplete") == "drop":
        # a row that lacks some outputs is one of the others'
        lost = [unlabelled.all(axis=1), np.isnan(X[:, ~is_filled]).any(axis=1), *lacking.values()]
        rows = np.flatnonzero(~np.any(lost, axis=0))
        X, y, of_rows = X[rows], y[rows], {key: array[rows] for key, array in of_rows.items()}
    else:
        of_targets = {f"the target, column {column!r},": lacks for column, lacks in zip(target_names, unlabelled.T)}
        for column, lacks in {**of_targets, **lacking}.items():
            row_labels.require(f"{name}: {column}", lacks)
    if X.size == 0:
        left_out = f" ({'; '.join(raw.left_out)}; `keep` makes it one)" if raw.left_out and len(X) else ""
        notes = "".join(f"; {note.text}" for note in raw.notes)
        if len(X):
            raise DataError(f"{name}: no inputs{left_out}{notes}")
        void = next((f": column {column!r} is empty" for column, count in gaps.items() if count == len(raw.X)), "")
        raise DataError(f"{name}: no complete rows{void}")
    is_own = any(source.get("kind") == "file" for source in card.get("sources", ()))
    if is_own and (expected := card.get("rows")) and expected != len(X):
        raise DataError(f"{name}: the table has {len(X):,} rows in use, but its card says {expected:,}")
    if outputs and (empty := np.isnan(y).all(axis=0)).any():
        raise DataError(f"{name}: column {outputs[int(empty.argmax())]!r} has no number: take it out of `target`")
    if indicators:
        X = np.column_stack([X, *(np.isnan(X[:, columns.index(column)]) for column in indicators.values())])
        is_filled = np.append(is_filled, np.zeros(len(indicators), dtype=bool))
    columns += tuple(indicators)
    y, classes = codes_of(y, rows)
    if labels and card.get("labels"):  # a source's own spelling must not change the names of the classes
        classes = coding.classes_of(dict(zip(labels_and_keys((), card["labels"])[1], card["labels"].values())))
    X += 0.0  # -0.0 and 0.0 are one number, but two checksums
    y += 0.0
    filled = np.where(np.isnan(X) & is_filled, 0.0, X) if impute else X
    known = np.where(np.isnan(y), 0.0, y) if outputs else y
    check_finite(name, filled, known, [*of_table, *indicators], target_names, rows)
    groups = np.unique(of_rows["group"], return_inverse=True)[1].astype("<i8") if "group" in of_rows else None
    for key, value in raw.folds.items():
        kind = f"the index array {key!r} is of type {value.dtype}: must be whole numbers"
        require(value.dtype.kind in "biu", f"{name}: {kind}")
    folds = {**raw.folds, **({"fixed": of_rows["split"]} if "split" in of_rows else {})}
    folds = {key: np.ascontiguousarray(value, dtype="<i8") for key, value in folds.items()}
    order = of_rows.get("order")
    digest = checksum(canonical(X, y, groups, order, folds))
    missing = {column: count for column, count in gaps.items() if count}
    label = (outputs or raw.outputs or (str(card.get("target") or "target"),))[0]
    return Dataset(
        *(name, task, X, y, columns, classes, digest, folds, outputs, groups, label, order, raw.left_out, missing),
        *(raw.levels, impute, indicators, raw.account, raw.notes),
    )


def _labels_of_rows(card: Mapping, raw: Raw) -> dict[str, np.ndarray]:
    """Groups, order and parts in fixed splits as numbers, of those that the table has; NaN or -1 is a missing one."""
    title = {key: f"{card['name']}: {row_labels.column_of(card, key)}" for key in _NOUNS}
    parts = np.asarray(raw.split)
    if parts.dtype.kind == "U":
        parts = row_labels.fixed_parts([f"{title['split']}, split {k}" for k in range(parts.shape[1])], parts)
    groups = coding.groups_of(np.asarray(raw.groups), raw.numbers)
    arrays = {"group": groups, "order": row_labels.times(title["order"], raw.order), "split": parts}
    return {key: array for key, array in arrays.items() if len(array)}


def _check_array(name: str, noun: str, array: np.ndarray, kinds: str, shapes: Mapping[int, str]) -> None:
    """Raises DataError unless an array has so many axes, and real numbers or, where they may be, labels."""
    shape = f"{noun} of shape {array.shape}: must be {' or '.join(shapes.values())}"
    require(array.ndim in shapes, f"{name}: {shape}")
    require(array.dtype.kind in kinds, f"{name}: {noun} of type {array.dtype}: must be real numbers")


def _names(name: str, noun: str, count: int, labels: Sequence, letter: str) -> tuple[str, ...]:
    """The labels of `count` inputs or outputs as text; x1, x2, ... or y1, y2, ... by default."""
    names = tuple(map(str, labels or (f"{letter}{i + 1}" for i in range(count))))
    of_card = f"{len(names)} {noun.replace('inputs', 'columns')}"
    require(len(names) == count, f"{name}: {count} {noun}, but its card names {of_card}")
    listing = ", ".join(names[:20])
    require(len({*names}) == count, f"{name}: two {noun} have the same name; names are {listing}")
    return names


def check_finite(
    name: str,
    X: Float[np.ndarray, "N D"],
    y: Float[np.ndarray, " N *O"],
    columns: Iterable[str],
    outputs: Sequence[str] = (),
    rows: Int[np.ndarray, " N"] | None = None,
    mend: str = "",
) -> None:
    """Raises DataError that names the first column with NaN or infinite cells, how many there are, and the remedy."""
    columns, outputs = [*columns], outputs or ("target",)
    bad: dict[str, np.ndarray] = {}
    for names, table in ((columns, X), (outputs, y.reshape(len(y), -1))):
        for i in np.flatnonzero(~np.isfinite(table).all(axis=0)).tolist():
            bad.setdefault(names[i], table[:, i])
    for column, values in [*bad.items()][:1]:
        lacks = np.flatnonzero(~np.isfinite(values))
        location = "" if rows is None else f" ({first_rows(rows[lacks].tolist())})"
        more = f", and so have {len(bad) - 1} more" if len(bad) > 1 else ""
        if not mend and np.isnan(values).any():
            fill = "or fill them by `impute`, " if column in columns else ""
            mend = f"mend them, {fill}or drop such rows by `incomplete: drop` in the card"
        fact = f"column {column!r} has {len(lacks)} missing or infinite cells{location}{more}"
        raise DataError(f"{name}: {fact}; {mend or 'mend them'}")
