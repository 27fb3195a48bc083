"""Keys of the cards of data sets: those of a card, of its sources, and of its splits.  No NumPy."""

import re
from collections.abc import Mapping

from gpbench.keys import MAPPING, MAPPINGS, TEXT, TEXTS, Keys, optional, required
from gpbench.schema import Range, is_whole

_COUNT = "count or null"
_LABELS = optional(MAPPING, "Code of each class: -1 and 1, or 0 to C-1; else in numerical or alphabetical order.")
READER = Range(lambda value: isinstance(value, str | Mapping | None), "the name of a reader, or its _target_")
"""Values of the key `reader` of a source."""
CENTRES = Range(
    lambda value: all(
        v in ("mean", "median", None) for v in (value.values() if isinstance(value, Mapping) else [value])
    ),
    "mean or median, or a mapping from inputs to mean or median",
)
_MIRROR_FILES = required(MAPPING, "Files with their SHA-256.")

NAME = re.compile(r"\w[\w.-]*")
"""Names of data sets, which become folders of the store."""

CARD = Keys(
    {
        "name": required(TEXT, "Name of the data set: that of the file."),
        "task": required(["binary", "multiclass", "regression", "count"], "Kind of targets; count: 0, 1, 2, ..."),
        "sources": required(MAPPINGS, "Sources of the data, in the order in which they are tried."),
        "title": optional(TEXT, "Title in lists."),
        "rows": optional(_COUNT, "Number of rows."),
        "inputs": optional(_COUNT, "Number of inputs."),
        "outputs": optional(_COUNT, "Number of outputs, where there are several."),
        "target": optional("any", "Description of the target."),
        "labels": _LABELS,
        "counts": optional(MAPPING, "Number of rows of each class."),
        "columns": optional(TEXTS, "Names of the inputs."),
        "output_names": optional(TEXTS, "Names of the outputs."),
        "incomplete": optional(["drop", None], "`drop` leaves out rows with empty cells; else they are an error."),
        "impute": optional(CENTRES, "Values of empty cells of inputs, from the training rows."),
        "variant": optional("any", "Variant in use."),
        "variants": optional(MAPPING, "Other rows of one source, by name: the keys of the card that they change."),
        "checksum": optional(TEXT, "Checksum of the arrays."),
        "folds_checksum": optional(TEXT, "Checksum of the index arrays."),
        "splits": optional(MAPPING, "Split sets; see below.", "{set: random90}, of classes {set: stratified90}"),
        "oddities": optional(TEXTS, "Facts that a user of the data should know."),
        "licence": optional("any", "Licence."),
        "cite": optional("any", "References."),
        "published": optional("any", "Sizes in publications."),
        "suite": optional(["board", "development", None], "Suite; defaults are chosen on development sets alone."),
        "family": optional(TEXT, "Name that sets of one generator, or nearly one kind, share."),
    }
)
"""The keys of a card."""

SOURCE = Keys(
    {
        "kind": required("text", "Kind of source."),
        "labels": _LABELS,
        "note": optional("any", "Remark, which messages quote."),
    }
)
"""The keys that every source has, besides those of its kind and of its reader."""

_FILES = {"at": required(TEXT, "Address of the folder."), "files": _MIRROR_FILES}
_MEMBER = optional(TEXT, "Member of a zip or tar archive.")
_READ = {"reader": optional(READER, "Reader of the files."), "member": _MEMBER}
_MUST_READ = {**_READ, "reader": required(READER, "Reader of the files.")}

_GENERATED = Range(lambda value: is_whole(value) and 1 <= value <= 2**21, "a whole number from 1 to 2,097,152")
_LOADERS = ["breast_cancer", "diabetes", "digits", "iris", "wine"]
"""Loaders of scikit-learn that read no file and no address of the card's."""
_ARGUMENTS = Range(
    lambda value: isinstance(value, Mapping | None) and {*(value or ())} <= {"scaled", "n_class"},
    "a mapping with `scaled` of diabetes or `n_class` of digits",
)

KINDS: Mapping[str, Keys] = {
    "mirror": Keys({"files": _MIRROR_FILES, **_MUST_READ}),
    "official": Keys({**_FILES, **_READ}),
    "copy": Keys({**_FILES, **_MUST_READ}),
    "file": Keys(
        {
            "path": required(TEXT, "Path, from the current folder, the card's or the store."),
            "reader": optional(READER, "Reader of the file.", "table"),
            "member": _MEMBER,
            "sha256": optional(TEXT, "SHA-256 of the file."),
            "split_file": optional(TEXT, "Table of fixed splits: a column for each, a line for each row of the data."),
        }
    ),
    "sklearn": Keys(
        {
            "loader": required(_LOADERS, "Name of the loader, without `load_`."),
            "arguments": optional(_ARGUMENTS, "Arguments of the loader."),
        }
    ),
    "generated": Keys(
        {
            "generator": required(TEXT, "Name of the generator."),
            "seed": required("whole", "Seed."),
            "rows": required(_GENERATED, "Number of rows."),
        }
    ),
    "rows": Keys(
        {
            "inputs": required(MAPPING, "Numbers of each input, by its name."),
            "target": required("list of number", "Numbers of the target."),
        }
    ),
}
"""The keys of each kind of source.

mirror: the folder GPBENCH_MIRROR; official: the original address; copy: a repository at a fixed commit; file: a file of
the user's own; sklearn: a loader of scikit-learn; generated: a function of gpbench; rows: the card
itself, which has the numbers."""

SPLITS = Keys(
    {
        "sets": optional(MAPPING, "Number of splits of each split set; by default that of the set in use."),
        "set": optional(TEXT, "Split set in use; by default the first of `sets`."),
    }
)
"""The keys of the section `splits`, besides those of the card's split sets."""
