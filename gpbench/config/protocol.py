"""The keys that only protocols have, each with its range and meaning.  Every other key of a protocol, there or in a
section, has the name and the range of a setting of methods."""

from collections.abc import Mapping
from typing import Any

from gpbench.schema import Words

_SCALERS = ["standardise", "unit_interval", "centre_all", "none"]
_SECTION = "section or null"

KEYS: Mapping[str, tuple[Words, str]] = {
    "name": ("text", "Name in records, tables and file names."),
    "inputs": (_SCALERS, "Scaling of the inputs: by the training rows, or over all rows (`centre_all`)."),
    "targets": (
        _SCALERS,
        "Scaling of the targets in regression, as that of the inputs; metrics are in original units.",
    ),
    "precision": (["float64", "float32"], "Floating-point type of all computations."),
    "split_indices": (
        ["correct", "int8"],
        "Row numbers as the index files have them, or read as 8-bit integers (paper aep_dgp).",
    ),
    "lbfgs": (_SECTION, "Section: maximum number of L-BFGS iterations (`steps`)."),
    "variational": (_SECTION, "Section: `steps`, `natural_step` and `optimiser` of svi and its variants."),
    "deep": (
        _SECTION,
        "Section: `steps`, `batch_size`, `optimiser`, `hidden_start`, `factors` and `alpha` of deep GPs.",
    ),
    "networks": (_SECTION, "Section: `steps`, `batch_size`, `optimiser` and `scaled` of neural networks."),
    "minibatch_damping": ("fraction", "Damping of the minibatch variants of sep."),
    "minibatch_optimiser": ("optimiser or null", "Optimiser of the minibatch variants of sep."),
}

DEFAULTS: Mapping[str, Any] = {"inputs": "standardise", "targets": "standardise", "precision": "float64"}
"""The keys that every protocol has, with the values of a file without them."""

SECTIONS = tuple(name for name, (words, _) in KEYS.items() if words == _SECTION)
"""Keys whose values have keys of their own."""
