"""Covariance functions: the interface `Kernel`, one file per family, and `kernel_spec` to parse the configuration."""

from gpbench.core.kernels.active_inputs import ActiveInputs
from gpbench.core.kernels.anova import ANOVA
from gpbench.core.kernels.base import Kernel
from gpbench.core.kernels.constant import Constant
from gpbench.core.kernels.effect import Effect
from gpbench.core.kernels.linear import Linear
from gpbench.core.kernels.matern import Matern12, Matern32, Matern52
from gpbench.core.kernels.periodic import Periodic
from gpbench.core.kernels.priors import LengthscalePrior, lengthscale_prior
from gpbench.core.kernels.product import Product
from gpbench.core.kernels.rational_quadratic import RationalQuadratic
from gpbench.core.kernels.spec import FAMILIES, Spec, kernel_spec, require
from gpbench.core.kernels.squared_exponential import SquaredExponential
from gpbench.core.kernels.stationary import Stationary
from gpbench.core.kernels.sum import Sum

__all__ = [
    "ANOVA",
    "FAMILIES",
    "ActiveInputs",
    "Constant",
    "Effect",
    "Kernel",
    "LengthscalePrior",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Spec",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "kernel_spec",
    "lengthscale_prior",
    "require",
]
