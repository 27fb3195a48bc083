"""Posteriors of the whitened inducing outputs w of several additive components (paper `gam`, sections 3 and 4).  The
components are independent under the prior, w ~ N(0, I), and the posterior may couple them.  In whitened terms the
paper's precision K⁻¹ + B Bᵀ is I + B Bᵀ."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import MeanVariance, Natural, Normal
from gpbench.core.linalg import inverse_cholesky, log_determinant, product, transposed


class Posterior(eqx.Module):
    """Interface of q(w) for T whitened inducing outputs, those of one component after another."""

    @abc.abstractmethod
    def project(self, V: Float[Array, "T N"]) -> MeanVariance:
        """Mean and variance of Vₙᵀw for every column of `V`."""

    @abc.abstractmethod
    def kl(self) -> Float[Array, ""]:
        """KL[q(w) || N(0, I)], in nats."""

    @abc.abstractmethod
    def moments(self) -> tuple[Float[Array, " T"], Float[Array, "T T"]]:
        """Mean and covariance of w."""

    def prepared(self) -> "Posterior":
        """The same q, with what `project` makes of q alone: for many calls."""
        return self

    def sample(self, count: int, *, key: PRNGKeyArray) -> Float[Array, "K T"]:
        """Draws from q(w), one a row; K is `count`."""
        mean, covariance = self.moments()
        A = inverse_cholesky(covariance)
        noise = jax.random.normal(key, (len(mean), count), mean.dtype)
        return mean + jax.scipy.linalg.solve_triangular(A, noise, lower=True).T


class IndependentComponents(Posterior):
    """Components are independent under the posterior too (Saul, Hensman, Vehtari and Lawrence 2016).  Components with
    equally many inducing outputs, one after another, are stacked in one `Normal` with means (G, M)."""

    groups: tuple[Normal, ...]

    def project(self, V: Float[Array, "T N"]) -> MeanVariance:
        mean, variance, start = jnp.zeros(V.shape[1], V.dtype), jnp.zeros(V.shape[1], V.dtype), 0
        for group in self.groups:
            count, m = group.mean.shape
            rows = V[start : start + count * m].reshape(count, m, -1)
            means, variances = jax.vmap(Normal.project)(group, rows)
            mean, variance, start = mean + means.sum(0), variance + variances.sum(0), start + count * m
        return mean, variance

    def kl(self) -> Float[Array, ""]:
        return jnp.sum(jnp.concatenate([jax.vmap(Normal.kl)(group) for group in self.groups]))

    def moments(self) -> tuple[Float[Array, " T"], Float[Array, "T T"]]:
        roots = [jnp.tril(root) for group in self.groups for root in group.root]
        mean = jnp.concatenate([group.mean.ravel() for group in self.groups])
        return mean, block_diag(*(root.T @ root for root in roots))


class CoupledCovariance(Posterior):
    """A normal distribution of all components together (Adam 2017): T (T + 3) / 2 values."""

    q: Normal

    def project(self, V: Float[Array, "T N"]) -> MeanVariance:
        return self.q.project(V)

    def kl(self) -> Float[Array, ""]:
        return self.q.kl()

    def moments(self) -> tuple[Float[Array, " T"], Float[Array, "T T"]]:
        R = jnp.tril(self.q.root)
        return self.q.mean, R.T @ R


class CoupledPrecision(Posterior):
    """The precision I + B Bᵀ with B of R columns (paper `gam`, section 4): T (R + 1) values, O(N T R) for N rows.  With
    A = I + BᵀB the covariance is I - B A⁻¹ Bᵀ.  R directions of w are narrower than the prior, whatever the number of
    components, and none is wider; R = T has every such covariance.  `factor` is A's inverse Cholesky factor, of a q
    that is `prepared`."""

    mean: Float[Array, " T"]
    B: Float[Array, "T R"]
    factor: Float[Array, "R R"] | None = None

    def prepared(self) -> "CoupledPrecision":
        return CoupledPrecision(self.mean, self.B, self._inverse_factor())

    def _inverse_factor(self) -> Float[Array, "R R"]:
        """The inverse Cholesky factor of A = I + BᵀB."""
        if self.factor is not None:
            return self.factor
        return inverse_cholesky(jnp.eye(self.B.shape[1], dtype=self.B.dtype) + self.B.T @ self.B)

    def project(self, V: Float[Array, "T N"]) -> MeanVariance:
        # The sum over components, in Bᵀ V, comes before the solve: O(N T R) and not the paper's O(N C² M²)
        less = jnp.sum(product(self._inverse_factor(), transposed(self.B) @ V) ** 2, axis=0)
        return self.mean @ V, jnp.maximum(jnp.sum(V**2, axis=0) - less, 0.0)

    def kl(self) -> Float[Array, ""]:
        """½ (log|A| + |mean|² - tr(BᵀB A⁻¹)), in nats: appendix C.2, whitened."""
        factor = self._inverse_factor()
        trace = self.B.shape[1] - jnp.sum(factor**2)  # of A⁻¹ BᵀB = I - A⁻¹
        return 0.5 * (log_determinant(factor) + jnp.sum(self.mean**2) - trace)

    def moments(self) -> tuple[Float[Array, " T"], Float[Array, "T T"]]:
        less = self._inverse_factor() @ self.B.T
        return self.mean, jnp.eye(len(self.mean), dtype=less.dtype) - less.T @ less


def mean_field(factor: Natural, shapes: tuple[tuple[int, int], ...]) -> IndependentComponents:
    """The independent components closest to the prior times a factor, in KL[q || p].  They have its mean, and the
    diagonal blocks of its precision.  For each pair (G, M) of `shapes` one group of G components with M inducing
    outputs each; Σ G M = T."""
    mean, groups, start = factor.posterior().mean, [], 0
    for count, m in shapes:
        starts = [start + i * m for i in range(count)]
        precisions = jnp.stack([factor.precision[i : i + m, i : i + m] for i in starts])
        roots = jax.vmap(lambda P, m=m: inverse_cholesky(jnp.eye(m, dtype=P.dtype) + P))(precisions)
        groups.append(jax.vmap(Normal)(jnp.stack([mean[i : i + m] for i in starts]), roots))
        start += count * m
    return IndependentComponents(tuple(groups))


def coupled_precision(factor: Natural, rank: int) -> CoupledPrecision:
    """The prior times a factor of whose precision it takes the R = `rank` leading eigenvectors, with the same mean."""
    values, vectors = jnp.linalg.eigh(factor.precision)
    # which of the two signs LAPACK gives an eigenvector depends on the processor; B Bᵀ has both
    weights = jnp.sqrt(jnp.arange(1.0, len(vectors) + 1.0, dtype=vectors.dtype))
    vectors = jnp.where(weights @ vectors < 0.0, -vectors, vectors)
    scale = jnp.sqrt(jnp.maximum(values[::-1][:rank], 1e-6))
    return CoupledPrecision(factor.posterior().mean, vectors[:, ::-1][:, :rank] * scale)
