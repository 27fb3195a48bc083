"""Readers of raw files and split sets by name: dotted path of the function and its options.  Needs no NumPy."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpbench import targets
from gpbench.registry import TARGET, Registry
from gpbench.schema import MAPPING, MAPPING_OF_MAPPINGS, TEXTS, Key, Keys, Range, optional, parse, required


@dataclass(frozen=True)
class _Entry:
    """A reader or a split set."""

    path: str  # dotted path of its function
    options: Keys = field(default_factory=Keys)
    package: str = ""  # package that it needs beyond gpbench's own requirements
    extra: str = ""  # extra of gpbench that installs the package
    splits: int = 0  # number of splits of a split set that has no `folds`; 0 where a card must give it

    @property
    def function(self) -> Callable:
        """The function, imported."""
        return targets.resolve(self.path)

    def folds(self, splits: Mapping[str, Any]) -> int:
        """The number of folds, of a split set that has some."""
        return int(splits.get("folds") or self.options.keys["folds"].default)

    def count(self, splits: Mapping[str, Any]) -> int:
        """The number of splits that a card's section `splits` implies; 0 where it must give it by `sets`."""
        return self.folds(splits) * int(splits.get("repeats") or 1) if "folds" in self.options.keys else self.splits


def _is_encoding(value: Any) -> bool:
    """Tests for a kind, or a mapping from a kind to levels."""
    levels: Any = [None]
    if isinstance(value, Mapping) and len(value) == 1:
        ((value, levels),) = value.items()
    return value in ("onehot", "ordinal") and isinstance(levels, list | tuple) and len(levels) > 0


def _is_format(value: Any) -> bool:
    """Tests for a format of dates: `strptime` knows it, and it has more than white space."""
    try:
        datetime.strptime("", str(value))
    except (ValueError, re.error) as error:
        return "%" in str(value) and "does not match" in str(error)
    return False


_COUNT = "count or null"
_MARKERS = Range(
    lambda value: not any(isinstance(entry, Mapping) for entry in (value if isinstance(value, list) else [value])),
    "a text, a number or a list of them",
)
_LINES = Range(parse("whole or list of count").contains, "a whole number from 0, or a list of numbers of lines")
ENCODINGS = Range(
    lambda value: value is None or (isinstance(value, Mapping) and all(map(_is_encoding, value.values()))),
    "a mapping from columns to onehot or ordinal, or to one of them with its levels, as in {size: {ordinal: [S, L]}}",
)
_ORDER = Range(
    lambda value: not isinstance(value, Mapping) or (len(value) == 1 and all(map(_is_format, value.values()))),
    'a column, or a mapping from it to the format of its dates, as Python writes it: {day: "%d/%m/%Y"}',
)
_TARGET = required("any", "Column or array of the targets; a list for several outputs.")
_BITS = required("count", "Bits of a fingerprint.")
_DROP = optional("list of whole or null", "Places of inputs that are left out, from 0.")


def _reader(path: str, package: str = "", extra: str = "", **options: Key) -> _Entry:
    """A reader by its function in `gpbench.data`."""
    return _Entry(f"gpbench.data.{path}", Keys(options), package, extra)


READERS = Registry(
    "reader",
    npz=_reader(
        "readers.npz",
        target=optional("any", "Array of the targets.", "y"),
        group=optional("any", "Array of the groups of rows."),
        order=optional(_ORDER, "Array of the order of rows in time: as for `table`."),
        split=optional("any", "Array of fixed splits, or several columns: as for `table`."),
        folds=optional(MAPPING, "Index arrays of split sets, by the name that gpbench gives them."),
        drop=_DROP,
    ),
    table=_reader(
        "tables.table",
        target=_TARGET,
        group=optional("any", "Column that says which rows belong together."),
        order=optional(
            _ORDER,
            "Column of the order of rows in time: numbers, or dates, of which "
            'others than 2024-01-31 have a format, as in {day: "%d/%m/%Y"}.',
        ),
        split=optional("any", "Column of fixed splits, or several: train, test or empty; or fold numbers."),
        delimiter=optional("text", "Delimiter of cells; `space` for white space.", ","),
        sheet=optional("text", "Sheet of a workbook; by default the first."),
        header=optional("flag", "True for names in the first line; by default if `target` is a name."),
        skip=optional(_LINES, "Lines to leave out at the top, or numbers of lines, as [2] for units.", 0),
        missing=optional(_MARKERS, "Mark of an empty cell, or several; numbers are compared as numbers."),
        drop=optional(TEXTS, "Columns to leave out."),
        keep=optional(TEXTS, "Inputs that look like labels of rows: no name, the index, counting the rows."),
        encoding=optional("text", "Encoding of text.", "UTF-8, or what the byte order mark says"),
        decimal=optional([".", ","], "Decimal sign.", "."),
        thousands=optional("text", "Sign between groups of three digits."),
        comment=optional("text", "Lines that begin with this are left out."),
        codes=optional(MAPPING_OF_MAPPINGS, "Numbers for the texts of a column: {column: {text: number}}."),
        encode=optional(ENCODINGS, "Encodings of columns of categories."),
    ),
    mapped=_reader(
        "mapped.mapped",
        target=optional("any", "Column of the target: the first, 0, or the last; of Parquet any name.", -1),
    ),
    libsvm=_reader("readers.libsvm", inputs=optional(_COUNT, "Number of inputs; by default the largest index.")),
    idx=_reader("readers.idx"),
    uci_datasets=_reader("readers.uci_datasets", drop=_DROP),
    mat=_reader(
        "readers.mat",
        matrix=required("any", "Array of the inputs, or one for each file, with the targets at the end."),
        target=optional("any", "Array of the targets."),
        outputs=optional(_COUNT, "Number of targets in the last columns."),
    ),
    airline_csv=_reader("readers.airline_csv"),
    airline_npz=_reader("readers.airline_npz"),
    kuka=_reader("robots.kuka"),
    mujoco_walk=_reader("robots.mujoco_walk", frames=optional([1, 2], "Frames of the motion in an input.", 1)),
    year_zip=_reader("readers.year_zip", rows=required(_COUNT, "Number of rows.")),
    fingerprints_npz=_reader("readers.fingerprints_npz", bits=_BITS, target=_TARGET),
    smiles_csv=_reader(
        *("readers.smiles_csv", "rdkit", "chem"),
        smiles=required("any", "Column of the SMILES texts, or a list of columns."),
        target=_TARGET,
        radius=required("whole", "Radius of the fingerprint, in bonds."),
        bits=_BITS,
    ),
)
"""The readers.  Those that depend on a card's `variant` have it from the card."""

_TRAIN, _TEST = "Number of training rows.", "Number of test rows."
_FOLDS = {
    "folds": optional("several", "Number of folds.", 10),
    "repeats": optional(_COUNT, "Number of times that the rows are divided into folds.", 1),
}
_SPLITS_OF = {"random90": 20, "stratified90": 20, "groups90": 20}
_SPLIT_KEYS: Mapping[str, Mapping[str, Key]] = {
    **{name: {} for name in _SPLITS_OF},
    **dict.fromkeys(("kfold", "groups_kfold"), _FOLDS),
    "temporal": {"folds": optional("count", "Number of splits, each of a later time.", 5)},
    "fixed": {"folds": optional("count", "Number of splits that the data have.", 1)},
    "random": {"test_rows": required(_COUNT, _TEST), "train_rows": optional(_COUNT, _TRAIN)},
    **{name: {} for name in ("hla", "hla_int8", "yang", "raetsch")},
    "official": {"train_rows": required(_COUNT, _TRAIN)},
    "draws": {"test_rows": required(_COUNT, _TEST), "train_rows": required(_COUNT, _TRAIN)},
}
SPLIT_SETS: Mapping[str, _Entry] = {
    name: _Entry(f"gpbench.data.split_sets.{name}", Keys(keys), splits=_SPLITS_OF.get(name, 0))
    for name, keys in _SPLIT_KEYS.items()
}
"""The split sets, with the keys of a card's section `splits` besides `set` and `sets`."""


def function_and_options(reader: str | Mapping[str, Any]) -> tuple[Callable, Mapping[str, Any]]:
    """The function of an expanded reader, and the options that a mapping gives."""
    if isinstance(reader, str):
        return READERS[reader].function, {}
    options = {key: value for key, value in reader.items() if key != TARGET}
    ours = next((entry for entry in READERS.values() if entry.path == reader[TARGET]), None)
    return ours.function if ours else targets.load(reader[TARGET], "reader"), options
