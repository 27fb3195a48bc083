"""The cosine kernel: functions of one frequency along a direction of the inputs."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import AmplitudeFamily, log_scalar
from gpbench.schema import setting


class Cosine(AmplitudeFamily):
    """k(x, x') = amp · cos(2π Σ_d (x_d - x'_d) / p_d), with a period p_d for every input."""

    log_amplitude: Float[Array, ""]
    log_period: Float[Array, " D"]
    period: float = setting(1.0, "positive", "Initial period of every input, in its units.")

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        x, y = (2.0 * jnp.pi * jnp.sum(rows / jnp.exp(self.log_period), axis=1) for rows in (X, Y))
        # cos(x - y) = cos x cos y + sin x sin y
        return self.amplitude * (jnp.outer(jnp.cos(x), jnp.cos(y)) + jnp.outer(jnp.sin(x), jnp.sin(y)))

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: str, amplitude: float, unit: Any, **options: Any) -> "Cosine":
        log_period = jnp.log(options["period"] / jnp.asarray(unit, X.dtype))
        return cls(log_scalar(amplitude, X), log_period, **options)
