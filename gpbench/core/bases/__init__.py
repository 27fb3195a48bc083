"""Bases of functions, evaluated in blocks where there are too many to hold: f = Σ w_i φ_i(x)."""

from gpbench.core.bases.base import Basis, Locations, draw_blocks
from gpbench.core.bases.fourier import RandomFeatures
from gpbench.core.bases.kernel import KernelFunctions

__all__ = ["Basis", "KernelFunctions", "Locations", "RandomFeatures", "draw_blocks"]
