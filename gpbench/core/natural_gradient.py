"""Natural-gradient steps of variational posteriors q(w), written once for all methods that take them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.gaussians import Natural, moment_match, site_product


def natural_gradient_step(
    factor: Natural,
    expected_log_prob: Callable[[Float[Array, " B"], Float[Array, " B"]], Float[Array, " B"]],
    mean: Float[Array, " B"],
    variance: Float[Array, " B"],
    V: Float[Array, "M B"],
    weight: Float[Array, " B"],
    step_size: float,
    offset: Float[Array, " B"] | float = 0.0,
    *,
    log_concave: bool = True,
) -> Natural:
    """The factor q(w) / N(w | 0, I) after a natural-gradient step of the bound (Hensman et al. 2013, section 3.2).

    The gradient of the bound in q's expectation parameters is that of one site per row, with slope dE/dm and curvature
    -2 dE/dv of its expected log-likelihood E: the moment match of EP with a cavity of variance 0.  The rows' f is Vᵀw +
    offset + an independent rest, with this mean and variance under q, and their weight is N/B, or 0 for those that only
    fill a minibatch.  With γ = `step_size` = 1 and a Gaussian likelihood on all rows, q is at its optimum after one
    step.  Where a row may have negative curvature (not `log_concave`), the step keeps q's precision positive definite
    (`keep_definite`).
    """
    slope, half = jax.grad(lambda m, v: jnp.sum(expected_log_prob(m, v)), argnums=(0, 1))(mean, variance)
    sites = moment_match(mean - offset, jnp.zeros_like(mean), slope, -2.0 * half)
    new = site_product(V, sites.power(weight))
    mixed = jax.tree.map(lambda a, b: step_size * a + (1.0 - step_size) * b, new, factor)
    return mixed if log_concave else keep_definite(mixed, new, factor, step_size)


def keep_definite(mixed: Natural, new: Natural, factor: Natural, step_size: float) -> Natural:
    """A step `mixed`, (1 - γ) factor + γ new, with ½ γ² D S D more precision, D their difference and S q's covariance.
    The sum is positive definite for any D, and D is 0 at an optimum (Lin, Schmidt and Khan, ICML 2020, improved
    Bayesian learning rule).  The mean takes the same ascent direction, preconditioned by the new precision."""
    q = factor.posterior()
    change = q.root @ (new.precision - factor.precision)
    more = 0.5 * step_size**2 * change.T @ change
    return Natural(mixed.precision + more, mixed.shift + more @ q.mean)
