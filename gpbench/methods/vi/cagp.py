"""`cagp`: a Gaussian process conditioned on a few computed combinations of the targets (Wenger et al. 2024).

The posterior is p(f | Sᵀy), exactly, for a matrix S of i sparse columns, the actions (`core.actions`): with A =
Sᵀ(K + σ²I)S and c = A⁻¹Sᵀy its mean is k_*X S c and its variance k_** - k_*X S A⁻¹ Sᵀ k_X*.  The variance is never
below that of the exact GP; the difference is the uncertainty about what was not computed.  Kernel, noise and actions
together maximise the bound E_q log p(y|f) - KL[q || prior].
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.actions import SparseActions, sparse_actions
from gpbench.core.gaussians import MeanVariance
from gpbench.core.kernels import Kernel
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import describe_failure, inverse_cholesky, log_determinant, product
from gpbench.methods.base import Batch, inducing_count, inducing_setting, size_label
from gpbench.methods.parts.exact import ExactStart, Solution
from gpbench.methods.parts.gradient import EvidenceMethod, GradientState
from gpbench.schema import SIZE, setting


class CAGPParameters(eqx.Module):
    """Arguments of the bound."""

    kernel: Kernel
    likelihood: Gaussian
    weights: Float[Array, " N"]
    """Entries of S before its columns are scaled: one for each row."""


class _CAGPPosterior(eqx.Module):
    """State of predictions: the actions, and the factor of A with the whitened Sᵀy."""

    actions: SparseActions
    solution: Solution


class CAGP(EvidenceMethod, ExactStart):
    """Computation-aware Gaussian process regression with sparse actions (Wenger et al. 2024): `cagp`.  An evaluation
    takes O(N² + N i²) time and O(N i) memory for i actions."""

    label_fields: ClassVar[frozenset[str]] = frozenset({"actions"})

    actions: float | int | str = setting(
        0.15,
        SIZE,
        "Number of actions, at most the training rows; or a fraction of the rows, at most 1,000 actions.  1 is one "
        "action, 1.0 all rows; '15%, at least 200' is 200 of up to 1,333 rows.",
    )

    @property
    def label(self) -> str:
        return size_label(self, inducing_setting(self.actions, symbol="i"))

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> CAGPParameters:
        X = data.first(None).X
        inducing_count(self.actions, len(X), name="actions", noun="actions")
        model = self.configured_gp(X, data)
        return CAGPParameters(model.kernel, model.likelihood, jax.random.normal(key, (len(X),), X.dtype))

    def actions_at(self, parameters: CAGPParameters, data: Batch) -> SparseActions:
        """The actions with these weights."""
        count = inducing_count(self.actions, len(data.X), name="actions", noun="actions")
        return sparse_actions(data.X, parameters.weights, count)

    def init_extra(self, parameters: CAGPParameters, data: Batch) -> _CAGPPosterior:
        actions = self.actions_at(parameters, data.first(None))
        zero = jnp.zeros(len(actions.index), data.X.dtype)
        return _CAGPPosterior(actions, Solution(jnp.diag(zero), zero))

    def evidence(self, parameters: CAGPParameters, data: Batch) -> tuple[Float[Array, ""], _CAGPPosterior]:
        """The bound, and the posterior.  With e = y - K S c and the posterior covariance C of f at the rows it is log
        N(Sᵀy | 0, A) and the log density of the other N - i directions: -½ (N - i) log 2πσ² - (|e|² - |Sᵀe|² + tr C -
        tr SᵀCS) / (2σ²)."""
        data = data.first(None)
        kernel, noise = parameters.kernel, parameters.likelihood.noise
        actions = self.actions_at(parameters, data)
        cross = actions.cross(kernel, data.X)
        G, targets = actions.combine(cross), actions.combine(data.y)
        n, count = len(data.y), len(targets)
        R = inverse_cholesky(G + noise * jnp.eye(count, dtype=G.dtype))
        solution = Solution(R, R @ targets)
        W, RG = product(R, cross), R @ G
        rest = data.y - solution.whitened @ W
        # tr C = Σ k(xₙ, xₙ) - |W|², and SᵀCS = G - (RG)ᵀRG
        variance = jnp.sum(kernel.diag(data.X)) - jnp.sum(W**2) - jnp.trace(G) + jnp.sum(RG**2)
        other = jnp.sum(rest**2) - jnp.sum(actions.combine(rest) ** 2) + variance
        value = -0.5 * (jnp.sum(solution.whitened**2) + log_determinant(R) + count * jnp.log(2.0 * jnp.pi))
        value -= 0.5 * ((n - count) * jnp.log(2.0 * jnp.pi * noise) + other / noise)
        if self.lengthscale_prior is not None:
            value += self.lengthscale_prior.log_prob(kernel, data.X.shape[1])
        return value, _CAGPPosterior(actions, solution)

    def whitened(self, state: GradientState[CAGPParameters], X: Float[Array, "N D"]) -> Float[Array, "i N"]:
        """R Sᵀk(X_train, X), with R A Rᵀ = I."""
        posterior: _CAGPPosterior = state.optimiser.extra
        return product(posterior.solution.A, posterior.actions.cross(state.parameters.kernel, X))

    def marginals(self, state: GradientState[CAGPParameters], X: Float[Array, "N D"]) -> MeanVariance:
        W = self.whitened(state, X)
        variance = state.parameters.kernel.diag(X) - jnp.sum(W**2, axis=0)
        return state.optimiser.extra.solution.whitened @ W, jnp.maximum(variance, 0.0)

    def covariance(self, state: GradientState[CAGPParameters], X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        W = self.whitened(state, X)
        return state.parameters.kernel.cross(X, X) - W.T @ W

    def kl(self, state: GradientState[CAGPParameters]) -> Float[Array, ""]:
        solution: Solution = state.optimiser.extra.solution
        return solution.kl(state.parameters.likelihood.noise)

    def diagnose(self, state: GradientState[CAGPParameters]) -> str:
        actions, kernel = state.optimiser.extra.actions, state.parameters.kernel
        G = jax.lax.map(lambda action: actions.cross(kernel, action[0]) @ action[1], (actions.X, actions.entries))
        A = G + state.parameters.likelihood.noise * jnp.eye(len(G), dtype=G.dtype)
        name = f"the covariance of the combined targets under the {kernel.describe()}"
        return describe_failure(name, A)
