"""`vsgpr`: sparse variational GP regression with q at its optimum in closed form (Titsias, AISTATS 2009).

With V = A Kzx and P = I + V Vᵀ/σ² the collapsed bound is log N(y | 0, VᵀV + σ²I) - Σ residual/(2σ²).
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.covariances import residual
from gpbench.core.gaussians import Normal, site_product, unit_factor
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.predictive import Predictive
from gpbench.core.sites import Sites
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch
from gpbench.methods.gradient import GradientMethod, GradientState
from gpbench.methods.sparse_layer import SparseLayer, SparseMethod


class Parameters(eqx.Module):
    """What the collapsed bound is a function of."""

    layer: SparseLayer
    likelihood: Gaussian


class Optimum(eqx.Module):
    """q at its optimum, and the whitening A = L⁻¹ of Kzz = L Lᵀ."""

    A: Float[Array, "M M"]
    q: Normal


class VSGPR(SparseMethod, GradientMethod):
    """Configuration of `vsgpr`; see the module's docstring.  L-BFGS moves hyper-parameters and inducing points."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    rows: int | None = eqx.field(static=True, kw_only=True, default=None)
    """How many training rows it is trained on, in their random order; None is all.  The paper `svdgp` takes 4,096."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """Initial noise variance of the scaled targets."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        if self.optimiser is not None:
            raise ConfigError(f"{self.name}'s bound is no sum over rows: leave method.optimiser=null, or use svi")
        layer = self.initial_layer(data.first(self.rows), additive_noise=False, key=key)
        return Parameters(layer, Gaussian.initial(self.target_noise, 0, data.X.dtype))

    def init_extra(self, parameters: Parameters, data: Batch) -> Optimum:
        A = inverse_cholesky(parameters.layer.gram())
        return Optimum(A, unit_factor(len(A), A.dtype).posterior())

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], Optimum]:
        value, optimum = self.bound(parameters, batch)
        return -value, optimum

    def bound(self, parameters: Parameters, data: Batch) -> tuple[Float[Array, ""], Optimum]:
        """The collapsed bound on the log evidence of the rows it is trained on, in nats, and q at its optimum."""
        data = data.first(self.rows)
        noise = parameters.likelihood.noise
        cov = parameters.layer.covariances(data.X)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        # y is a Gaussian site on every f: precision 1/σ², precision times mean y/σ²
        factor = site_product(V, Sites(data.weight / noise, data.weight * data.y / noise))
        q = factor.posterior()
        fit = jnp.sum(data.weight * (data.y**2 + residual(cov, V))) / noise - q.mean @ factor.shift
        determinant = data.total * (jnp.log(2.0 * jnp.pi) + parameters.likelihood.log_noise) + log_determinant(q.root)
        return -0.5 * (fit + determinant), Optimum(A, q)

    def _marginals(self, state: GradientState, X: Float[Array, "N D"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """q's mean and variance of f at X."""
        optimum, cov = state.optimiser.extra, state.parameters.layer.covariances(X)
        V = optimum.A @ cov.zx
        mean, variance = optimum.q.project(V)
        return mean, residual(cov, V) + variance

    def objective(self, state: GradientState, data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)[0]

    def predict(self, state: GradientState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        return state.parameters.likelihood.predictive(*self._marginals(state, X))

    def kl(self, state: GradientState) -> Float[Array, ""]:
        return state.optimiser.extra.q.kl()

    def expected_log_prob(
        self, state: GradientState, X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        return state.parameters.likelihood.expected_log_prob(*self._marginals(state, X), y)

    def arrays(self, state: GradientState) -> dict[str, Array]:
        return {"inducing": state.parameters.layer.features.Z}

    def diagnose(self, state: GradientState) -> str:
        return state.parameters.layer.diagnose()
