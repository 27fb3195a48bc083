"""`linear`: Bayesian linear regression with a weak prior, in closed form.  The baseline of the regression tables."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.linalg import inverse_cholesky, with_intercept
from gpbench.core.predictive import GaussianPredictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.settings import AllRowsMethod
from gpbench.schema import setting


class LinearState(eqx.Module):
    """Weights (intercept last), the inverse Cholesky factor of their precision over the noise, the noise variance."""

    weights: Float[Array, " E"]
    A: Float[Array, "E E"]
    noise: Float[Array, ""]


class Linear(AllRowsMethod):
    """y = w·[x, 1] + noise; w has precision `ridge` over the noise variance, which is the residuals' unbiased one."""

    tasks = frozenset({"regression"})
    sample_weights: ClassVar[bool] = True

    ridge: float = setting(1e-6, "nonnegative", "Prior precision of the weights over the noise variance.")

    def init(self, data: Batch, *, key: PRNGKeyArray) -> LinearState:
        e = data.X.shape[1] + 1
        return LinearState(jnp.zeros(e, data.X.dtype), jnp.eye(e, dtype=data.X.dtype), jnp.ones((), data.X.dtype))

    def step(self, state: LinearState, batch: Batch, *, key: PRNGKeyArray) -> tuple[LinearState, Info]:
        root = jnp.sqrt(batch.weight)
        X, y = root[:, None] * with_intercept(batch.X), root * batch.y
        e = X.shape[1]
        # w = (XᵀX + ridge)⁻¹ Xᵀy
        A = inverse_cholesky(X.T @ X + self.ridge * jnp.eye(e, dtype=X.dtype))
        weights = A.T @ (A @ (X.T @ y))
        noise = jnp.sum((y - X @ weights) ** 2) / jnp.maximum(batch.weight.sum() - e, 1.0)
        new = LinearState(weights, A, noise)
        return new, Info(self.objective(new, batch))

    def objective(self, state: LinearState, data: Batch) -> Float[Array, ""]:
        """The log predictive density of the training data."""
        return data.weight @ self._predict(state, data.X).log_prob(data.y)

    def predict(self, state: LinearState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> GaussianPredictive:
        return self._predict(state, X)

    def covariance(self, state: LinearState, X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        V = state.A @ with_intercept(X).T
        return state.noise * (V.T @ V)

    def _predict(self, state: LinearState, X: Float[Array, "N D"]) -> GaussianPredictive:
        X = with_intercept(X)
        # noise (1 + xᵀ (XᵀX + ridge)⁻¹ x)
        return GaussianPredictive(X @ state.weights, state.noise * (1.0 + jnp.sum((X @ state.A.T) ** 2, axis=1)))
