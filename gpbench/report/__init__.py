"""Pictures, drawn with Matplotlib, and a static site, of the tables of `gpbench.analysis` and of verdicts."""

import contextlib
import os
import sys

from gpbench import lazy

if "matplotlib" not in sys.modules:
    # Matplotlib cannot be imported where the MPLBACKEND of a notebook is not installed; figures need no backend.
    backend = os.environ.pop("MPLBACKEND", None)
    import matplotlib

    if backend is not None:
        os.environ["MPLBACKEND"] = backend
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend
    del backend

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "figures": ("draw", "save"),
        "figures.comparisons": ("draw_differences", "draw_ranking"),
        "figures.runs": ("draw_run", "draw_traces"),
    },
)
