"""Choosing the initial step size: a few steps with each from the same start, and that of the largest objective."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.methods.base import Batch, Method, State
from gpbench.train import batches


def best_rate(method: Method, state: State, data: Batch, *, key: PRNGKeyArray) -> float:
    """The one of `method.rates` with the largest objective after `trial_steps` steps (paper `svdgp`, section 4).

    The objective, a minibatch's, is averaged over the last fifth of the steps.  A rate that diverges is chosen only
    where all do.
    """
    objectives = [float(_trial(method, method.with_rate(state, rate), data, key)) for rate in method.rates]
    finite = [value if value == value else float("-inf") for value in objectives]
    return method.rates[max(range(len(finite)), key=finite.__getitem__)]


@eqx.filter_jit
def _trial(method: Method, state: State, data: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
    def one_step(state, t):
        batch = batches.at_step(data, method.batch_size, t, key=jax.random.fold_in(key, 0))
        state, info = method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, 1), t))
        return state, info.objective

    _, objectives = jax.lax.scan(one_step, state, jnp.arange(method.trial_steps))
    return jnp.mean(objectives[-max(1, method.trial_steps // 5) :])
