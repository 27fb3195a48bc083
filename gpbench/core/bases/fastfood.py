"""Fastfood: random Fourier features of the squared exponential kernel, F frequencies in O(F log D) operations a row.

Le, Sarlos and Smola, ICML 2013.  A block is V = S H G Π H B / √P, for P inputs: the next power of two from D, with
zeros in the additional ones.  H is the Walsh-Hadamard matrix, Π a permutation; B, G and S are diagonal.  B has random
signs, G standard normal numbers, and S makes the length of every row that of a standard normal vector.  With H Hᵀ = P I
a row of H G Π H B / √P is G in another orthonormal basis, so every row of V has the distribution N(0, I), as in plain
random Fourier features.  The rows of one block depend on each other.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray


class Fastfood(eqx.Module):
    """J stacked blocks of P frequencies, of which the first `frequencies` are used; the diagonals of S, G and B."""

    S: Float[Array, "J P"]
    G: Float[Array, "J P"]
    B: Float[Array, "J P"]
    order: Float[Array, "J P"]
    """Random numbers: Π puts the inputs of a block in their order.  Real and not integer, since gradient methods take
    real leaves alone; their gradient is 0."""
    frequencies: int = eqx.field(static=True)

    @classmethod
    def sample(cls, inputs: int, frequencies: int, dtype: DTypeLike, *, key: PRNGKeyArray) -> "Fastfood":
        """Random blocks, with F = `frequencies` or more frequencies, for inputs in units of their lengthscales."""
        size = 1 << (inputs - 1).bit_length()
        shape = (-(-frequencies // size), size)
        gaussian_key, length_key, sign_key, order_key = jax.random.split(key, 4)
        G = jax.random.normal(gaussian_key, shape, dtype)
        length = jnp.sqrt(jax.random.chisquare(length_key, size, shape, dtype))
        S = length / jnp.linalg.norm(G, axis=1, keepdims=True)
        B = 2 * jax.random.bernoulli(sign_key, jnp.asarray(0.5, dtype), shape).astype(dtype) - 1
        return cls(S, G, B, jax.random.uniform(order_key, shape, dtype), frequencies)

    def project(self, X: Float[Array, "N D"]) -> Float[Array, "F N"]:
        """The angles V Xᵀ, in O(F log D) operations a row."""
        blocks, size = self.S.shape
        columns = jnp.pad(X.T, ((0, size - X.shape[1]), (0, 0)))
        HBX = walsh_hadamard(self.B[:, :, None] * columns)
        permuted = jax.vmap(lambda block, order: block[jnp.argsort(order)])(HBX, self.order)
        HGX = walsh_hadamard(self.G[:, :, None] * permuted)
        return (self.S[:, :, None] / size**0.5 * HGX).reshape(blocks * size, len(X))[: self.frequencies]

    def features(self, X: Float[Array, "N D"]) -> Float[Array, "T N"]:
        """√(1/F) [cos Vx, sin Vx]: T = 2F features, whose inner products have the expectation exp(-½ |x - x'|²)."""
        angle = self.project(X)
        return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)]) / self.frequencies**0.5


def walsh_hadamard(X: Float[Array, "*blocks P N"]) -> Float[Array, "*blocks P N"]:
    """H X, with the P x P matrix H of 1 and -1 in Sylvester's order, P a power of two, in O(P log P) a column."""
    *blocks, size, n = X.shape
    half = 1
    while half < size:
        pairs = X.reshape(*blocks, size // (2 * half), 2, half, n)
        a, b = pairs[..., 0, :, :], pairs[..., 1, :, :]
        X = jnp.stack([a + b, a - b], axis=-3).reshape(X.shape)
        half *= 2
    return X
