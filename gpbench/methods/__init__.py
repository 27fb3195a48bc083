"""The methods, one a file in the folder of its family, and the classes and protocols of a user's own method.

Every name here is imported at its first use, so that importing the package does not import JAX.
"""

from typing import TYPE_CHECKING

from gpbench import lazy

if TYPE_CHECKING:
    from gpbench.methods.base import Batch, Info, Method
    from gpbench.methods.parts.gradient import FullBatchMethod, GradientMethod, GradientState, SampledMethod
    from gpbench.methods.parts.settings import LikelihoodMethod
    from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod
    from gpbench.methods.protocols import (
        HasArrays,
        HasBound,
        HasConvergence,
        HasDiagnosis,
        HasDiagnostics,
        HasEffects,
        HasLatents,
        HasLimits,
        HasObjective,
        HasRates,
        HasRowMemory,
        HasSearch,
    )

__getattr__, __dir__, _ = lazy.attach(
    __name__,
    {
        "base": ("Batch", "Info", "Method"),
        "parts.gradient": ("FullBatchMethod", "GradientMethod", "GradientState", "SampledMethod"),
        "parts.settings": ("LikelihoodMethod",),
        "parts.sparse_layer": ("SparseLayer", "SparseMethod"),
        "protocols": (
            "HasArrays",
            "HasBound",
            "HasConvergence",
            "HasDiagnosis",
            "HasDiagnostics",
            "HasEffects",
            "HasLatents",
            "HasLimits",
            "HasObjective",
            "HasRates",
            "HasRowMemory",
            "HasSearch",
        ),
    },
)

__all__ = [
    "Batch",
    "FullBatchMethod",
    "GradientMethod",
    "GradientState",
    "HasArrays",
    "HasBound",
    "HasConvergence",
    "HasDiagnosis",
    "HasDiagnostics",
    "HasEffects",
    "HasLatents",
    "HasLimits",
    "HasObjective",
    "HasRates",
    "HasRowMemory",
    "HasSearch",
    "Info",
    "LikelihoodMethod",
    "Method",
    "SampledMethod",
    "SparseLayer",
    "SparseMethod",
]
