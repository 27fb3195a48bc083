"""Targets and groups of rows as numbers: texts that are numbers, codes of labels, and numbers of groups."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gpbench.data.cells import Numbers, number
from gpbench.data.encoding import in_order, labels_and_keys, quoting_hint
from gpbench.data.faults import fault
from gpbench.errors import DataError, listed, require

_Coded = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, tuple[str, ...]]]
"""From targets and the numbers of their rows in the table: the targets as codes, and the names of the classes."""


def numbers_of(
    name: str, task: str, target: np.ndarray, numbers: Numbers, outputs: Sequence[str]
) -> tuple[Float[np.ndarray, " N *O"], _Coded]:
    """Targets as numbers: NaN for a missing one, and infinity for a text that is none, which their check names."""
    texts = target.ravel().tolist() if target.dtype.kind == "U" else []
    values = [np.nan if numbers.is_missing(text) else numbers.parse(text) for text in texts]

    def checked(y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        for row, k in itertools.product(rows.tolist() if None in values else (), range(len(outputs))):
            if values[cell := row * len(outputs) + k] is None:
                fact, mend = fault(texts[cell])
                if "`drop`" in mend:  # nobody drops a target
                    mend = "say `task: multiclass` for classes" if fact.endswith("is not a number") else ""
                raise DataError(f"{name}: column {outputs[k]!r}, row {row + 1}: {fact}; {mend}".rstrip("; "))
        if task == "count":
            check_counts(name, y, outputs[0], rows=rows)
        return y, ()

    y = np.array([np.inf if value is None else value for value in values]) if values else target.astype("<f8")
    return y.reshape(target.shape), checked


def labels_of(
    name: str, task: str, target: np.ndarray, numbers: Numbers, card_codes: Mapping
) -> tuple[Float[np.ndarray, " N"], _Coded]:
    """The number of each target among the labels, NaN for a missing one; the card may have codes by label."""
    texts, index = np.unique(target, return_inverse=True)
    labels, keys = labels_and_keys(texts.tolist(), card_codes, numbers)

    def coded(y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        present = in_order({labels[k] for k in np.unique(y).astype(int)})
        if len(present) < 2:
            spellings = [text for text, label in zip(texts.tolist(), labels) if label == present[0]]
            mend = f"; of {listed(spellings)} `labels` makes classes, with each in quotes" if len(spellings) > 1 else ""
            raise DataError(f"{name}: one class only ({present[0]!r}); classification needs two{mend}")
        is_binary = task == "binary"
        # codes that no card lists are in the order of the labels
        codes = dict(zip(keys, map(int, card_codes.values())))
        codes = codes or {label: 2 * i - 1 if is_binary else i for i, label in enumerate(present)}
        if is_binary and not keys and len(present) != 2:
            regression = ", `task: regression` if they are numbers" if None not in map(number, present) else ""
            mend = f"`task: multiclass`{regression}, or give `labels` with codes -1 and 1"
            raise DataError(f"{name}: {len(present)} classes; say {mend}")
        if strange := sorted(label for label in present if label not in codes):
            fact = f"{name}: label {strange[0]!r} is not in the card's labels ({', '.join(codes)})"
            raise DataError("; ".join(filter(None, [fact, quoting_hint(strange[0], codes)])))
        expected = [-1, 1] if is_binary else list(range(max(codes.values()) + 1))
        wrong = f"{name}: the card's labels must have the codes {expected} for task {task}"
        require(sorted({*codes.values()}) == expected, wrong)
        return np.array([codes.get(label, 0) for label in labels], "<f8")[y.astype(int)], classes_of(codes)

    return np.array([k if label else np.nan for k, label in enumerate(labels)], "<f8")[index], coded


def groups_of(groups: np.ndarray, numbers: Numbers) -> np.ndarray:
    """Groups as numbers, NaN for a missing one; those of text are in the order of the first spelling of each."""
    if groups.dtype.kind != "U":
        return groups
    labels = labels_and_keys(groups.tolist(), numbers=numbers)[0]
    first: dict[str, str] = {}
    for label, text in zip(labels, map(numbers.plain, groups.tolist())):
        first[label] = min(text, first.get(label, text))
    places = {label: k for k, label in enumerate(sorted(filter(None, first), key=lambda label: (first[label], label)))}
    return np.array([places.get(label, np.nan) for label in labels], float)


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


def classes_of(codes: Mapping[str, int]) -> tuple[str, ...]:
    """Class names in order of code; labels that share a code are joined."""
    return tuple("/".join(key for key in codes if codes[key] == code) for code in sorted({*codes.values()}))
