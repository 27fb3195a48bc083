"""The energy log Zq of `sep`, its site update and its gradients, in whitened coordinates.

u = L w with Kzz = L Lᵀ, A = L⁻¹ and w ~ N(0, I) a priori.  Point n sees f_n = V_nᵀ w + residual with V = A Kzx, so
its site, a factor on v_nᵀu with v_n = Kzz⁻¹ k_n, is the same factor on V_nᵀw.  q(w) = N(μ, P⁻¹) with
P = I + Σ ν_n V_n V_nᵀ, whose inverse Cholesky factor is R.  Nothing forms Kzz⁻¹, and N meets M in products only.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.likelihoods import probit_derivatives, probit_log_normaliser
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.sites import Sites, damped, matched
from gpbench.methods.sparse import Covariances, residual


class Posterior(eqx.Module):
    """q(w) = N(mu, (RᵀR)) in the coordinates whitened by A."""

    A: Float[Array, "M M"]
    R: Float[Array, "M M"]
    mu: Float[Array, " M"]


class Sums(eqx.Module):
    """Σ ν_n v_n v_nᵀ and Σ τ_n v_n: all sites together, as one factor on the inducing outputs u."""

    precision: Float[Array, "M M"]
    shift: Float[Array, " M"]

    def __add__(self, other: "Sums") -> "Sums":
        return jax.tree.map(jnp.add, self, other)

    def __sub__(self, other: "Sums") -> "Sums":
        return jax.tree.map(jnp.subtract, self, other)


def site_sums(V: Float[Array, "M B"], sites: Sites) -> Sums:
    """The sums over these sites in the coordinates of the columns of `V`."""
    return Sums((V * sites.nu) @ V.T, V @ sites.tau)


def posterior(A: Float[Array, "M M"], whitened: Sums) -> Posterior:
    """q(w) from the sites' sums in whitened coordinates: P = I + Σ ν V Vᵀ, μ = P⁻¹ Σ τ V."""
    R = inverse_cholesky(jnp.eye(A.shape[0], dtype=A.dtype) + whitened.precision)
    return Posterior(A, R, R.T @ (R @ whitened.shift))


def whiten(sums: Sums, A: Float[Array, "M M"], zz: Float[Array, "M M"]) -> Sums:
    """Sums over factors on u as sums over factors on w: Lᵀ F L and Lᵀ h, with Lᵀ = A Kzz."""
    Lt = A @ zz
    return Sums(Lt @ sums.precision @ Lt.T, Lt @ sums.shift)


class Marginals(eqx.Module):
    """q's mean and variance along the sites' directions, and those of the cavities along the points' own."""

    mean: Float[Array, " N"]
    variance: Float[Array, " N"]
    cavity_mean: Float[Array, " N"]
    cavity_variance: Float[Array, " N"]


def marginals(q: Posterior, V: Float[Array, "M N"], W: Float[Array, "M N"], sites: Sites) -> Marginals:
    """Mean and variance of q along the sites' directions `W`, and of their cavities along `V`.

    The two differ only where the hyper-parameters have moved since a site was refined (or move under a gradient).
    """
    T = q.R @ V
    S = T if W is V else q.R @ W
    mean, variance = W.T @ q.mu, jnp.sum(S**2, axis=0)
    across = variance if W is V else jnp.sum(T * S, axis=0)
    # Σ + ν Σ w wᵀ Σ / (1 - ν wᵀΣw), and the same rank-one change of the mean, seen along v
    gain = across / (1.0 - sites.nu * variance)
    cavity_mean = V.T @ q.mu + gain * (sites.nu * mean - sites.tau)
    cavity_variance = jnp.sum(T**2, axis=0) + sites.nu * across * gain
    return Marginals(mean, variance, cavity_mean, cavity_variance)


def inside(q: Posterior, V: Float[Array, "M N"], sites: Sites, most: float = 0.99) -> Sites:
    """Sites along `V` as they can be taken out of a q that may hold less than the whole of them.

    Of a site with more than `most` of q's precision there, only so much is taken.
    """
    precision = sites.nu * jnp.sum((q.R @ V) ** 2, axis=0)
    return sites.times(jnp.minimum(1.0, most / jnp.maximum(precision, most)))


def refine(y: Float[Array, " N"], residual: Float[Array, " N"], at: Marginals, old: Sites, rho) -> Sites:
    """The parallel site update (paper equation 23 with the errata's sign), damped by ρ (equation 25).

    Sites whose ρ is 0 stay as they are.
    """
    _, slope, curvature = probit_derivatives(y, at.cavity_mean, residual + at.cavity_variance)
    return damped(matched(at.cavity_mean, at.cavity_variance, slope, curvature), old, rho)


def log_normaliser(
    y: Float[Array, " N"],
    residual: Float[Array, " N"],
    q: Posterior,
    at: Marginals,
    shift: Float[Array, " M"],
    sites: Sites,
    weight: Float[Array, " N"],
) -> Float[Array, ""]:
    """log Zq = ½ log|P⁻¹| + ½ μᵀ Σ τ V + Σ_n weight_n (log Z_n + g(cavity) - g(q)).

    Paper appendix A.5; equation 29's quadratic terms lack their ½ and the last its sign (errata).
    """
    gap = at.mean - sites.tau * at.variance
    C = sites.nu / (1.0 - sites.nu * at.variance)
    log_site = 0.5 * (-2.0 * sites.tau * at.mean + sites.tau**2 * at.variance + C * gap**2)
    log_site -= 0.5 * jnp.log1p(-sites.nu * at.variance)
    log_z = probit_log_normaliser(y, at.cavity_mean, residual + at.cavity_variance)
    return -0.5 * log_determinant(q.R) + 0.5 * q.mu @ shift + jnp.sum(weight * (log_z + log_site))


def energy(
    cov: Covariances,
    y: Float[Array, " N"],
    sites: Sites,
    weight: Float[Array, " N"],
    others: Sums | None,
    *,
    fixed_factors: bool,
) -> Float[Array, ""]:
    """log Zq as a function to differentiate in the covariances, through q and every cavity.

    `fixed_factors`: the sites are factors on u that stay put (gradient `exact`); otherwise only their scalars stay and
    their directions v_n follow the hyper-parameters (gradient `scalars`).  `others` are the sums over sites outside.
    """
    A = inverse_cholesky(cov.zz)
    V = A @ cov.zx
    W = A @ cov.zz @ jax.lax.stop_gradient(A.T @ V) if fixed_factors else V
    sums = site_sums(W, sites)
    if others is not None:
        sums = sums + whiten(others, A, cov.zz)
    q = posterior(A, sums)
    return log_normaliser(y, residual(cov, V), q, marginals(q, V, W, sites), sums.shift, sites, weight)


def approximate_gradient(
    y: Float[Array, " N"],
    residual: Float[Array, " N"],
    V: Float[Array, "M N"],
    q: Posterior,
    at: Marginals,
    sites: Sites,
    weight: Float[Array, " N"],
) -> Covariances:
    """The gradient of log Zq in the covariances with factors and cavities fixed and moments taken as matched.

    Paper equation 4 (equation 6 with weights N/|B|), in closed form.  With α and β the derivatives of log Z_n in its
    mean and variance and Σ = RᵀR, the gradient in Kzx is Aᵀ H, H = μ αᵀ + Σ V diag(c) - 2 V diag(β); in Kzz it is
    Aᵀ [-½ (I - Σ - μ μᵀ) - (H + V diag(β)) Vᵀ] A; in k(x, x) it is β.  A test holds it against autodiff.
    """
    variance = residual + at.cavity_variance
    _, alpha, _ = probit_derivatives(y, at.cavity_mean, variance)
    alpha = weight * alpha
    beta = -0.5 * alpha * at.cavity_mean / (1.0 + variance)
    c = (alpha * (sites.nu * at.mean - sites.tau) + 2.0 * beta) / (1.0 - sites.nu * at.variance)
    S = q.R.T @ q.R
    H = q.mu[:, None] * alpha + (S @ V) * c - V * (2.0 * beta)
    inner = 0.5 * (S + jnp.outer(q.mu, q.mu) - jnp.eye(S.shape[0], dtype=S.dtype)) - (H + V * beta) @ V.T
    zz = q.A.T @ (0.5 * (inner + inner.T)) @ q.A
    return Covariances(zz, q.A.T @ H, beta)
