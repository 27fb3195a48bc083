"""Faults of the user's own methods, kernels and likelihoods, in one line each."""

import contextlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench import runtime, targets
from gpbench.core.predictive import CountPredictive, Predictive
from gpbench.core.predictive.numerical import tails
from gpbench.errors import ConfigError, ContractError, GpbenchError, MemoryShortage, require
from gpbench.methods.base import Method
from gpbench.methods.protocols import HasBound, State
from gpbench.train.batches import parted
from gpbench.train.group import Changes


@contextlib.contextmanager
def one_line_if_users_code(cfg: Mapping[str, Any], group: Any = None) -> Iterator[None]:
    """Raises ConfigError for an exception of a method that is the user's own or has such a part, and MemoryShortage
    where a device lacks the memory for this group.  An exception of gpbench's own methods keeps its traceback."""
    try:
        yield
    except (GpbenchError, MemoryError, OSError):
        raise
    except Exception as error:
        if group and isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error):
            fewer = "" if group.size == 1 else f"run.together={group.size // 2}, "
            mend = f"try {fewer}fewer inducing points or features, or a smaller batch"
            raise MemoryShortage(f"out of memory on {group.size} x {group.X.shape[1]} rows: {mend}") from error
        custom = [path for _, path in targets.entries(cfg["method"]) if not targets.is_ours(path)]
        if not custom or runtime.is_of_jax(error):
            raise
        name, folders = cfg["method"]["name"], "".join(f" --config-dir {folder}" for folder in cfg["config_dirs"])
        parts = " and ".join(path for path in custom if path != cfg["method"]["_target_"])
        same = ", with the same settings," if parts else ""
        raise ConfigError(
            f"method {name}{parts and f' with {parts}'} ({_position(error, custom)}):"
            f" {runtime.described(error)}; `gpbench check {name}{folders}`{same} tests it,"
            " and GPBENCH_TRACEBACK=1 shows the whole traceback"
        ) from error


_Rows = Float[Array, "T D"]
_Row = Float[Array, " T"]
_NONE = Changes()


def predictive(method: Method, state: State, X: _Rows, *, key: PRNGKeyArray, changes: Changes = _NONE) -> Predictive:
    """The prediction of rows by a method, of targets as they were, checked; traced, so once for each program."""
    X, shift = parted(X, changes.exposure)
    value = method.predict(state, X, key=key)
    kind = "an array" if isinstance(value, jax.Array) else type(value).__name__
    mend = "return a gpbench.core.predictive.Predictive, such as GaussianPredictive(mean, variance)"
    require(isinstance(value, Predictive), f"method {method.name}: predict returns {kind}: {mend}", ConfigError)
    _check_arrays(method, jax.eval_shape(value.summary), X)
    if shift is not None:
        fault = f"method {method.name}: predict returns {kind}, and counts with an exposure need a CountPredictive"
        require(isinstance(value, CountPredictive), fault, ConfigError)
        value = eqx.tree_at(lambda counts: counts.location, value, replace_fn=lambda location: location + shift)
    value = changes.recalibration.predictive(value) if changes.recalibration else value
    return changes.warp.predictive(value) if changes.warp else value


def predictions(
    method: Method, classes: int, state: State, X: _Rows, y: _Row, *, key: PRNGKeyArray, changes: Changes = _NONE
) -> dict[str, Array]:
    """The arrays by which rows are scored, checked: those of the prediction, and of the bound where there is one."""
    value, warp = predictive(method, state, X, key=key, changes=changes), changes.warp
    arrays = value.arrays(y)
    if changes.threshold is not None:
        arrays |= tails(lambda z: value.pointwise(z)["cdf"], y, changes.threshold, arrays)
    if isinstance(method, HasBound):
        inputs, _ = parted(X, changes.exposure)
        expected, kl = method.expected_log_prob(state, inputs, warp.forward(y) if warp else y), method.kl(state)
        if expected is not None and kl is not None:
            arrays |= {"expected_log_prob": expected + warp.log_slope(y) if warp else expected, "kl": kl}
    needed, example = (_OF_CLASSES, "Categorical") if classes > 1 else (_OF_NUMBERS, "Gaussian")
    for name in sorted(needed - arrays.keys()):
        fault = f"predict returns {type(value).__name__}, which has no {name}"
        raise ConfigError(f"method {method.name}: {fault}: return one that has, such as {example}Predictive")
    _check_arrays(method, arrays, X, classes)
    return arrays


def log_probs(method: Method, classes: int, state: State, X: _Rows, y: _Row, **context: Any) -> dict[str, Array]:
    """The log probabilities of the targets alone, which are cheaper than all that `predictions` has."""
    return {"log_prob": predictive(method, state, X, **context).log_prob(y)}


_OF_CLASSES, _OF_NUMBERS = {"log_prob", "log_probs"}, {"log_prob", "mean", "var", "cdf", "crps", "low95", "high95"}


def _check_arrays(method: Method, arrays: Mapping[str, Any], X: Float[Array, "T D"], classes: int = 0) -> None:
    """Checks shapes and types of predictions of these rows; `classes` is 0 where their number is not known."""
    for name, array in arrays.items():
        shape = np.shape(array)
        right = {"kl": (), "log_probs": (len(X), classes or (shape[-1] if shape else 0))}.get(name, (len(X),))
        kind = "None" if array is None else f"of shape {shape}"
        fault = f"predict returns {name} {kind} for {len(X)} rows: its shape must be {right}"
        require(array is not None and shape == right, f"method {method.name}: {fault}", ConfigError)
        dtype = jnp.result_type(array)
        fault = f"predicts {name} in {dtype} from data in {X.dtype}: use the dtype of the data"
        require(dtype == X.dtype, f"method {method.name} {fault}", ContractError)


def _position(error: Exception, paths: list[str]) -> str:
    """The last line of the user's modules on the way to an exception, or the file of the first of them."""
    modules = {path.partition(".")[0] for path in paths}
    lines = [
        f"{frame.f_code.co_filename}, line {number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in modules
    ]
    return lines[-1] if lines else str(getattr(sys.modules.get(paths[0].rpartition(".")[0]), "__file__", paths[0]))
