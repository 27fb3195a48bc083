"""Sparse GP regression with q in closed form: one objective for the bounds of Titsias, FITC and power EP.

With V = A Kzx, f at row n is Vₙᵀw + eₙ, w ~ N(0, I), and dₙ = k(xₙ, xₙ) - |Vₙ|² the variance of eₙ.  Every objective
here is log N(y | 0, VᵀV + diag(r)) + Σ cₙ, where the row noise rₙ and the correction cₙ depend on dₙ and σ² alone; q(w)
is the posterior under that Gaussian.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Normal, Sites, residual, site_product, unit_factor
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.predictive import Predictive
from gpbench.methods.base import Batch
from gpbench.methods.parts.gradient import FullBatchMethod, GradientState
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


class CollapsedMethod(FullBatchMethod, SparseMethod, NoiseMethod):
    """A method with an objective of this form: a subclass has `row_terms`.

    L-BFGS moves hyper-parameters and inducing points.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    rows: int | None = setting(
        None,
        "count or null",
        "Number of training rows, in their random order; null: all.  The paper svdgp takes 4,096.",
    )

    @abc.abstractmethod
    def row_terms(
        self, rest: Float[Array, " N"], noise: Float[Array, ""]
    ) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """The row noise r and the correction c, in nats, from d (`rest`) and σ² (`noise`)."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> CollapsedParameters:
        layer = self.initial_layer(data.first(self.rows), additive_noise=False, key=key)
        return CollapsedParameters(layer, self.initial_noise(data.X))

    def init_extra(self, parameters: CollapsedParameters, data: Batch) -> Optimum:
        A = inverse_cholesky(parameters.layer.gram())
        return Optimum(A, unit_factor(len(A), A.dtype).posterior())

    def loss(
        self, parameters: CollapsedParameters, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Optimum]:
        value, optimum = self.bound(parameters, batch)
        return -value, optimum

    def bound(self, parameters: CollapsedParameters, data: Batch) -> tuple[Float[Array, ""], Optimum]:
        """The objective on the rows it is trained on, in nats, and q at its optimum.

        With a prior on the lengthscales its log density is added.
        """
        data = data.first(self.rows)
        cov = parameters.layer.covariances(data.X)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        noise, correction = self.row_terms(residual(cov, V), parameters.likelihood.noise)
        # yₙ is a Gaussian site on Vₙᵀw: precision 1/rₙ, precision times mean yₙ/rₙ
        factor = site_product(V, Sites(data.weight / noise, data.weight * data.y / noise))
        q = factor.posterior()
        terms = -0.5 * (data.y**2 / noise + jnp.log(2.0 * jnp.pi) + jnp.log(noise)) + correction
        value = jnp.sum(data.weight * terms) + 0.5 * (q.mean @ factor.shift - log_determinant(q.root))
        return value + parameters.layer.log_prior(), Optimum(A, q)

    def _marginals(
        self, state: GradientState[CollapsedParameters], X: Float[Array, "N D"]
    ) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """q's mean and variance of f at X."""
        optimum: Optimum = state.optimiser.extra
        cov = state.parameters.layer.covariances(X)
        V = optimum.A @ cov.zx
        mean, variance = optimum.q.project(V)
        return mean, residual(cov, V) + variance

    def objective(self, state: GradientState[CollapsedParameters], data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)[0]

    def predict(
        self, state: GradientState[CollapsedParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray
    ) -> Predictive:
        return state.parameters.likelihood.predictive(*self._marginals(state, X))

    def kl(self, state: GradientState[CollapsedParameters]) -> Float[Array, ""]:
        optimum: Optimum = state.optimiser.extra
        return optimum.q.kl()

    def expected_log_prob(
        self, state: GradientState[CollapsedParameters], X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        return state.parameters.likelihood.expected_log_prob(*self._marginals(state, X), y)

    def arrays(self, state: GradientState[CollapsedParameters]) -> dict[str, Array]:
        return {"inducing": state.parameters.layer.features.Z}

    def diagnose(self, state: GradientState[CollapsedParameters]) -> str:
        return state.parameters.layer.diagnose()
