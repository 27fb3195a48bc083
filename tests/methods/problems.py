"""Small problems for the methods' tests."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from gpbench.methods.ep.sep import SEP
from gpbench.train import batches

FROZEN = optax.sgd(0.0)
"""Moves nothing: the hyper-parameters stay where they start."""


def classification(n=30, d=2, seed=0):
    """Labels from a noisy smooth function of standard normal inputs, as one batch."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 0.7 + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return batches.whole(jnp.asarray(X), jnp.asarray(y), 2)


def sep(**fields):
    return SEP(**{"name": "sep", "optimiser": FROZEN, "inducing": 8, "start": "rows", **fields})


def trained(method, data, steps, state=None, key=0):
    """The state after `steps` full-batch steps, and the objectives on the way."""
    state = method.init(data, key=jax.random.key(key)) if state is None else state

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda s, _: method.step(s, data, key=jax.random.key(0)), state, None, steps)

    state, info = run(state)
    return state, info.objective
