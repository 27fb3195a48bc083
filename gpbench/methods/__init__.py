"""The methods, one a file in the folder of its family, and the classes of a user's own method.  Every name here is
imported at its first use, so that importing the package does not import JAX."""

from typing import TYPE_CHECKING

from gpbench import lazy

if TYPE_CHECKING:
    from gpbench.methods.base import Batch, Info, Method
    from gpbench.methods.parts.gradient import FullBatchMethod, GradientMethod, GradientState, SampledMethod
    from gpbench.methods.parts.settings import LikelihoodMethod
    from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod

__getattr__, __dir__, _ = lazy.attach(
    __name__,
    {
        "base": ("Batch", "Info", "Method"),
        "parts.gradient": ("FullBatchMethod", "GradientMethod", "GradientState", "SampledMethod"),
        "parts.settings": ("LikelihoodMethod",),
        "parts.sparse_layer": ("SparseLayer", "SparseMethod"),
    },
)

__all__ = [
    "Batch",
    "FullBatchMethod",
    "GradientMethod",
    "GradientState",
    "Info",
    "LikelihoodMethod",
    "Method",
    "SampledMethod",
    "SparseLayer",
    "SparseMethod",
]
