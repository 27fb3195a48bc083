"""gpbench: scalable Gaussian-process methods of five papers beside the numbers those papers published.

    import gpbench

    runs = gpbench.run(method="sep", dataset="pima", split="all")
    print(runs)

docs/python.md describes the interface.  Every name here is imported at its first use, so that `import gpbench` and the
command line start without NumPy, JAX and pandas.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpbench.api.datasets import LoadedDataset, load
    from gpbench.api.models import RecordedRun, load_run
    from gpbench.api.runs import Runs, multirun, run
    from gpbench.api.tables import Table, compare, power, rank, table, verify
    from gpbench.core import kernels, likelihoods, predictive
    from gpbench.errors import (
        ClaimedError,
        ConfigError,
        DataError,
        DivergedError,
        GpbenchError,
        Stopped,
        StorageError,
        SweepError,
    )
    from gpbench.estimators import Classifier, Regressor
    from gpbench.methods.base import Method
    from gpbench.methods.parts.gradient import GradientMethod
    from gpbench.records.frame import frame
    from gpbench.records.record import Record

__version__ = "0.1.0"

_MODULES = {
    "gpbench.api.datasets": ("LoadedDataset", "load"),
    "gpbench.api.models": ("RecordedRun", "load_run"),
    "gpbench.api.runs": ("Runs", "multirun", "run"),
    "gpbench.api.tables": ("Table", "compare", "power", "rank", "table", "verify"),
    "gpbench.core": ("kernels", "likelihoods", "predictive"),
    "gpbench.errors": (
        "ClaimedError",
        "ConfigError",
        "DataError",
        "DivergedError",
        "GpbenchError",
        "StorageError",
        "Stopped",
        "SweepError",
    ),
    "gpbench.estimators": ("Classifier", "Regressor"),
    "gpbench.methods.base": ("Method",),
    "gpbench.methods.parts.gradient": ("GradientMethod",),
    "gpbench.records.frame": ("frame",),
    "gpbench.records.record": ("Record",),
}
"""Public names by the module that defines them."""
_NEED_JAX = ("gpbench.core", "gpbench.methods.base", "gpbench.methods.parts.gradient")

__all__ = [
    "ClaimedError",
    "Classifier",
    "ConfigError",
    "DataError",
    "DivergedError",
    "GpbenchError",
    "GradientMethod",
    "LoadedDataset",
    "Method",
    "Record",
    "RecordedRun",
    "Regressor",
    "Runs",
    "Stopped",
    "StorageError",
    "SweepError",
    "Table",
    "__version__",
    "compare",
    "frame",
    "kernels",
    "likelihoods",
    "load",
    "load_run",
    "multirun",
    "power",
    "predictive",
    "rank",
    "run",
    "table",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use; JAX is set up before the first import that needs it."""
    for module, names in _MODULES.items():
        if name in names:
            if module in _NEED_JAX:
                from gpbench import runtime

                runtime.configure()
            if module == "gpbench.core":
                return importlib.import_module(f"{module}.{name}")
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
