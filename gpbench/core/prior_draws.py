"""Functions drawn from a Gaussian process's prior, by random Fourier features."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.bases.fourier import SPECTRAL, RandomFeatures, spectral_degrees
from gpbench.core.kernels import Kernel

__all__ = ["SPECTRAL", "PriorDraws", "prior_draws"]


class PriorDraws(eqx.Module):
    """S functions f_s = Σ_i w_is φ_i with weights w_is ~ N(0, 1), which share their F random Fourier features φ_i.

    Given the features their covariance is Σ_i φ_i(x) φ_i(x'), an unbiased estimate of k(x, x') whose standard error is
    at most amp / √F for a kernel of amplitude amp.
    """

    basis: RandomFeatures
    weights: Float[Array, "F S"]

    def __call__(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "N S"]:
        """The functions at X, in O(N F (D + S)) time and O(N F) memory."""
        return self.basis.functions(kernel, X, jnp.arange(1)) @ self.weights


def prior_draws(
    kernel: Kernel, X: Float[Array, "N D"], frequencies: int, samples: int, *, key: PRNGKeyArray
) -> PriorDraws:
    """S = `samples` functions with F = `frequencies` features, for inputs of the width and dtype of X.

    `kernel` must be one of `SPECTRAL`, the kernels whose spectral density is known.
    """
    basis_key, weight_key = jax.random.split(key)
    basis = RandomFeatures(key=basis_key, size=frequencies, block=frequencies, degrees=spectral_degrees(kernel))
    weights = jax.random.normal(weight_key, (frequencies, samples), X.dtype)
    return PriorDraws(basis.store(X.shape[1], X.dtype), weights)
