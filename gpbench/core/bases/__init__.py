"""Bases of functions, evaluated in blocks where there are too many to hold: f = Σ w_i φ_i(x)."""

from gpbench.core.bases.base import Basis, Locations, adagrad, draw_blocks, merge, take
from gpbench.core.bases.fastfood import Fastfood
from gpbench.core.bases.fourier import SPECTRAL, PriorDraws, RandomFeatures, prior_draws, spectral_degrees
from gpbench.core.bases.kernel import KernelFunctions, in_blocks, product

__all__ = [
    "SPECTRAL",
    "Basis",
    "Fastfood",
    "KernelFunctions",
    "Locations",
    "PriorDraws",
    "RandomFeatures",
    "adagrad",
    "draw_blocks",
    "in_blocks",
    "merge",
    "prior_draws",
    "product",
    "spectral_degrees",
    "take",
]
