"""Posterior samples of an exact GP from draws of its prior (Wilson et al., ICML 2020).  With H = K + σ²I of the
training rows X, f_s from the prior and ε_s ~ N(0, σ²I), a sample is f_s(x) + k(x, X) H⁻¹(y - f_s(X) - ε_s).  H⁻¹y and
H⁻¹(f_s(X) + ε_s) are columns of weights side by side."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.bases.fourier import PriorDraws
from gpbench.core.bases.kernel import in_blocks, product
from gpbench.core.solvers import KernelSystem, exact, relative
from gpbench.methods.parts.exact import ExactGP

_CHECKED = 1000  # number of training rows whose residuals are reported


def right_hand_sides(
    gp: ExactGP, draws: PriorDraws, X: Float[Array, "N D"], y: Float[Array, " N"], noise: Float[Array, "N S"]
) -> Float[Array, "N C"]:
    """y, and f_s(X) + ε_s for each sample, from standard normal `noise`."""
    noise = jnp.sqrt(gp.likelihood.noise) * noise
    return jnp.column_stack([y, in_blocks(partial(draws, gp.kernel), X) + noise])


def posterior(
    gp: ExactGP, draws: PriorDraws, rows: Float[Array, "N D"], weights: Float[Array, "N C"], X: Float[Array, "T D"]
) -> tuple[Float[Array, " T"], Float[Array, "T S"]]:
    """The posterior mean at X, and the deviations of the S posterior samples from it."""

    def block(x: Any) -> Any:
        Ka = product(gp.kernel, x, rows, weights)
        return Ka[:, 0], draws(gp.kernel, x) - Ka[:, 1:]

    return in_blocks(block, X)


def residuals(
    gp: ExactGP, X: Float[Array, "N D"], b: Float[Array, "N C"], weights: Float[Array, "N C"]
) -> dict[str, Array]:
    """|b - H weights| / |b| on the last rows, in float64 of the mean, and of all samples together."""
    with jax.named_scope("needs_float64"):
        mean = _residual(*exact((gp, X, b[:, :1], weights[:, :1])))
    return {"residual": mean, "residual_samples": _residual(gp, X, b[:, 1:], weights[:, 1:])}


@jax.jit
def _residual(
    gp: ExactGP, X: Float[Array, "N D"], b: Float[Array, "N C"], weights: Float[Array, "N C"]
) -> Float[Array, ""]:
    system = KernelSystem(gp.kernel, gp.likelihood.noise, X, b)
    return relative(system.last_residual(weights, _CHECKED), b[-_CHECKED:])
