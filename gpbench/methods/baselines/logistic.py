"""`logistic`: (multinomial) logistic regression, the linear baseline of the classification tables."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.linalg import with_intercept
from gpbench.core.predictive import CategoricalPredictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.settings import AllRowsMethod
from gpbench.schema import setting


class _LogisticState(eqx.Module):
    """Weights (intercept last) for every class, and L-BFGS's memory."""

    weights: Float[Array, "E C"]
    optimiser: optax.OptState


class Logistic(AllRowsMethod):
    """softmax(W [x, 1]) with a Gaussian prior of variance 1/`ridge` on the weights (not the intercepts), by L-BFGS."""

    tasks = frozenset({"binary", "multiclass"})
    sample_weights: ClassVar[bool] = True

    ridge: float = setting(1.0, "nonnegative", "Prior precision of the weights; intercepts have none.")

    @jax.named_scope("needs_float64")  # optax's L-BFGS and line search, whatever the precision of the weights
    def init(self, data: Batch, *, key: PRNGKeyArray) -> _LogisticState:
        return self._at_zero(data)

    @eqx.filter_jit
    def _at_zero(self, data: Batch) -> _LogisticState:
        weights = jnp.zeros((data.X.shape[1] + 1, data.classes), data.X.dtype)
        return _LogisticState(weights, optax.lbfgs().init(weights))

    @jax.named_scope("needs_float64")
    def step(self, state: _LogisticState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_LogisticState, Info]:
        loss = lambda weights: -self._log_posterior(weights, batch)
        value, gradient = optax.value_and_grad_from_state(loss)(state.weights, state=state.optimiser)
        updates, optimiser = optax.lbfgs().update(
            gradient, state.optimiser, state.weights, value=value, grad=gradient, value_fn=loss
        )
        # At the optimum the line search finds nothing better and may answer NaN: stay there.
        moved = optax.apply_updates(state.weights, updates)
        sound = jnp.all(jnp.isfinite(moved))
        new = _LogisticState(moved, optimiser)
        return jax.tree.map(lambda a, b: jnp.where(sound, a, b), new, state), Info(-value)

    def _log_posterior(self, weights: Any, data: Batch) -> Float[Array, ""]:
        log_probs = CategoricalPredictive(with_intercept(data.X) @ weights).log_prob(data.y)
        return data.sum(log_probs) - 0.5 * self.ridge * jnp.sum(weights[:-1] ** 2)

    def objective(self, state: _LogisticState, data: Batch) -> Float[Array, ""]:
        """The log posterior density of the weights, up to a constant."""
        return self._log_posterior(state.weights, data)

    def predict(self, state: _LogisticState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> CategoricalPredictive:
        return CategoricalPredictive(with_intercept(X) @ state.weights)
