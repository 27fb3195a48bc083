"""Records of runs: what makes two runs the same, the record of a finished one, and the folder or file that has it.

`Record` has a run's fields, `RunPlan` the runs of a configuration with their ids, `Store` a results folder,
`Collection` a Parquet file of records, and `frame` makes a pandas DataFrame of them.  Imports neither JAX nor NumPy nor
pandas.
"""

import importlib
from typing import Any

_HOMES = {
    "Collection": "collection",
    "Record": "record",
    "Run": "plan",
    "RunPlan": "plan",
    "Store": "store",
    "frame": "frame",
    "latest": "store",
    "matching": "filters",
    "open_existing": "collection",
    "open_store": "collection",
    "recorded": "store",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
