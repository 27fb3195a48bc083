"""Tables as readers return them, made data sets: a card's labels, names, groups and splits applied, cells checked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gpbench.data import row_labels
from gpbench.data.cells import Numbers, number
from gpbench.data.dataset import Dataset, Raw, canonical, checksum
from gpbench.data.encoding import columns_of_table, filling_rules, in_order, labels_and_keys, quoting_hint
from gpbench.data.faults import fault, first_rows, reject
from gpbench.errors import DataError, listed, require

_NUMERIC = ("regression", "count")  # tasks whose targets are numbers

_NOUNS = {"group": "groups", "order": "rows of `order`", "split": "rows of `split`"}


def from_raw(card: Mapping, raw: Raw, labels: Mapping | None = None) -> Dataset:
    """Applies a card to a table: drops incomplete rows if the card says so, codes labels, names columns."""
    name, task, of_rows = card["name"], card["task"], _labels_of_rows(card, raw)
    _check_form(card, raw, of_rows)
    X, target = raw.X.astype("<f8"), raw.target
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    labels_of_outputs = card.get("output_names") or raw.outputs
    outputs = _names(name, "outputs", target.shape[1], labels_of_outputs, "y") if target.ndim == 2 else ()
    target_names = outputs or raw.outputs or ("target",)
    codes = labels or card.get("labels") or {}
    values = _values_of(task, target, raw.numbers, codes)
    unlabelled = row_labels.missing(values).reshape(len(X), -1)
    columns = _names(name, "inputs", X.shape[1], (not raw.levels and card.get("columns")) or raw.columns, "x")
    of_table = columns_of_table(columns, raw.levels)
    impute, indicators = filling_rules(name, card.get("impute"), columns, raw.levels, X)
    is_filled = np.array([column in impute for column in columns], dtype=bool)
    lacking = {
        row_labels.column_of(card, key): (array < 0).any(axis=1) if key == "split" else row_labels.missing(array)
        for key, array in of_rows.items()
    }
    is_absent = np.column_stack([np.isnan(X), unlabelled, *lacking.values()])
    gaps = dict(zip([*of_table, *target_names, *lacking], is_absent.sum(axis=0).tolist()))
    rows = np.arange(len(X))
    if card.get("incomplete") == "drop":
        # a row that lacks some outputs is one of the others'
        lost = [unlabelled.all(axis=1), np.isnan(X[:, ~is_filled]).any(axis=1), *lacking.values()]
        rows = np.flatnonzero(~np.any(lost, axis=0))
        X, values, target = X[rows], values[rows], target[rows]
        of_rows = {key: array[rows] for key, array in of_rows.items()}
    else:
        of_targets = {f"the target, column {column!r},": lacks for column, lacks in zip(target_names, unlabelled.T)}
        mend = "fill in what is missing, or drop such rows by `incomplete: drop` in the card"
        for column, lacks in {**of_targets, **lacking}.items():
            absent = np.flatnonzero(lacks).tolist()
            cells = f"{len(absent)} missing cell{'s' if len(absent) > 1 else ''} ({first_rows(absent)})"
            require(not absent, f"{name}: {column} has {cells}; {mend}")
    _check_size(card, raw, X, [column for column, count in gaps.items() if count == len(raw.X)])
    empty = (column for column, lacks in zip(outputs, row_labels.missing(values).T) if lacks.all())
    reject(f"{name}: column {column!r} has no number: take it out of `target`" for column in empty)
    if indicators:
        X = np.column_stack([X, *(np.isnan(X[:, columns.index(column)]) for column in indicators.values())])
        is_filled = np.append(is_filled, np.zeros(len(indicators), dtype=bool))
    columns += tuple(indicators)
    y, classes = values, tuple[str, ...]()
    if task in _NUMERIC:
        _check_numbers(card, y, target, raw.numbers, target_names, rows)
    else:
        y, classes = _codes_of(card, values, target, raw.numbers, codes)
    if labels and card.get("labels"):  # a source's own spelling must not change the names of the classes
        classes = _classes_of(dict(zip(labels_and_keys((), card["labels"])[1], card["labels"].values())))
    X += 0.0  # -0.0 and 0.0 are one number, but two checksums
    y += 0.0
    filled = np.where(np.isnan(X) & is_filled, 0.0, X) if impute else X
    known = np.where(np.isnan(y), 0.0, y) if outputs else y
    check_finite(name, filled, known, [*of_table, *indicators], target_names, rows)
    groups = np.unique(of_rows["group"], return_inverse=True)[1].astype("<i8") if "group" in of_rows else None
    kinds = {key: value.dtype for key, value in raw.folds.items() if value.dtype.kind not in "biu"}
    reject(f"{name}: the index array {key!r} is of type {kind}: must be whole numbers" for key, kind in kinds.items())
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


def _check_form(card: Mapping, raw: Raw, of_rows: Mapping[str, np.ndarray]) -> None:
    """Raises DataError for arrays of other shapes, types or lengths, and for another number of outputs."""
    name, task = card["name"], card["task"]
    for noun, array, kinds, axes, form in (
        ("inputs", raw.X, "biuf", (2,), "(rows, inputs)"),
        ("targets", raw.target, "biufU", (1, 2), "(rows,) or (rows, outputs)"),
    ):
        require(array.ndim in axes, f"{name}: {noun} of shape {array.shape}: must be {form}")
        require(array.dtype.kind in kinds, f"{name}: {noun} of type {array.dtype}: must be real numbers")
    lengths = {"targets": len(raw.target), **{_NOUNS[key]: len(array) for key, array in of_rows.items()}}
    counts = " and ".join(f"{length} {noun}" for noun, length in lengths.items())
    require({*lengths.values()} == {len(raw.X)}, f"{name}: {len(raw.X)} rows of inputs, but {counts}")
    count = raw.target.shape[1] if raw.target.ndim == 2 else 1
    several = f"{name}: {count} outputs, but task {task}; several are for regression only"
    require(task == "regression" or count <= 1, several)
    expected = card.get("outputs") or count
    require(expected == count, f"{name}: the table has {count} outputs, but its card says {expected}")


def _check_size(card: Mapping, raw: Raw, X: Float[np.ndarray, "N D"], void: Sequence[str]) -> None:
    """Raises DataError where no rows or no inputs are left, and where a user's card says another number of rows."""
    name = card["name"]
    require(len(X), f"{name}: no complete rows{f': column {void[0]!r} is empty' if void else ''}")
    left_out = f" ({'; '.join(raw.left_out)}; `keep` makes it one)" if raw.left_out else ""
    require(X.size, f"{name}: no inputs{left_out}{''.join(f'; {note.text}' for note in raw.notes)}")
    is_own = any(source.get("kind") == "file" for source in card.get("sources", ()))
    expected = (card.get("rows") if is_own else None) or len(X)
    require(expected == len(X), f"{name}: the table has {len(X):,} rows in use, but its card says {expected:,}")


def _labels_of_rows(card: Mapping, raw: Raw) -> dict[str, np.ndarray]:
    """Groups, order and parts in fixed splits as numbers, of those that the table has; NaN or -1 is a missing one."""
    title = {key: f"{card['name']}: {row_labels.column_of(card, key)}" for key in _NOUNS}
    parts = np.asarray(raw.split)
    if parts.dtype.kind == "U":
        parts = row_labels.fixed_parts([f"{title['split']}, split {k}" for k in range(parts.shape[1])], parts)
    groups = _groups_of(np.asarray(raw.groups), raw.numbers)
    arrays = {"group": groups, "order": row_labels.times(title["order"], raw.order), "split": parts}
    return {key: array for key, array in arrays.items() if len(array)}


def _names(name: str, noun: str, count: int, labels: Sequence, letter: str) -> tuple[str, ...]:
    """The labels of `count` inputs or outputs as text; x1, x2, ... or y1, y2, ... by default."""
    names = tuple(map(str, labels or (f"{letter}{i + 1}" for i in range(count))))
    of_card = f"{len(names)} {noun.replace('inputs', 'columns')}"
    require(len(names) == count, f"{name}: {count} {noun}, but its card names {of_card}")
    require(len({*names}) == count, f"{name}: two {noun} have the same name; names are {', '.join(names[:20])}")
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


def _values_of(task: str, target: np.ndarray, numbers: Numbers, codes: Mapping) -> np.ndarray:
    """Targets as numbers, infinity for a text that is none, or as labels; NaN or "" for a missing one."""
    if task not in _NUMERIC:
        texts, index = np.unique(target, return_inverse=True)
        return np.array(labels_and_keys(texts.tolist(), codes, numbers)[0], str)[index]
    if target.dtype.kind != "U":
        return target.astype("<f8")
    values = [np.nan if numbers.is_missing(text) else numbers.parse(text) for text in target.ravel().tolist()]
    return np.array([np.inf if value is None else value for value in values], "<f8").reshape(target.shape)


def _check_numbers(
    card: Mapping, y: np.ndarray, target: np.ndarray, numbers: Numbers, outputs: Sequence[str], rows: np.ndarray
) -> None:
    """Raises DataError for a text that is no number, and for no counts where the task asks for them."""
    texts = target.reshape(len(y), -1)
    for row, k in np.argwhere(np.isinf(y).reshape(len(y), -1)) if texts.dtype.kind == "U" else ():
        if numbers.parse(text := str(texts[row, k])) is None:
            fact, mend = fault(text)
            if "`drop`" in mend:  # nobody drops a target
                mend = "say `task: multiclass` for classes" if fact.endswith("is not a number") else ""
            subject = f"{card['name']}: column {outputs[k]!r}, row {rows[row] + 1}"
            raise DataError(f"{subject}: {fact}; {mend}".rstrip("; "))
    if card["task"] == "count":
        check_counts(card["name"], y, outputs[0], rows=rows)


def _codes_of(
    card: Mapping, labels: np.ndarray, target: np.ndarray, numbers: Numbers, card_codes: Mapping
) -> tuple[Float[np.ndarray, " N"], tuple[str, ...]]:
    """The code of each label, by the card or in the order of the labels, and the names of the classes."""
    name, of_row, is_binary = card["name"], labels.tolist(), card["task"] == "binary"
    keys, present = labels_and_keys((), card_codes, numbers)[1], in_order({*of_row})
    if len(present) < 2:
        spellings = np.unique(target).astype(str).tolist()
        mend = f"; of {listed(spellings)} `labels` makes classes, with each in quotes" if len(spellings) > 1 else ""
        raise DataError(f"{name}: one class only ({present[0]!r}); classification needs two{mend}")
    codes = dict(zip(keys, map(int, card_codes.values())))
    codes = codes or {label: 2 * i - 1 if is_binary else i for i, label in enumerate(present)}
    if is_binary and not keys and len(present) != 2:
        regression = ", `task: regression` if they are numbers" if None not in map(number, present) else ""
        mend = f"`task: multiclass`{regression}, or give `labels` with codes -1 and 1"
        raise DataError(f"{name}: {len(present)} classes; say {mend}")
    fact, strange = f"is not in the card's labels ({', '.join(codes)})", sorted({*present} - {*codes})
    reject(f"{name}: label {label!r} {fact}{quoting_hint(label, codes)}" for label in strange)
    expected = [-1, 1] if is_binary else list(range(max(codes.values()) + 1))
    wrong = f"{name}: the card's labels must have the codes {expected} for task {card['task']}"
    require(sorted({*codes.values()}) == expected, wrong)
    return np.array([codes[label] for label in of_row], "<f8"), _classes_of(codes)


def _groups_of(groups: np.ndarray, numbers: Numbers) -> np.ndarray:
    """Groups as numbers, NaN for a missing one; those of text are in the order of the first spelling of each."""
    if groups.dtype.kind != "U":
        return groups
    labels = labels_and_keys(groups.tolist(), numbers=numbers)[0]
    places: dict[str, int] = {}
    for _, label in sorted(zip(map(numbers.plain, groups.tolist()), labels)):
        places.setdefault(label, len(places))
    return np.array([places[label] if label else np.nan for label in labels], float)


def check_counts(
    name: str,
    y: Float[np.ndarray, " N"],
    column: str = "target",
    mend: str = "say `task: regression`",
    rows: Int[np.ndarray, " N"] | None = None,
) -> None:
    """Raises DataError, which names the column, the first such row and how to mend it, unless all are counts."""
    bad = np.isfinite(y) & ((y < 0) | (y != np.floor(y)))  # others have a message of their own
    for first in np.flatnonzero(bad)[:1]:
        row = (first if rows is None else rows[first]) + 1
        fact = f"{name}: column {column!r}, row {row}: {y[first]:g} is no count (0, 1, 2, ...)"
        raise DataError(f"{fact}; mend it, or {mend}")


def _classes_of(codes: Mapping[str, int]) -> tuple[str, ...]:
    """Class names in order of code; labels that share a code are joined."""
    return tuple("/".join(key for key in codes if codes[key] == code) for code in sorted({*codes.values()}))
