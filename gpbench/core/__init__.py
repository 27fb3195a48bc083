"""The mathematics: kernels, likelihoods, features, predictive distributions, and inference that methods share.
Importing this package does not import JAX, so that `memory` serves commands that start without it."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {},
    submodules=(
        "actions",
        "additive",
        "assumed_density",
        "bases",
        "clusters",
        "decoupled",
        "ep",
        "features",
        "gaussians",
        "generalised",
        "greedy",
        "kernels",
        "laplace",
        "lbfgs",
        "likelihoods",
        "linalg",
        "mapping",
        "memory",
        "natural_gradient",
        "networks",
        "operations",
        "optimisers",
        "predictive",
        "psi",
        "quadrature",
        "random",
        "samplers",
        "solvers",
        "vecchia",
    ),
)
