"""Tables as readers return them, made data sets: a card's labels, names, groups and splits applied, cells checked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gpbench.data import coding, filling, row_labels
from gpbench.data.dataset import Dataset, Raw, canonical, checksum
from gpbench.data.encoding import columns_of_table, labels_and_keys
from gpbench.data.faults import first_rows
from gpbench.errors import DataError


def from_raw(card: Mapping, raw: Raw, labels: Mapping | None = None) -> Dataset:
    """Applies a card to a table: drops incomplete rows if the card says so, codes labels, names columns.  Raises
    DataError: a table without rows, arrays of the wrong shape or type, missing or infinite cells, unknown labels, one
    class only, several outputs of a task other than regression, or sizes that are not the card's.
    """
    name, task = card["name"], card["task"]
    _check_arrays(name, raw.X, raw.target)
    X, target, groups = raw.X.astype("<f8"), raw.target, coding.groups_of(np.asarray(raw.groups), raw.numbers)
    order = row_labels.times(f"{name}: {row_labels.column_of(card, 'order')}", raw.order)
    parts = np.asarray(raw.split) if len(raw.split) else np.empty((0, 0), int)
    if parts.dtype.kind == "U":
        names = [f"{name}: {row_labels.column_of(card, 'split')}, split {k}" for k in range(parts.shape[1])]
        parts = row_labels.fixed_parts(names, parts)
    lengths = {
        "targets": len(target),
        "groups": len(groups),
        "rows of `order`": len(order),
        "rows of `split`": len(parts),
    }
    lengths = {noun: length for noun, length in lengths.items() if length or noun == "targets"}
    if {*lengths.values()} != {len(X)}:
        counts = " and ".join(f"{length} {noun}" for noun, length in lengths.items())
        raise DataError(f"{name}: {len(X)} rows of inputs, but {counts}")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    outputs: tuple[str, ...] = ()
    if target.ndim == 2:
        if task != "regression":
            raise DataError(f"{name}: {target.shape[1]} outputs, but task {task}; several are for regression only")
        outputs = _names(name, "outputs", target.shape[1], card.get("output_names") or raw.outputs, "y")
    if (expected := card.get("outputs")) and expected != max(1, len(outputs)):
        raise DataError(f"{name}: the table has {max(1, len(outputs))} outputs, but its card says {expected}")
    target_names = outputs or raw.outputs or ("target",)
    if task in ("regression", "count"):
        y, codes_of = coding.numbers_of(name, task, target, raw.numbers, target_names)
    else:
        y, codes_of = coding.labels_of(name, task, target, raw.numbers, labels or card.get("labels") or {})
    unlabelled = np.isnan(y).reshape(len(y), -1)
    columns = _names(name, "inputs", X.shape[1], (not raw.levels and card.get("columns")) or raw.columns, "x")
    impute, indicators = filling.rules(name, card.get("impute"), columns, raw.levels, X)
    required = np.array([column not in impute for column in columns], dtype=bool)
    of_rows: dict[str, np.ndarray] = {"group": row_labels.missing(groups), "order": row_labels.missing(order)}
    of_rows["split"] = np.asarray((parts < 0).any(axis=1))
    lacking = {row_labels.column_of(card, noun): lacks for noun, lacks in of_rows.items() if len(lacks)}
    gaps = dict(zip(columns_of_table(columns, raw.levels), np.isnan(X).sum(axis=0).tolist()))
    gaps |= dict(zip(target_names, unlabelled.sum(axis=0).tolist()))
    gaps |= {column: int(lacks.sum()) for column, lacks in lacking.items()}
    if card.get("incomplete") == "drop":
        # a row that lacks some outputs is one of the others'
        lost = [unlabelled.all(axis=1), np.isnan(X[:, required]).any(axis=1), *lacking.values()]
        rows = np.flatnonzero(~np.any(lost, axis=0))
        X, y = X[rows], y[rows]
        groups, order, parts = (array[rows] if len(array) else array for array in (groups, order, parts))
    else:
        rows = np.arange(len(X))
        for column, lacks in zip(target_names, unlabelled.T):
            row_labels.require(f"{name}: the target, column {column!r},", lacks)
        for column, lacks in lacking.items():
            row_labels.require(f"{name}: {column}", lacks)
    if X.size == 0:
        left_out = f" ({'; '.join(raw.left_out)}; `keep` makes it one)" if raw.left_out and len(X) else ""
        notes = "".join(f"; {note.text}" for note in raw.notes)
        if len(X):
            raise DataError(f"{name}: no inputs{left_out}{notes}")
        void = next((f": column {column!r} is empty" for column, count in gaps.items() if count == len(raw.X)), "")
        raise DataError(f"{name}: no complete rows{void}")
    is_own = any(source["kind"] == "file" for source in card.get("sources", ()))
    if is_own and (expected := card.get("rows")) and expected != len(X):
        raise DataError(f"{name}: the table has {len(X):,} rows in use, but its card says {expected:,}")
    if outputs and (empty := np.isnan(y).all(axis=0)).any():
        raise DataError(f"{name}: column {outputs[int(empty.argmax())]!r} has no number: take it out of `target`")
    if indicators:
        X = np.column_stack([X, *(np.isnan(X[:, columns.index(column)]) for column in indicators.values())])
    columns += tuple(indicators)
    y, classes = codes_of(y, rows)
    if labels and card.get("labels"):  # a source's own spelling must not change the names of the classes
        classes = coding.classes_of(dict(zip(labels_and_keys((), card["labels"])[1], card["labels"].values())))
    X += 0.0  # -0.0 and 0.0 are one number, but two checksums
    y += 0.0
    filled = np.where(np.isnan(X) & [column in impute for column in columns], 0.0, X) if impute else X
    known = np.where(np.isnan(y), 0.0, y) if outputs else y
    check_finite(name, filled, known, columns_of_table(columns, raw.levels), target_names, rows)
    numbers = np.unique(groups, return_inverse=True)[1].astype("<i8") if groups.size else None
    for key, value in raw.folds.items():
        if value.dtype.kind not in "biu":
            raise DataError(f"{name}: the index array {key!r} is of type {value.dtype}: must be whole numbers")
    folds = {key: np.ascontiguousarray(value, dtype="<i8") for key, value in raw.folds.items()}
    folds |= {"fixed": np.ascontiguousarray(parts, dtype="<i8")} if parts.size else {}
    places = order if order.size else None
    digest = checksum(canonical(X, y, numbers, places, folds))
    return Dataset(
        name=name,
        task=task,
        X=X,
        y=y,
        columns=columns,
        classes=classes,
        checksum=digest,
        folds=folds,
        outputs=outputs,
        groups=numbers,
        target=(outputs or raw.outputs or (str(card.get("target") or "target"),))[0],
        order=places,
        left_out=raw.left_out,
        missing={column: count for column, count in gaps.items() if count},
        levels=raw.levels,
        impute=impute,
        indicators=indicators,
        account=raw.account,
        notes=raw.notes,
    )


def _check_arrays(name: str, X: np.ndarray, target: np.ndarray) -> None:
    """Raises DataError unless inputs are a matrix of real numbers, and targets a vector or matrix of such or labels."""
    for noun, array, kinds, shapes in (
        ("inputs", X, _REAL, {2: "(rows, inputs)"}),
        ("targets", target, _REAL + "U", {1: "(rows,)", 2: "(rows, outputs)"}),
    ):
        if array.ndim not in shapes:
            raise DataError(f"{name}: {noun} of shape {array.shape}: must be {' or '.join(shapes.values())}")
        if array.dtype.kind not in kinds:
            raise DataError(f"{name}: {noun} of type {array.dtype}: must be real numbers")


_REAL = "biuf"  # kinds of dtype


def _names(name: str, noun: str, count: int, labels: Sequence, letter: str) -> tuple[str, ...]:
    """The labels of `count` inputs or outputs as text; x1, x2, ... or y1, y2, ... by default."""
    names = tuple(map(str, labels or (f"{letter}{i + 1}" for i in range(count))))
    if len(names) != count:
        raise DataError(f"{name}: {count} {noun}, but its card names {len(names)} {noun.replace('inputs', 'columns')}")
    if len(set(names)) < count:
        raise DataError(f"{name}: two {noun} have the same name; names are {', '.join(names[:20])}")
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
    if not bad:
        return
    column, values = next(iter(bad.items()))
    lacks = np.flatnonzero(~np.isfinite(values))
    location = "" if rows is None else f" ({first_rows(rows[lacks].tolist())})"
    more = f", and so have {len(bad) - 1} more" * (len(bad) > 1)
    remedies = ["mend them"]
    if np.isnan(values).any():
        remedies += ["fill them by `impute`"] * (column in columns) + ["drop such rows by `incomplete: drop`"]
    mend = mend or ", or ".join(remedies) + " in the card" * (len(remedies) > 1)
    raise DataError(f"{name}: column {column!r} has {len(lacks)} missing or infinite cells{location}{more}; {mend}")
