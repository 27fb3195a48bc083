"""The methods, one a file in the folder of its family, and the classes of a user's own method.  Every name here is
imported at its first use, so that importing the package does not import JAX."""

from typing import TYPE_CHECKING

from gpbench import lazy

if TYPE_CHECKING:
    from gpbench.methods.base import Batch as Batch
    from gpbench.methods.base import Info as Info
    from gpbench.methods.base import Method as Method
    from gpbench.methods.parts.gradient import FullBatchMethod as FullBatchMethod
    from gpbench.methods.parts.gradient import GradientMethod as GradientMethod
    from gpbench.methods.parts.gradient import GradientState as GradientState
    from gpbench.methods.parts.gradient import SampledMethod as SampledMethod
    from gpbench.methods.parts.settings import LikelihoodMethod as LikelihoodMethod
    from gpbench.methods.parts.sparse_layer import SparseLayer as SparseLayer
    from gpbench.methods.parts.sparse_layer import SparseMethod as SparseMethod

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "base": ("Batch", "Info", "Method"),
        "parts.gradient": ("FullBatchMethod", "GradientMethod", "GradientState", "SampledMethod"),
        "parts.settings": ("LikelihoodMethod",),
        "parts.sparse_layer": ("SparseLayer", "SparseMethod"),
    },
)
