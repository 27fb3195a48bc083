"""Results of other programs: a table of predictions is read, checked, scored by our metrics, and recorded."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, {"scoring": ("Importer", "write")})
