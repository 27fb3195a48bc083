"""The parts of decoupled variational GPs: a basis for the mean and a small one for the covariance (paper `svdgp`).

f = ρ g with a priori g ~ GP of unit amplitude.  The mean of g is k_α(x) a + V(x)ᵀ w with V = A k_β(x) whitened by the
small basis; what w is, and the covariance, differ between the parametrisations.  Nothing has M_α² entries.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core import features
from gpbench.core.gaussians import Normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.linalg import inverse_cholesky, log_determinant

Parametrisation = Literal["direct", "jacobi", "hybrid", "orthogonal"]

_FAR = 1e6
"""Where bases wait that are not yet in use, in units of the inputs: uncorrelated with all rows and with each other."""


class Basis(eqx.Module):
    """Generalised squared exponential features: their places, and the logarithms of their scales."""

    Z: Float[Array, "M D"]
    log_scale: Float[Array, "M D"]

    def gram(self, kernel: SquaredExponential, other: "Basis") -> Float[Array, "M P"]:
        """Prior covariances with other features."""
        return features.gram(kernel, self.Z, self.log_scale, other.Z, other.log_scale)

    def cross(self, kernel: SquaredExponential, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Prior covariances with the function at X."""
        return features.cross(kernel, self.Z, self.log_scale, X)

    def __getitem__(self, index) -> "Basis":
        return Basis(self.Z[index], self.log_scale[index])

    def added(self, X: Float[Array, "P D"], count: Int[Array, ""]) -> "Basis":
        """With features of scale 1 at the rows of `X` from place `count` on; beyond the last place they are dropped."""
        index = count + jnp.arange(len(X))
        put = lambda whole, rows: whole.at[index].set(rows, mode="drop")
        return Basis(put(self.Z, X), put(self.log_scale, jnp.zeros_like(X)))


def waiting(m: int, d: int, dtype) -> Basis:
    """m features of which none is in use."""
    places = _FAR * (1.0 + jnp.arange(m, dtype=dtype))
    return Basis(jnp.broadcast_to(places[:, None], (m, d)), jnp.zeros((m, d), dtype))


class Parameters(eqx.Module):
    """What the bound is a function of.

    `kernel` with log ρ² as its amplitude, and `log_noise`, of y about f in regression.  `a`, the weights of the mean's
    basis.  `q`: in the parametrisations direct and jacobi its `root` is L of B = L Lᵀ and its mean is not used; else
    it is the posterior of w as `gpbench.methods.svi` has it.
    """

    kernel: SquaredExponential
    log_noise: Float[Array, ""]
    alpha: Basis
    a: Float[Array, " A"]
    beta: Basis
    q: Normal

    @property
    def unit(self) -> SquaredExponential:
        """The kernel of g."""
        return SquaredExponential(jnp.zeros_like(self.kernel.log_amplitude), self.kernel.log_lengthscale2)


class Parts(eqx.Module):
    """What mean, variance and divergence share, all of the size of the small basis but for one.

    `W` (M_β, M_β): var g = 1 - |W k_β|² + |U k_β|².  `c` = V(α) a.  `lead`: the mean's weights on V = A k_β.
    """

    A: Float[Array, "B B"]
    W: Float[Array, "B B"]
    U: Float[Array, "B B"]
    c: Float[Array, " B"]
    lead: Float[Array, " B"]
    of_covariance: Float[Array, ""]


def parts(p: Parameters, kind: Parametrisation) -> Parts:
    """The shared parts, and the divergence's terms of the covariance.

    Direct (equations 8 and 9): with H = I + LᵀK_βL they are ½ log|H| - ½ tr(I - H⁻¹).  The others (A.3): those of
    q(w) = N(m, RᵀR), with the ½ that its equation 14 lacks before the determinant (errata).
    """
    K = p.beta.gram(p.unit, p.beta)
    m, eye = len(K), jnp.eye(len(K), dtype=K.dtype)
    none = jnp.zeros(m, K.dtype)
    if kind in ("direct", "jacobi"):
        L = jnp.tril(p.q.root)
        G = inverse_cholesky(eye + L.T @ K @ L)
        terms = 0.5 * (log_determinant(G) - m + jnp.sum(G**2))
        return Parts(jnp.zeros_like(K), G @ L.T, jnp.zeros_like(K), none, none, terms)
    A = inverse_cholesky(K)
    c = A @ (p.beta.gram(p.unit, p.alpha) @ p.a)
    lead = p.q.mean - c if kind == "orthogonal" else p.q.mean
    terms = Normal(none, p.q.root).kl_from_standard()
    return Parts(A, A, jnp.tril(p.q.root) @ A, c, lead, terms)


def marginals(p: Parameters, shared: Parts, X: Float[Array, "N D"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """The posterior's mean and variance of f at X."""
    beta = p.beta.cross(p.unit, X)
    mean = p.alpha.cross(p.unit, X).T @ p.a + (shared.A @ beta).T @ shared.lead
    variance = 1.0 - jnp.sum((shared.W @ beta) ** 2, axis=0) + jnp.sum((shared.U @ beta) ** 2, axis=0)
    amplitude = p.kernel.amplitude
    return jnp.sqrt(amplitude) * mean, amplitude * jnp.maximum(variance, 1e-9)


def divergence(p: Parameters, shared: Parts, square: Float[Array, ""]) -> Float[Array, ""]:
    """KL[q || prior]; `square` is aᵀK_α a, or an estimate of it."""
    of_mean = 0.5 * (square + jnp.sum((shared.lead + shared.c) ** 2) - jnp.sum(shared.c**2))
    return of_mean + shared.of_covariance


def sampled_square(p: Parameters, count: Int[Array, ""], columns: int, *, key: PRNGKeyArray) -> Float[Array, ""]:
    """An unbiased estimate of aᵀK_α a, from `columns` columns of K_α: O(M_α columns) time and memory.

    The columns are neighbours from a random first one, among the `count` features in use; all where that is enough.
    """
    m = len(p.a)
    size = min(columns, m)
    n = jnp.clip(count, 1, m)
    place = jnp.arange(size)
    index = (jax.random.randint(key, (), 0, n) + place) % n
    weight = jnp.where(place < n, jnp.maximum(n / size, 1.0), 0.0).astype(p.a.dtype)
    return jnp.sum(weight * p.a[index] * (p.a @ p.alpha.gram(p.unit, p.alpha[index])))


def square(p: Parameters, block: int = 1024) -> Float[Array, ""]:
    """aᵀK_α a, `block` columns at a time."""
    missing = -len(p.a) % block
    a = jnp.pad(p.a, (0, missing)).reshape(-1, min(block, len(p.a) + missing))
    Z, s = (jnp.pad(x, ((0, missing), (0, 0))).reshape(*a.shape, -1) for x in (p.alpha.Z, p.alpha.log_scale))

    def add(total, columns):
        a, Z, s = columns
        return total + a @ (p.alpha.gram(p.unit, Basis(Z, s)).T @ p.a), None

    return jax.lax.scan(add, jnp.zeros((), p.a.dtype), (a, Z, s))[0]
