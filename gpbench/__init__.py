"""gpbench: scalable Gaussian-process methods of five papers, compared with their published results.

    import gpbench

    runs = gpbench.run(method="sep", dataset="pima", split="all")
    print(runs)

docs/how-to/python.md describes the interface.  Every name here is imported at its first use, so that `import gpbench`
and the command line start without NumPy, JAX and pandas.
"""

from typing import TYPE_CHECKING, Any

from gpbench import lazy

if TYPE_CHECKING:
    from gpbench.api.best_methods import best
    from gpbench.api.comparisons import compare, power, rank
    from gpbench.api.datasets import LoadedDataset, load
    from gpbench.api.leaderboards import leaderboard
    from gpbench.api.listings import ls
    from gpbench.api.models import RecordedRun, load_run
    from gpbench.api.runs import Runs
    from gpbench.api.tables import Table, table, verify
    from gpbench.api.training import multirun, run
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

_lazy, *_ = lazy.attach(
    __name__,
    {
        "api.best_methods": ("best",),
        "api.comparisons": ("compare", "power", "rank"),
        "api.datasets": ("LoadedDataset", "load"),
        "api.leaderboards": ("leaderboard",),
        "api.listings": ("ls",),
        "api.models": ("RecordedRun", "load_run"),
        "api.runs": ("Runs",),
        "api.tables": ("Table", "table", "verify"),
        "api.training": ("multirun", "run"),
        "core": ("kernels", "likelihoods", "predictive"),
        "errors": (
            "ClaimedError",
            "ConfigError",
            "DataError",
            "DivergedError",
            "GpbenchError",
            "StorageError",
            "Stopped",
            "SweepError",
        ),
        "estimators.classifier": ("Classifier",),
        "estimators.regressor": ("Regressor",),
        "methods.base": ("Method",),
        "methods.parts.gradient": ("GradientMethod",),
        "records.frame": ("frame",),
        "records.record": ("Record",),
    },
)
# Spelled out once more, since type checkers and editors read it without running it; a test compares the two.
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
    "best",
    "compare",
    "frame",
    "kernels",
    "leaderboard",
    "likelihoods",
    "load",
    "load_run",
    "ls",
    "multirun",
    "power",
    "predictive",
    "rank",
    "run",
    "table",
    "verify",
]
_NEED_JAX = ("GradientMethod", "Method", "kernels", "likelihoods", "predictive")


def __getattr__(name: str) -> Any:
    if name in _NEED_JAX:
        from gpbench import runtime

        runtime.configure()  # before JAX is imported
    return _lazy(name)


def __dir__() -> list[str]:
    return __all__
