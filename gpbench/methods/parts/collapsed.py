"""Sparse GP regression with q in closed form: one objective for the bounds of Titsias, FITC and power EP.

With V = A Kzx, f at row n is Vₙᵀw + eₙ, w ~ N(0, I), and dₙ = k(xₙ, xₙ) - |Vₙ|² the variance of eₙ.  Every objective
here is log N(y | 0, VᵀV + diag(r)) + Σ cₙ, where the row noise rₙ and the correction cₙ depend on dₙ and σ² alone; q(w)
is the posterior under that Gaussian.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import MeanVariance, Natural, Normal, Sites, residual, site_product, unit_factor
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky, log_determinant, product
from gpbench.methods.base import Batch
from gpbench.methods.parts.gradient import EvidenceMethod, GradientState
from gpbench.methods.parts.settings import NoiseMethod
from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod
from gpbench.schema import setting


class CollapsedParameters(eqx.Module):
    """Arguments of the objective."""

    layer: SparseLayer
    likelihood: Gaussian


class Optimum(eqx.Module):
    """q at its optimum, and the whitening A = L⁻¹ of Kzz = L Lᵀ."""

    A: Float[Array, "M M"]
    q: Normal


class CollapsedMethod(EvidenceMethod, SparseMethod, NoiseMethod):
    """A method with an objective of this form, by its `row_terms`, which are those of Titsias unless a class has its
    own: L-BFGS moves hyper-parameters and points."""

    sample_weights: ClassVar[bool] = True

    rows: int | None = setting(
        None,
        "count or null",
        "Number of training rows, in their random order; null: all.  The paper svdgp takes 4,096.",
    )

    def row_terms(self, rest: Float[Array, " N"], noise: Float[Array, ""]) -> MeanVariance:
        """The row noise r and the correction c, in nats, from d (`rest`) and σ² (`noise`): by default r = σ² and
        c = -d/(2σ²), the bound of Titsias (2009)."""
        return noise * jnp.ones_like(rest), -0.5 * rest / noise

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> CollapsedParameters:
        layer = self.initial_layer(data.first(self.rows), additive_noise=False, key=key)
        return CollapsedParameters(layer, self.initial_noise(data.X))

    def init_extra(self, parameters: CollapsedParameters, data: Batch) -> Optimum:
        A = inverse_cholesky(parameters.layer.gram())
        return Optimum(A, unit_factor(len(A), A.dtype).posterior())

    def evidence(self, parameters: CollapsedParameters, data: Batch) -> tuple[Float[Array, ""], Optimum]:
        data = data.first(self.rows)
        cov = parameters.layer.covariances(data.X)
        A = inverse_cholesky(cov.zz)
        V = product(A, cov.zx)
        rest = residual(cov, V)
        noise, correction = self.row_terms(rest, parameters.likelihood.noise)
        # yₙ is a Gaussian site on Vₙᵀw: precision 1/rₙ, precision times mean yₙ/rₙ
        factor = site_product(V, Sites(data.weight / noise, data.weight * data.y / noise))
        q = factor.posterior()
        terms = -0.5 * (data.y**2 / noise + jnp.log(2.0 * jnp.pi) + jnp.log(noise)) + correction
        value = jnp.sum(data.weight * terms) + 0.5 * (q.mean @ factor.shift - log_determinant(q.root))
        return value + parameters.layer.log_prior(), self.by_products(Optimum(A, q), factor, rest, data)

    def by_products(self, optimum: Optimum, factor: Natural, rest: Float[Array, " N"], data: Batch) -> Optimum:
        """By-products that the state keeps: by default q; `factor` is the targets' factor of it, and `rest` dₙ."""
        return optimum

    def marginals(self, state: GradientState[CollapsedParameters], X: Float[Array, "N D"]) -> MeanVariance:
        optimum: Optimum = state.optimiser.extra
        return state.parameters.layer.marginals(optimum.A, optimum.q, X)

    def covariance(self, state: GradientState[CollapsedParameters], X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        optimum: Optimum = state.optimiser.extra
        return state.parameters.layer.covariance(optimum.A, optimum.q, X)

    def kl(self, state: GradientState[CollapsedParameters]) -> Float[Array, ""]:
        return state.optimiser.extra.q.kl()
