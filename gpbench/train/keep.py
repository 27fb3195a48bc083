"""Arrays that `run.keep` keeps for pictures, beside the trace: a report never trains, and never predicts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from gpbench.core.kernels import Kernel, Stationary
from gpbench.data.scaled import ScaledSplit
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Method
from gpbench.methods.protocols import HasArrays, HasEffects, HasLatents, learned
from gpbench.train.batches import prediction_key
from gpbench.train.group import Group

_PER_AXIS = {1: 1200, 2: 120}  # points of the grid, by the number of inputs
_MARGIN = {1: 1.0, 2: 0.05}  # of the range of the rows on either side: with one input, a picture may extrapolate


def check(method: Method, group: Group) -> None:
    """Raises ConfigError where there would be nothing to draw: more than two inputs, neither effects nor a kernel."""
    inputs, changes = group.X.shape[-1], group.changes
    fault = "run.keep draws predictions without a transform or a recalibration"
    mend = "leave out protocol.targets and protocol.recalibrate"
    require(not (changes.warp or changes.recalibration), f"{fault}: {mend}", ConfigError)
    fault = "run.keep draws no counts with an exposure: leave it out, or take the exposure out of the card"
    require(not changes.exposure, fault, ConfigError)
    shows = inputs in _PER_AXIS or isinstance(method, HasEffects) or hasattr(method, "kernel")
    fault = f"run.keep=true is for data with one or two inputs, and these have {inputs}"
    mend = "leave it, or choose method=gam, or a method with a kernel, whose lengthscales are kept"
    require(shows, f"{fault}; {mend}", ConfigError)


def arrays(
    method: Method, state: Any, prepared: ScaledSplit, precision: str, *, key: Key[Array, ""]
) -> dict[str, np.ndarray]:
    """The training rows, a grid around them with the predictions there, and what the method keeps; all scaled.
    `kept_X` (n, D), `kept_y` (n,), and `kept_X_shift`, `kept_X_scale` (D,), `kept_y_mean`, `kept_y_std` () to undo
    their scaling; `kept_grid` (G, D); `kept_log_probs` (G, C), or `kept_mean` and `kept_var` (G,); `kept_hidden` (G, H)
    of hidden units; `kept_inducing` (M, D) and the like; `kept_lengthscales` (D,) where the kernel, of a deep GP that
    of its first layer, has one for each input.  With more than two inputs there is no grid, and there are training rows
    only beside effects.  `key` is that of the member's steps: sampled predictions are those that were scored."""
    X = prepared.X
    drawn: dict[str, Array] = dict(jax.jit(method.arrays)(state)) if isinstance(method, HasArrays) else {}
    drawn |= jax.jit(method.effects)(state) if isinstance(method, HasEffects) else {}
    kernel = next(iter(learned(state, Kernel)), None)  # type: ignore[type-abstract]
    if isinstance(kernel, Stationary) and kernel.log_lengthscale2.shape == (X.shape[1],) and X.shape[1] > 1:
        drawn["lengthscales"] = kernel.lengthscales
    has_rows = X.shape[1] in _PER_AXIS or isinstance(method, HasEffects)
    names = ("X", "y", "X_shift", "X_scale", "y_mean", "y_std") if has_rows else ()
    known: dict[str, Any] = {name: getattr(prepared, name) for name in names}
    if X.shape[1] in _PER_AXIS:
        known["grid"] = _grid(X)
        points = jnp.asarray(known["grid"], precision)
        drawn |= jax.jit(lambda state, X: method.predict(state, X, key=prediction_key(key)).summary())(state, points)
        if isinstance(method, HasLatents):
            drawn |= jax.jit(method.latents)(state, points)
    # float32 is finer than any picture
    return {f"kept_{name}": np.asarray(value, np.float32) for name, value in (known | drawn).items()}


def _grid(X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "G D"]:
    low, high = X.min(axis=0), X.max(axis=0)
    margin = _MARGIN[X.shape[1]] * (high - low)
    axes = np.linspace(low - margin, high + margin, _PER_AXIS[X.shape[1]]).T
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
