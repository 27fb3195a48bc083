"""Random Fourier features (Rahimi and Recht 2007), generated from a seed block by block, or stored."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.bases.base import Basis, Locations
from gpbench.core.cosines import cosine_of_turns
from gpbench.core.kernels import Kernel, SquaredExponential, Stationary
from gpbench.core.kernels.matern import Matern12, Matern32, Matern52

_DEGREES = {SquaredExponential: 0, Matern12: 1, Matern32: 3, Matern52: 5}
"""Degrees of freedom of the t distribution that is the spectral density in units of the lengthscales; 0: normal."""

SPECTRAL = tuple(_DEGREES)
"""The kernels with a spectral density from which this module draws."""


class RandomFeatures(Basis):
    """φ_i(x) = √(2 amp / m) cos(ω_iᵀx + b_i), ω_i from the kernel's spectral density and b_i uniform: S = I.

    Nothing of size m is held: the functions of block b follow from `key` and b alone, whatever the size, the precision
    and the number of devices.  `stored` has the frequencies and phases of all blocks where they fit in memory and are
    costly to generate again, as with hundreds of inputs.
    """

    key: PRNGKeyArray
    size: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    degrees: int = eqx.field(static=True)
    """Of freedom of the spectral density: see `spectral_degrees`."""
    stored: tuple[Float[Array, "B block D"], Float[Array, "B block"]] | None = None

    def store(self, inputs: int, dtype) -> "RandomFeatures":
        """The same basis with its frequencies and phases in memory: m (D + 1) numbers, generated once."""
        pair = jax.lax.map(lambda b: self._block(b, inputs, dtype), jnp.arange(self.blocks))
        return RandomFeatures(key=self.key, size=self.size, block=self.block, degrees=self.degrees, stored=pair)

    def unit(self, kernel: Kernel) -> Float[Array, ""]:
        """√(2 amp / m)."""
        return jnp.sqrt(2.0 / self.size) * jnp.exp(0.5 * kernel.log_amplitude)  # type: ignore[attr-defined]

    def locations(self, blocks: Int[Array, " b"], inputs: int, dtype) -> Locations:
        """Frequencies and phases, in turns; and whether they are functions, None where all are."""
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
        """1."""
        return jnp.ones_like(locations[1]).ravel()

    def _block(self, b: Int[Array, ""], inputs: int, dtype) -> tuple[Float[Array, "block D"], Float[Array, " block"]]:
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
    """The degrees of freedom of a kernel's spectral density; 0 is the normal distribution.

    The Matérn kernel of smoothness ν has a multivariate t distribution with 2ν (Rasmussen and Williams 2006, equation
    4.15).
    """
    return _DEGREES[type(kernel)]  # type: ignore[index]
