"""Random Fourier features (Rahimi and Recht 2007): a basis in blocks, and functions drawn from a prior.  Their cosines
are polynomials: several times faster on CPUs than the library's, which XLA does not vectorise there."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.polynomial import Chebyshev, Polynomial

from gpbench.core.bases.base import Basis, Locations
from gpbench.core.kernels import Kernel, Matern12, Matern32, Matern52, SquaredExponential, Stationary

_POLYNOMIAL_DEGREES = {"float32": 6, "float64": 11}


@jax.custom_jvp
def cosine_of_turns(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """cos(2πu) by a polynomial in the square of u's distance from the nearest whole number.  The absolute error for |u|
    up to a few is 5e-7 in float32 and 2e-14 in float64; beyond, it is that of rounding u."""
    u = u - jnp.round(u)
    t = 4.0 * u * u
    *lower, last = _coefficients(u.dtype.name)
    value = jnp.full_like(t, last)
    for coefficient in reversed(lower):
        value = value * t + jnp.asarray(coefficient, t.dtype)
    return value


@cosine_of_turns.defjvp
def _derivative(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (u,), (du,) = primals, tangents
    return cosine_of_turns(u), 2.0 * np.pi * cosine_of_turns(u + 0.25) * du


@cache
def _coefficients(dtype: str) -> tuple[float, ...]:
    """Coefficients of a polynomial for cos(π√t) on [0, 1], t = (2u)²: interpolation in Chebyshev points."""
    series = Chebyshev.interpolate(lambda t: np.cos(np.pi * np.sqrt(t)), _POLYNOMIAL_DEGREES[dtype], domain=[0.0, 1.0])
    return tuple(series.convert(kind=Polynomial).coef)


_DEGREES = {SquaredExponential: 0, Matern12: 1, Matern32: 3, Matern52: 5}
"""Degrees of freedom of the t distribution that is the spectral density in units of the lengthscales; 0: normal."""

SPECTRAL = tuple(_DEGREES)
"""The kernels with a spectral density from which this module draws."""


class RandomFeatures(Basis):
    """φ_i(x) = √(2 amp / m) cos(ω_iᵀx + b_i), ω_i from the kernel's spectral density and b_i uniform: S = I.  Nothing
    of size m is held: the functions of block b follow from `key` and b alone, whatever the size, the precision and the
    number of devices.  `stored` has the frequencies and phases of all blocks where they fit in memory and are costly to
    generate again, as with hundreds of inputs."""

    key: PRNGKeyArray
    size: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    degrees: int = eqx.field(static=True)
    """Degrees of freedom of the spectral density (`spectral_degrees`)."""
    stored: tuple[Float[Array, "B block D"], Float[Array, "B block"]] | None = None

    def store(self, inputs: int, dtype: DTypeLike) -> "RandomFeatures":
        """The basis with its frequencies and phases in memory: m (D + 1) numbers, generated once."""
        pair = jax.lax.map(lambda b: self._block(b, inputs, dtype), jnp.arange(self.blocks))
        return RandomFeatures(key=self.key, size=self.size, block=self.block, degrees=self.degrees, stored=pair)

    def unit(self, kernel: Kernel) -> Float[Array, ""]:
        """√(2 amp / m)."""
        return jnp.sqrt(2.0 / self.size) * jnp.exp(0.5 * kernel.log_amplitude)  # type: ignore[attr-defined]

    def locations(self, blocks: Int[Array, " b"], inputs: int, dtype: DTypeLike) -> Locations:
        """Frequencies and phases, in turns; and a mask of those that are functions, None where all are."""
        if self.stored is None:
            pair = jax.vmap(lambda b: self._block(b, inputs, dtype))(blocks)
        else:
            pair = self.stored[0][blocks], self.stored[1][blocks]
        exists = None if self.size % self.block == 0 else self.exists(blocks).reshape(len(blocks), self.block)
        return *pair, exists

    def values(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """cos(ω_iᵀx + b_i)."""
        frequencies, phases, exists = locations
        assert isinstance(kernel, Stationary)
        cosines = cosine_of_turns(kernel.scale(X) @ frequencies.reshape(-1, X.shape[1]).T + phases.ravel())
        return cosines if exists is None else jnp.where(exists.ravel(), cosines, 0.0)

    def initial_squares(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "B block"]:
        """½, the expectation over phases."""
        return jnp.full((self.blocks, self.block), 0.5, X.dtype)

    def precisions(self, kernel: Kernel, locations: Locations) -> Float[Array, " c"]:
        """Ones: the weights are standard normal a priori."""
        return jnp.ones_like(locations[1]).ravel()

    def _block(
        self, b: Int[Array, ""], inputs: int, dtype: DTypeLike
    ) -> tuple[Float[Array, "block D"], Float[Array, " block"]]:
        """Frequencies in turns per lengthscale, and phases in turns.  Drawn in float32, so that precisions agree."""
        frequency_key, phase_key = jax.random.split(jax.random.fold_in(self.key, b))
        shape = (self.block, inputs)
        normals = jax.random.normal(frequency_key, (self.block, inputs + self.degrees), jnp.float32)
        frequencies, rest = normals[:, :inputs], normals[:, inputs:]
        if self.degrees:
            frequencies = frequencies / jnp.sqrt(jnp.mean(rest**2, axis=1, keepdims=True))
        phases = jax.random.uniform(phase_key, shape[:1], jnp.float32)
        return frequencies.astype(dtype) / (2.0 * jnp.pi), phases.astype(dtype)


def spectral_degrees(kernel: Kernel) -> int:
    """Degrees of freedom of the spectral density of a kernel of `SPECTRAL`, a multivariate t distribution.  2ν for the
    Matérn kernel of smoothness ν (Rasmussen and Williams 2006, equation 4.15); 0 for the squared exponential, whose
    spectral density is normal."""
    return _DEGREES[type(kernel)]  # type: ignore[index]


class PriorDraws(eqx.Module):
    """S functions f_s(x) = √(amp / F) Σ_i (a_is cos ω_iᵀx + b_is sin ω_iᵀx), a and b standard normal.  They share F
    frequencies ω_i from the spectral density of a kernel of amplitude amp.  Given these, their covariance is (amp / F)
    Σ_i cos ω_iᵀ(x - x'): amp for x = x', and for others an unbiased estimate of k(x, x') whose standard error is less
    than amp / √F."""

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
    """Functions drawn from the prior of a kernel of `SPECTRAL` by random Fourier features, for rows such as X."""
    frequency_key, weight_key = jax.random.split(key)
    inputs, degrees = X.shape[1], spectral_degrees(kernel)
    normals = jax.random.normal(frequency_key, (frequencies, inputs + degrees), X.dtype)
    turns = normals[:, :inputs] / (2.0 * jnp.pi)
    if degrees:  # a t distribution: the root of a mean of squares divides
        turns /= jnp.sqrt(jnp.mean(normals[:, inputs:] ** 2, axis=1, keepdims=True))
    return PriorDraws(turns, jax.random.normal(weight_key, (2, frequencies, samples), X.dtype))
