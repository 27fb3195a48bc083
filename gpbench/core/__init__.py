"""The mathematics: kernels, likelihoods, features, predictive distributions, and inference that methods share.
Importing this package does not import JAX, so that `memory` serves commands that start without it."""

import pkgutil

from gpbench import lazy

_MODULES = [module.name for module in pkgutil.iter_modules(__path__)]
__getattr__, __dir__, __all__ = lazy.attach(__name__, {}, submodules=_MODULES)
