"""The Python interface: the functions and classes that `import gpbench` offers, beside the command line.

Both take the same keys, make the same records under the same ids, and raise the same errors.
"""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "datasets": ("LoadedDataset", "load"),
        "models": ("RecordedRun", "load_run"),
        "runs": ("Runs", "multirun", "run"),
        "tables": ("Table", "compare", "power", "rank", "table", "verify"),
    },
)
