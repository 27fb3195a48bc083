"""The mathematics: kernels, likelihoods, features, predictive distributions, and inference that methods share.

Importing this package does not import JAX, so that `memory` serves commands that start without it.
"""

__all__ = [
    "additive",
    "assumed_density",
    "bases",
    "decoupled",
    "ep",
    "features",
    "gaussians",
    "kernels",
    "laplace",
    "lbfgs",
    "likelihoods",
    "linalg",
    "mapping",
    "memory",
    "natural_gradient",
    "networks",
    "optimisers",
    "predictive",
    "psi",
    "quadrature",
    "random",
    "samplers",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
