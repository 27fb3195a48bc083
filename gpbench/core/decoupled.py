"""Decoupled Gaussian posteriors: a basis for the mean and a small one for the covariance (paper `svdgp`).  f = ρ g with
a priori g ~ GP of unit amplitude.  The mean of g is k_α(x) a plus a part on the small basis; that part and the
covariance differ between the parametrisations, one class each.  Nothing has M_α² entries."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.features import ScaledFeatures
from gpbench.core.gaussians import MeanVariance, Normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Likelihood
from gpbench.core.linalg import inverse_cholesky, log_determinant

_BLOCK = 1024  # columns of K_α in memory


class Decoupled(eqx.Module):
    """Base of all parametrisations: `kernel` with amplitude ρ², the two bases, and the weights of the mean's basis."""

    kernel: SquaredExponential
    likelihood: Likelihood
    alpha: ScaledFeatures
    a: Float[Array, " A"]
    beta: ScaledFeatures

    @property
    def unit(self) -> SquaredExponential:
        """Kernel of g: that of f with amplitude 1."""
        return SquaredExponential(jnp.zeros_like(self.kernel.log_amplitude), self.kernel.log_lengthscale2)

    @property
    def weights(self) -> Float[Array, " A"]:
        """Weights of the mean's basis, in units of g."""
        return self.a

    @abc.abstractmethod
    def factors(self) -> Any:
        """Matrices of the size of the small basis that mean, variance and KL share."""

    @abc.abstractmethod
    def marginals(self, factors: Any, X: Float[Array, "N D"]) -> MeanVariance:
        """Posterior mean and variance of f at X, given `factors()`."""

    @abc.abstractmethod
    def kl(self, factors: Any, square: Float[Array, ""]) -> Float[Array, ""]:
        """KL[q || prior] in nats, given `factors()` and aᵀK_α a or an unbiased estimate of it."""

    def _scaled(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> MeanVariance:
        """Mean and variance of f = ρ g from those of g."""
        amplitude = self.kernel.amplitude
        return jnp.sqrt(amplitude) * mean, amplitude * jnp.maximum(variance, 1e-9)

    def square(self) -> Float[Array, ""]:
        """aᵀK_α a, a block of columns at a time."""
        weights = self.weights
        missing = -len(weights) % _BLOCK
        a = jnp.pad(weights, (0, missing)).reshape(-1, _BLOCK)
        pad: Any = lambda x: jnp.pad(x, ((0, missing), (0, 0))).reshape(*a.shape, -1)

        def add(total: Array, columns: tuple[Array, Array, Array]) -> tuple[Array, None]:
            a, Z, log_scale = columns
            return total + a @ (self.alpha.gram(self.unit, ScaledFeatures(Z, log_scale)).T @ weights), None

        return jax.lax.scan(add, jnp.zeros((), a.dtype), (a, pad(self.alpha.Z), pad(self.alpha.log_scale)))[0]

    def sampled_square(self, columns: int, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """Unbiased estimate of aᵀK_α a from some columns of K_α.  The columns are neighbours from a random index on
        among the features in use; the estimate is exact where that is all of them.  Time and memory are O(M_α columns).
        """
        weights = self.weights
        m = len(weights)
        size = min(columns, m)
        n = jnp.clip(self.alpha.count(), 1, m)
        steps = jnp.arange(size)
        index = (jax.random.randint(key, (), 0, n) + steps) % n
        each = jnp.maximum(n / size, 1.0).astype(weights.dtype)
        weight = jnp.where(steps < n, each, jnp.zeros_like(each))
        return jnp.sum(weight * weights[index] * (weights @ self.alpha.gram(self.unit, self.alpha[index])))


class _DirectFactors(eqx.Module):
    """Whitening `W` with var g = 1 - |W k_β|², and the terms of the KL due to the covariance, `kl`."""

    W: Float[Array, "B B"]
    kl: Float[Array, ""]


class Direct(Decoupled):
    """The weights a and L, with B = L Lᵀ, themselves (equations 7 to 9)."""

    L: Float[Array, "B B"]

    @property
    def lower(self) -> Float[Array, "B B"]:
        """L, in units of g."""
        return jnp.tril(self.L)

    def factors(self) -> _DirectFactors:
        """With H = I + LᵀK_βL the terms of the KL are ½ log|H| - ½ tr(I - H⁻¹)."""
        K, L = self.beta.gram(self.unit), self.lower
        m = len(K)
        G = inverse_cholesky(jnp.eye(m, dtype=K.dtype) + L.T @ K @ L)
        return _DirectFactors(G @ L.T, 0.5 * (log_determinant(G) - m + jnp.sum(G**2)))

    def marginals(self, factors: _DirectFactors, X: Float[Array, "N D"]) -> MeanVariance:
        mean = self.alpha.cross(self.unit, X).T @ self.weights
        variance = 1.0 - jnp.sum((factors.W @ self.beta.cross(self.unit, X)) ** 2, axis=0)
        return self._scaled(mean, variance)

    def kl(self, factors: _DirectFactors, square: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * square + factors.kl


class Jacobi(Direct):
    """The parameters of `Direct` divided by the diagonals of the Gram matrices (A.1).  In units of f, a = a₀/ρ² and L =
    L₀/ρ²; in those of g, which is f/ρ, both are divided by ρ."""

    @property
    def weights(self) -> Float[Array, " A"]:
        return self.a / jnp.exp(0.5 * self.kernel.log_amplitude)

    @property
    def lower(self) -> Float[Array, "B B"]:
        return jnp.tril(self.L) / jnp.exp(0.5 * self.kernel.log_amplitude)


class _HybridFactors(eqx.Module):
    """Whitening `A` of the small basis, `c` = V(α) a, and the mean's weights `lead` on V = A k_β."""

    A: Float[Array, "B B"]
    c: Float[Array, " B"]
    lead: Float[Array, " B"]


class Hybrid(Decoupled):
    """q(w) on the whitened small basis as svi has it, and the mean's basis beside it (A.3)."""

    q: Normal

    def factors(self) -> _HybridFactors:
        A = inverse_cholesky(self.beta.gram(self.unit))
        c = A @ (self.beta.gram(self.unit, self.alpha) @ self.weights)
        return _HybridFactors(A, c, self.q.mean)

    def marginals(self, factors: _HybridFactors, X: Float[Array, "N D"]) -> MeanVariance:
        V = factors.A @ self.beta.cross(self.unit, X)
        mean = self.alpha.cross(self.unit, X).T @ self.weights + V.T @ factors.lead
        variance = 1.0 - jnp.sum(V**2, axis=0) + jnp.sum((jnp.tril(self.q.root) @ V) ** 2, axis=0)
        return self._scaled(mean, variance)

    def kl(self, factors: _HybridFactors, square: Float[Array, ""]) -> Float[Array, ""]:
        """The terms of q(w)'s covariance have the ½ that equation 14 lacks before the determinant (errata)."""
        mean_terms = 0.5 * (square + jnp.sum((factors.lead + factors.c) ** 2) - jnp.sum(factors.c**2))
        return mean_terms + Normal(jnp.zeros_like(self.q.mean), self.q.root).kl()


class Orthogonal(Hybrid):
    """The mean's basis made orthogonal to the covariance's (Salimbeni, Cheng, Boots and Deisenroth, NeurIPS 2018)."""

    def factors(self) -> _HybridFactors:
        hybrid = super().factors()
        return _HybridFactors(hybrid.A, hybrid.c, self.q.mean - hybrid.c)
