"""Inducing features: the linear functionals of f that a sparse approximation conditions on."""

from gpbench.core.features.base import Features
from gpbench.core.features.points import InducingPoints
from gpbench.core.features.scaled import ScaledFeatures

__all__ = ["Features", "InducingPoints", "ScaledFeatures"]
