"""Data: cards -> sources (store, mirror, official address) -> arrays -> splits -> scaling.  Imported without NumPy."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "dataset": ("Dataset", "Raw"),
        "scaled": ("ScaledSplit", "prepare"),
        "scaling": ("SCALERS", "Scaler", "fit_scalers"),
        "sources": ("configured", "load"),
        "splits": ("Member",),
    },
)
