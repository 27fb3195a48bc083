"""Functions drawn from a Gaussian process's prior, by random Fourier features (Rahimi and Recht 2007)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.bases.fourier import SPECTRAL, spectral_degrees
from gpbench.core.cosines import cosine_of_turns
from gpbench.core.kernels import Kernel, Stationary

__all__ = ["SPECTRAL", "PriorDraws", "prior_draws"]


class PriorDraws(eqx.Module):
    """S functions f_s(x) = √(amp / F) Σ_i (a_is cos ω_iᵀx + b_is sin ω_iᵀx), a and b standard normal.

    They share F frequencies ω_i from the spectral density of a kernel of amplitude amp.  Given these, their covariance
    is (amp / F) Σ_i cos ω_iᵀ(x - x'): amp for x = x', and for others an unbiased estimate of k(x, x') whose standard
    error is less than amp / √F.
    """

    turns: Float[Array, "F D"]
    """ω / 2π, for inputs in units of the lengthscales."""
    weights: Float[Array, "2 F S"]
    """a and b."""

    def __call__(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "N S"]:
        """The functions at X, in O(N F (D + S)) time and O(N F) memory."""
        assert isinstance(kernel, Stationary)
        u = kernel.scale(X) @ self.turns.T
        a, b = self.weights
        total = cosine_of_turns(u) @ a + cosine_of_turns(u - 0.25) @ b
        return jnp.sqrt(kernel.amplitude / len(self.turns)) * total


def prior_draws(
    kernel: Kernel, X: Float[Array, "N D"], frequencies: int, samples: int, *, key: PRNGKeyArray
) -> PriorDraws:
    """S = `samples` functions with F = `frequencies`, for inputs of the width and the dtype of X.

    `kernel` must be one of `SPECTRAL`, the kernels whose spectral density is known.
    """
    frequency_key, weight_key = jax.random.split(key)
    inputs, degrees = X.shape[1], spectral_degrees(kernel)
    normals = jax.random.normal(frequency_key, (frequencies, inputs + degrees), X.dtype)
    turns = normals[:, :inputs] / (2.0 * jnp.pi)
    if degrees:  # a t distribution: the root of a mean of squares divides
        turns /= jnp.sqrt(jnp.mean(normals[:, inputs:] ** 2, axis=1, keepdims=True))
    return PriorDraws(turns, jax.random.normal(weight_key, (2, frequencies, samples), X.dtype))
