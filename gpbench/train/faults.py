"""Faults of the user's own methods, kernels and likelihoods, in one line each."""

import contextlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench import runtime, targets
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError, GpbenchError
from gpbench.methods.base import Method
from gpbench.methods.protocols import State


@contextlib.contextmanager
def one_line_if_users_code(cfg: Mapping[str, Any]) -> Iterator[None]:
    """Raises ConfigError for an exception while a method trains that is, or has a part that is, the user's own.

    A method of gpbench alone that raises is a bug, and keeps its traceback.  Errors of memory, files and devices pass.

    Args:
        cfg: the configuration of the run.
    """
    try:
        yield
    except (GpbenchError, MemoryError, OSError):
        raise
    except Exception as error:
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


def predictive(method: Method, state: State, X: Float[Array, "T D"], *, key: PRNGKeyArray) -> Predictive:
    """Predicts rows by a method, and checks what it returns; traced, so once for each program.

    Raises:
        ConfigError: It is no `Predictive`, or one of another number of rows.
    """
    value = method.predict(state, X, key=key)
    if not isinstance(value, Predictive):
        kind = "an array" if isinstance(value, jax.Array) else f"{type(value).__name__}"
        raise ConfigError(
            f"method {method.name}: predict returns {kind}: return a gpbench.core.predictive.Predictive, such as"
            " GaussianPredictive(mean, variance)"
        )
    shapes = {name: array.shape for name, array in jax.eval_shape(value.summary).items()}
    if wrong := [f"{name} of shape {shape}" for name, shape in shapes.items() if shape and shape[0] != len(X)]:
        raise ConfigError(f"method {method.name}: predict returns {wrong[0]} for {len(X)} rows: return one for each")
    return value


def _position(error: Exception, paths: list[str]) -> str:
    """The last line of the user's modules on the way to an exception, or the file of the first of them."""
    modules = {path.partition(".")[0] for path in paths}
    lines = [
        f"{frame.f_code.co_filename}, line {number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in modules
    ]
    return lines[-1] if lines else str(getattr(sys.modules.get(paths[0].rpartition(".")[0]), "__file__", paths[0]))
