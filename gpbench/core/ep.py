"""Expectation propagation on sparse GPs: the energy log Zq, the site update and gradients, in whitened coordinates.

u = L w with Kzz = L Lᵀ, A = L⁻¹ and w ~ N(0, I) a priori.  Point n sees f_n = V_nᵀ w + residual with V = A Kzx, so
its site, a factor on v_nᵀu with v_n = Kzz⁻¹ k_n, is the same factor on V_nᵀw.  q(w) = N(μ, P⁻¹) with
P = I + Σ ν_n V_n V_nᵀ, whose inverse Cholesky factor is R.  Nothing forms Kzz⁻¹, and N meets M in products only.
Equations are those of the paper `sep`, corrected where docs/reference/errata.md says so, for any likelihood of one
latent value.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.gaussians import (
    Covariances,
    Natural,
    Normal,
    Sites,
    damp,
    moment_match,
    residual,
    site_product,
    whiten,
)
from gpbench.core.likelihoods import Likelihood
from gpbench.core.linalg import inverse_cholesky, log_determinant

_REMOVABLE = 0.99  # largest share of q's precision along a direction that is divided out of it


class Marginals(eqx.Module):
    """q's mean and variance along the sites' directions, and those of the cavities along the points' own."""

    mean: Float[Array, " N"]
    variance: Float[Array, " N"]
    cavity_mean: Float[Array, " N"]
    cavity_variance: Float[Array, " N"]


def marginals(q: Normal, V: Float[Array, "M N"], W: Float[Array, "M N"], sites: Sites) -> Marginals:
    """Mean and variance of q along the sites' directions `W`, and of their cavities along `V`.  The two differ only
    where the hyper-parameters have moved since a site was refined (or move under a gradient).  `W` that is `V` itself
    saves the products."""
    T = q.root @ V
    S = T if W is V else q.root @ W
    mean, variance = W.T @ q.mean, jnp.sum(S**2, axis=0)
    across = variance if W is V else jnp.sum(T * S, axis=0)
    # Σ + ν Σ w wᵀ Σ / (1 - ν wᵀΣw), and the same rank-one change of the mean, seen along v
    gain = across / (1.0 - sites.nu * variance)
    cavity_mean = V.T @ q.mean + gain * (sites.nu * mean - sites.tau)
    cavity_variance = jnp.sum(T**2, axis=0) + sites.nu * across * gain
    return Marginals(mean, variance, cavity_mean, cavity_variance)


def removable(q: Normal, V: Float[Array, "M N"], sites: Sites) -> Sites:
    """Powers of sites that can be divided out of a q which may contain less than the whole of them."""
    precision = sites.nu * jnp.sum((q.root @ V) ** 2, axis=0)
    return sites.power(jnp.minimum(1.0, _REMOVABLE / jnp.maximum(precision, _REMOVABLE)))


def refine(
    likelihood: Likelihood,
    y: Float[Array, " N"],
    residual: Float[Array, " N"],
    moments: Marginals,
    old: Sites,
    rho: Float[Array, ""] | Float[Array, " N"] | float,
) -> Sites:
    """Parallel site update (equation 23 with the errata's sign), damped by ρ (equation 25).  ρ is one for all or one a
    site: 1 is no damping, and with 0 a site stays as it is."""
    _, slope, curvature = likelihood.normaliser_derivatives(moments.cavity_mean, residual + moments.cavity_variance, y)
    return damp(moment_match(moments.cavity_mean, moments.cavity_variance, slope, curvature), old, rho)


def log_normaliser(
    likelihood: Likelihood,
    y: Float[Array, " N"],
    residual: Float[Array, " N"],
    q: Normal,
    moments: Marginals,
    shift: Float[Array, " M"],
    sites: Sites,
    weight: Float[Array, " N"],
) -> Float[Array, ""]:
    """log Zq = ½ log|P⁻¹| + ½ μᵀ Σ τ V + Σ_n weight_n (log Z_n + g(cavity) - g(q)).  Appendix A.5; equation 29's
    quadratic terms lack their ½ and the last its sign (errata).  `shift` is Σ τ V over all sites, and the weight of a
    point N/B in a minibatch, 0 for rows that fill it up."""
    gap = moments.mean - sites.tau * moments.variance
    C = sites.nu / (1.0 - sites.nu * moments.variance)
    log_site = 0.5 * (-2.0 * sites.tau * moments.mean + sites.tau**2 * moments.variance + C * gap**2)
    log_site -= 0.5 * jnp.log1p(-sites.nu * moments.variance)
    log_z = likelihood.log_normaliser(moments.cavity_mean, residual + moments.cavity_variance, y)
    return -0.5 * log_determinant(q.root) + 0.5 * q.mean @ shift + jnp.sum(weight * (log_z + log_site))


def energy(
    likelihood: Likelihood,
    cov: Covariances,
    y: Float[Array, " N"],
    sites: Sites,
    weight: Float[Array, " N"],
    others: Natural | None,
    *,
    fixed_factors: bool,
) -> Float[Array, ""]:
    """log Zq as a function to differentiate in the covariances, through q and every cavity.  `others` is the product of
    all other sites as a factor on u.  With `fixed_factors` the sites are fixed factors on u (gradient `exact`);
    otherwise only their scalars are fixed, and their directions v_n follow the hyper-parameters (gradient `scalars`).
    """
    A = inverse_cholesky(cov.zz)
    V = A @ cov.zx
    W = A @ cov.zz @ jax.lax.stop_gradient(A.T @ V) if fixed_factors else V
    factor = site_product(W, sites)
    if others is not None:
        factor = factor + whiten(others, A, cov.zz)
    q = factor.posterior()
    return log_normaliser(likelihood, y, residual(cov, V), q, marginals(q, V, W, sites), factor.shift, sites, weight)


def approximate_gradient(
    likelihood: Likelihood,
    y: Float[Array, " N"],
    residual: Float[Array, " N"],
    A: Float[Array, "M M"],
    V: Float[Array, "M N"],
    q: Normal,
    moments: Marginals,
    sites: Sites,
    weight: Float[Array, " N"],
) -> Covariances:
    """Gradient of log Zq in the covariances with factors and cavities fixed and moments taken as matched.  Equation 4
    (equation 6 with weights N/|B|), in closed form.  With α and β the derivatives of log Z_n in its mean and variance,
    β = ½ (α² - κ), and Σ = RᵀR, the gradient in Kzx is Aᵀ H, H = μ αᵀ + Σ V diag(c) - 2 V diag(β); in Kzz it is Aᵀ [-½
    (I - Σ - μ μᵀ) - (H + V diag(β)) Vᵀ] A; in k(x, x) it is β.  A test holds it against autodiff."""
    _, alpha, kappa = likelihood.normaliser_derivatives(moments.cavity_mean, residual + moments.cavity_variance, y)
    beta = 0.5 * weight * (alpha**2 - kappa)
    alpha = weight * alpha
    c = (alpha * (sites.nu * moments.mean - sites.tau) + 2.0 * beta) / (1.0 - sites.nu * moments.variance)
    S = q.root.T @ q.root
    H = q.mean[:, None] * alpha + (S @ V) * c - V * (2.0 * beta)
    inner = 0.5 * (S + jnp.outer(q.mean, q.mean) - jnp.eye(S.shape[0], dtype=S.dtype)) - (H + V * beta) @ V.T
    zz = A.T @ (0.5 * (inner + inner.T)) @ A
    return Covariances(zz, A.T @ H, beta)
