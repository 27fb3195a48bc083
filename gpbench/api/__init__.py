"""The Python interface: the functions and classes that `import gpbench` offers, beside the command line.

Both take the same keys, make the same records under the same ids, and raise the same errors.
"""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "best_methods": ("best",),
        "comparisons": ("compare", "power", "rank"),
        "datasets": ("LoadedDataset", "load"),
        "listings": ("ls",),
        "models": ("RecordedRun", "load_run"),
        "runs": ("Runs",),
        "tables": ("Table", "table", "verify"),
        "training": ("multirun", "run"),
    },
)
