"""`constant`: class frequencies, or the mean and variance of the training targets, which any method must beat.

Counts are negative binomial with this mean and variance, or Poisson where the variance is not above the mean.
"""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.predictive import CategoricalPredictive, CountPredictive, GaussianPredictive, Predictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.settings import AllRowsMethod

_LEAST = 1e-6  # excess of the variance over that of Poisson counts, relative to it


class _ConstantState(eqx.Module):
    """Numbers of rows of the classes; of 0 classes (regression) [mean, variance], of 1 (counts) [rate, shape]."""

    summary: Float[Array, " C"]
    classes: int = eqx.field(static=True)


class Constant(AllRowsMethod):
    """One prediction for every input.  One count is added to each class (Laplace's rule)."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression", "count", "binary", "multiclass"})
    sample_weights: ClassVar[bool] = True
    exposures: ClassVar[bool] = True

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _ConstantState:
        return _ConstantState(jnp.zeros(max(2, data.classes), data.X.dtype), data.classes)

    def step(self, state: _ConstantState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_ConstantState, Info]:
        y, weight = batch.y, batch.weight
        if state.classes == 1:
            exposure = jnp.exp(batch.shifted(jnp.zeros_like(y)))
            rate = weight @ y / (weight @ exposure)
            expected = rate * exposure
            excess = weight @ ((y - expected) ** 2 - expected) / (weight @ expected**2)
            summary = jnp.stack([rate, 1.0 / jnp.maximum(excess, _LEAST * weight.sum() / (weight @ y))])
        elif state.classes == 0:
            mean = weight @ y / weight.sum()
            summary = jnp.stack([mean, weight @ (y - mean) ** 2 / weight.sum()])
        else:
            codes = _class_codes(y, state.classes)
            summary = 1.0 + weight @ (codes[:, None] == jnp.arange(state.classes)).astype(y.dtype)
        new = _ConstantState(summary, state.classes)
        return new, Info(self.objective(new, batch))

    def objective(self, state: _ConstantState, data: Batch) -> Float[Array, ""]:
        """The log likelihood of the training data."""
        value = self._predict(state, data.X)
        if isinstance(value, CountPredictive):
            value = replace(value, location=data.shifted(value.location))
        return data.weight @ value.log_prob(data.y)

    def predict(self, state: _ConstantState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        return self._predict(state, X)

    def _predict(self, state: _ConstantState, X: Float[Array, "N D"]) -> Predictive:
        n = X.shape[0]
        if state.classes == 0:
            mean, variance = state.summary
            return GaussianPredictive(jnp.full(n, mean), jnp.full(n, variance))
        if state.classes == 1:
            rate, shape = state.summary
            return CountPredictive(jnp.full(n, jnp.log(rate)), jnp.zeros(n, X.dtype), shape)
        log_probs = jnp.log(state.summary / state.summary.sum())
        return CategoricalPredictive(jnp.broadcast_to(log_probs, (n, state.classes)))


def _class_codes(y: Float[Array, " N"], classes: int) -> Float[Array, " N"]:
    """Codes 0 .. C-1; two classes come as -1 and +1."""
    return (y > 0).astype(y.dtype) if classes == 2 else y
