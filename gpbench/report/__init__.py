"""Pictures, drawn with Matplotlib, archives to publish, and a static site, of the tables of `gpbench.analysis`."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, {"figures": ("draw", "encode", "save", "write")})
