"""gpbench: scalable Gaussian-process methods of five papers, compared with their published results.

    import gpbench

    runs = gpbench.run(method="sep", dataset="pima", split="all")
    print(runs)

docs/how-to/python.md describes the interface.  Every name here is imported at its first use, so that `import gpbench`
and the command line start without NumPy, JAX and pandas.
"""

from typing import TYPE_CHECKING, Any

from gpbench import lazy
from gpbench.version import __version__ as __version__

if TYPE_CHECKING:
    from gpbench.api.comparisons import best as best
    from gpbench.api.comparisons import compare as compare
    from gpbench.api.comparisons import leaderboard as leaderboard
    from gpbench.api.comparisons import power as power
    from gpbench.api.comparisons import rank as rank
    from gpbench.api.datasets import LoadedDataset as LoadedDataset
    from gpbench.api.datasets import load as load
    from gpbench.api.listings import ls as ls
    from gpbench.api.models import RecordedRun as RecordedRun
    from gpbench.api.models import load_run as load_run
    from gpbench.api.runs import Runs as Runs
    from gpbench.api.tables import Table as Table
    from gpbench.api.tables import table as table
    from gpbench.api.tables import verify as verify
    from gpbench.api.training import multirun as multirun
    from gpbench.api.training import run as run
    from gpbench.core import kernels as kernels
    from gpbench.core import likelihoods as likelihoods
    from gpbench.core import predictive as predictive
    from gpbench.errors import ClaimedError as ClaimedError
    from gpbench.errors import ConfigError as ConfigError
    from gpbench.errors import DataError as DataError
    from gpbench.errors import DivergedError as DivergedError
    from gpbench.errors import GpbenchError as GpbenchError
    from gpbench.errors import Stopped as Stopped
    from gpbench.errors import StorageError as StorageError
    from gpbench.errors import SweepError as SweepError
    from gpbench.estimators import Classifier as Classifier
    from gpbench.estimators import Regressor as Regressor
    from gpbench.methods.base import Method as Method
    from gpbench.methods.parts.gradient import GradientMethod as GradientMethod
    from gpbench.records.frame import frame as frame
    from gpbench.records.record import Record as Record


_lazy, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "api.comparisons": ("best", "compare", "leaderboard", "power", "rank"),
        "api.datasets": ("LoadedDataset", "load"),
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
__all__ += ["__version__"]
_NEED_JAX = ("GradientMethod", "Method", "kernels", "likelihoods", "predictive")


def __getattr__(name: str) -> Any:
    if name in _NEED_JAX:
        from gpbench import runtime

        runtime.configure()  # before JAX is imported
    return _lazy(name)
