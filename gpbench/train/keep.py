"""What `run.keep` keeps for pictures, as arrays beside the trace: a report never trains, and never predicts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from gpbench.data import Prepared
from gpbench.errors import ConfigError
from gpbench.methods.base import Method
from gpbench.train.steps import prediction_key

_PER_AXIS = {1: 400, 2: 120}
_MARGIN = 0.05
"""Of the range of the training rows, on either side."""


def arrays(
    method: Method, state: Any, prepared: Prepared, precision: str, *, key: Key[Array, ""]
) -> dict[str, np.ndarray]:
    """The training rows, a grid around them with the predictions there, and what the method keeps; all scaled.

    `kept_X` (n, D), `kept_y` (n,); `kept_grid` (G, D); `kept_log_probs` (G, C), or `kept_mean` and `kept_var` (G,);
    `kept_hidden` (G, H) of hidden units; `kept_inducing` (M, D) and the like.  `key` is that of the member's steps, so
    that sampled predictions are those that were scored.  Raises ConfigError for more than two inputs.
    """
    X = prepared.X
    if X.shape[1] not in _PER_AXIS:
        raise ConfigError(f"run.keep=true is for data with one or two inputs, and these have {X.shape[1]}; leave it")
    low, high = X.min(axis=0), X.max(axis=0)
    margin = _MARGIN * (high - low)
    axes = np.linspace(low - margin, high + margin, _PER_AXIS[X.shape[1]]).T
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    summary = jax.jit(lambda state, X: method.predict(state, X, key=prediction_key(key)).summary())
    points = jnp.asarray(grid, precision)
    of_method = summary(state, points) | jax.jit(method.latents)(state, points) | method.arrays(state)
    known = {"X": X, "y": prepared.y, "grid": grid}
    # float32 is finer than any picture
    return {f"kept_{name}": np.asarray(value, np.float32) for name, value in (known | of_method).items()}
