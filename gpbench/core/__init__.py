"""The mathematics: kernels, likelihoods, features, predictive distributions, and inference that methods share.

Importing this package does not import JAX, so that `memory` serves commands that start without it.
"""

from pathlib import Path

from gpbench import lazy

_FILES = [path.stem for path in Path(__file__).parent.glob("[a-z]*")]
__getattr__, __dir__, __all__ = lazy.attach(__name__, {}, submodules=_FILES)
