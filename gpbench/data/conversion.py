"""Tables as readers return them, made data sets: a card's labels, names, groups and splits applied, cells checked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gpbench.data import filling, row_labels
from gpbench.data.cells import number
from gpbench.data.dataset import Dataset, Raw, canonical, checksum
from gpbench.data.encoding import columns_of_table, in_order, normal_label
from gpbench.data.faults import fault, first_rows
from gpbench.errors import DataError


def from_raw(card: Mapping, raw: Raw, labels: Mapping | None = None) -> Dataset:
    """Applies a card to a table: drops incomplete rows if the card says so, codes labels, names columns.

    Args:
        card: the data card.
        raw: the table.
        labels: codes by label, instead of the card's, for a source that spells them differently.

    Raises:
        DataError: a table without rows, arrays of the wrong shape or type, missing or infinite cells, unknown labels,
            one class only, several outputs of a task other than regression, or sizes that are not the card's.
    """
    name, task = card["name"], card["task"]
    _check_arrays(name, raw.X, raw.target)
    X, target, groups = raw.X.astype("<f8"), raw.target, np.asarray(raw.groups)
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
    unlabelled = row_labels.missing(target).reshape(len(target), -1)
    columns = _names(name, "inputs", X.shape[1], (not raw.levels and card.get("columns")) or raw.columns, "x")
    impute, indicators = filling.rules(name, card.get("impute"), columns, raw.levels, X)
    required = np.array([column not in impute for column in columns], dtype=bool)
    lacking = {noun: row_labels.missing(a) for noun, a in (("group", groups), ("order", order)) if len(a)}
    if card.get("incomplete") == "drop":
        gaps = [unlabelled.any(axis=1), np.isnan(X[:, required]).any(axis=1), *lacking.values()]
        rows = np.flatnonzero(~np.any(gaps, axis=0))
        X, target = X[rows], target[rows]
        groups, order, parts = (array[rows] if len(array) else array for array in (groups, order, parts))
    else:
        rows = np.arange(len(X))
        for column, lacks in zip(target_names, unlabelled.T):
            row_labels.require(f"{name}: the target, column {column!r},", lacks)
        for noun, lacks in lacking.items():
            row_labels.require(f"{name}: {row_labels.column_of(card, noun)}", lacks)
    if X.size == 0:
        left_out = f" ({'; '.join(raw.left_out)}; `keep` makes it one)" if raw.left_out and len(X) else ""
        raise DataError(f"{name}: {f'no inputs{left_out}' if len(X) else 'no complete rows'}")
    if indicators:
        X = np.column_stack([X, *(np.isnan(X[:, columns.index(column)]) for column in indicators.values())])
    columns += tuple(indicators)
    y, classes = _codes(name, task, target, labels or card.get("labels"), target_names)
    if labels and card.get("labels"):  # a source's own spelling must not change the names of the classes
        classes = _classes({normal_label(key): code for key, code in card["labels"].items()})
    X += 0.0  # -0.0 and 0.0 are one number, but two checksums
    y += 0.0
    filled = np.where(np.isnan(X) & [column in impute for column in columns], 0.0, X) if impute else X
    check_finite(name, filled, y, columns_of_table(columns, raw.levels), target_names, rows)
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
        levels=raw.levels,
        impute=impute,
        indicators=indicators,
        file=raw.file,
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
    """Raises DataError that names the first column with NaN or infinite cells, how many there are, and the remedy.

    Args:
        name: name of the data set, for the message.
        X, y: inputs and targets.
        columns, outputs: their columns; several inputs may come from one.
        rows: numbers of the rows in their table, from 0; None where they have none.
        mend: the remedy, in place of what a card would say.
    """
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


def _codes(
    name: str, task: str, target: np.ndarray, labels: Mapping | None, outputs: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets as float64, and the class names in order of code."""
    if task in ("regression", "count"):
        if target.dtype.kind == "U":
            for (row, column), cell in np.ndenumerate(target.reshape(len(target), -1)):
                if number(cell) is None:
                    fact, mend = fault(str(cell))
                    if "`drop`" in mend:  # nobody drops a target
                        mend = "say `task: multiclass` for classes" * fact.endswith("is not a number")
                    raise DataError(f"{name}: column {outputs[column]!r}, row {row + 1}: {fact}; {mend}".rstrip("; "))
        y = target.astype("<f8")
        if task == "count":
            check_counts(name, y, outputs[0])
        return y, ()
    values, index = np.unique(target, return_inverse=True)
    spellings = [normal_label(value) for value in values]
    present = sorted(set(spellings))
    if len(present) < 2:
        raise DataError(f"{name}: one class only ({present[0]!r}); classification needs two")
    codes = {normal_label(key): int(code) for key, code in labels.items()} if labels else _number(name, task, present)
    if unknown := [label for label in present if label not in codes]:
        yaml = unknown[0].lower() in ("yes", "no", "on", "off") and {*codes} & {"True", "False"}
        mend = "; quote yes, no, on and off: YAML reads them as true and false" if yaml else ""
        raise DataError(f"{name}: label {unknown[0]!r} is not in the card's labels ({', '.join(codes)}){mend}")
    expected = [-1, 1] if task == "binary" else list(range(max(codes.values()) + 1))
    if sorted(set(codes.values())) != expected:
        raise DataError(f"{name}: the card's labels must have the codes {expected} for task {task}")
    return np.array([codes[label] for label in spellings], dtype="<f8")[index], _classes(codes)


def check_counts(
    name: str, y: Float[np.ndarray, " N"], column: str = "target", mend: str = "say `task: regression`"
) -> None:
    """Raises DataError, which names the column, the first such row and how to mend it, unless all are counts."""
    bad = np.flatnonzero(np.isfinite(y) & ((y < 0) | (y != np.floor(y))))  # others have a message of their own
    if bad.size:
        raise DataError(
            f"{name}: column {column!r}, row {bad[0] + 1}: {y[bad[0]]:g} is no count (0, 1, 2, ...); mend it, or {mend}"
        )


def _classes(codes: Mapping[str, int]) -> tuple[str, ...]:
    """Class names in order of code; labels that share a code are joined."""
    return tuple("/".join(key for key in codes if codes[key] == code) for code in sorted(set(codes.values())))


def _number(name: str, task: str, labels: list[str]) -> dict[str, int]:
    """Codes for labels that no card lists: in numerical order where they are numbers, else alphabetical."""
    ordered = in_order(labels)
    if task == "binary" and len(ordered) != 2:
        regression = ", `task: regression` if they are numbers" * all(number(label) is not None for label in labels)
        mend = f"`task: multiclass`{regression}, or give `labels` with codes -1 and 1"
        raise DataError(f"{name}: {len(ordered)} classes; say {mend}")
    return {label: 2 * i - 1 if task == "binary" else i for i, label in enumerate(ordered)}
