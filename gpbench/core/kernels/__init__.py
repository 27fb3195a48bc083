"""Covariance functions: the interface `Kernel`, one kind a file, and `kernel_spec` to parse the configuration."""

from gpbench.core.kernels.anova import ANOVA, Effect
from gpbench.core.kernels.base import AmplitudeFamily, Family, Kernel, LengthscaleStart, log_scalar
from gpbench.core.kernels.composite import ActiveInputs, Product, Sum
from gpbench.core.kernels.deep import Deep
from gpbench.core.kernels.linear import Constant, Linear
from gpbench.core.kernels.orthogonal import Orthogonal
from gpbench.core.kernels.spec import LengthscalePrior, Spec, kernel_spec, lengthscale_prior, require_family
from gpbench.core.kernels.stationary import (
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)

__all__ = [
    "ANOVA",
    "ActiveInputs",
    "AmplitudeFamily",
    "Constant",
    "Deep",
    "Effect",
    "Family",
    "Kernel",
    "LengthscalePrior",
    "LengthscaleStart",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Orthogonal",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Spec",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "kernel_spec",
    "lengthscale_prior",
    "log_scalar",
    "require_family",
]
