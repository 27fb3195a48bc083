"""Configurations and compiled programs of methods, which estimators share, as searches fit often; and the trained
states of pickled ones: NumPy arrays, and apart from them the classes, whose import starts JAX."""

import json
import pickle
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpbench import runtime, targets
from gpbench.config.values import Config
from gpbench.errors import ConfigError, require
from gpbench.version import __version__


def folders_of(config_dir: str | Path | None) -> tuple[Path, ...]:
    """The folder, absolute, and on Python's path, so that the modules of its methods are found; () without one."""
    return tuple(targets.add_folders([] if config_dir is None else [config_dir]))


@lru_cache(maxsize=64)
def configuration(*overrides: str, folders: tuple[Path, ...] = ()) -> Config:
    """The configuration of a command line, composed once: it takes a tenth of a second, and searches fit often."""
    from gpbench.config.compose import compose

    return compose(overrides, folders)


def programs_of(config: Mapping[str, Any]) -> Any:
    """The compiled programs of a method, shared by estimators with the same configuration.  Raises ConfigError."""
    runtime.refuse_fork()
    return _build(json.dumps(config["method"], sort_keys=True))


@lru_cache(maxsize=16)
def _build(method: str) -> Any:
    """The programs of a method, of its configuration in JSON.  Raises ConfigError."""
    runtime.require_float64()
    from gpbench.config.build import build_method, check_class
    from gpbench.train.programs import Programs

    check_class(node := json.loads(method))
    return Programs(build_method(node))


def tasks_of(method: str, config_dir: str | Path | None = None) -> frozenset[str]:
    """The tasks of a method; none for an unknown one, for which `fit` raises an error."""
    try:
        runtime.require_float64()
        from gpbench.methods.base import Method

        cfg = configuration(f"method={method}", folders=folders_of(config_dir))
        return targets.load(cfg["method"]["_target_"], "method", Method).tasks
    except ConfigError:
        return frozenset()


class SavedState(NamedTuple):
    """The arrays of a state, a pickle of the state with numbers in their places, and the version that wrote both."""

    version: str
    arrays: dict[str, np.ndarray]
    structure: bytes


def to_pickle(state: Any) -> SavedState:
    """A state as a pickle keeps it."""
    import jax

    from gpbench.train.checkpoint import arrays_of

    arrays = arrays_of(state)
    numbered = jax.tree.unflatten(jax.tree.structure(state), range(len(arrays)))
    return SavedState(__version__, arrays, pickle.dumps(numbered))


def from_pickle(state: Any) -> Any:
    """The state that was saved.  Raises ConfigError for one of another version, and what `require_float64` raises."""
    version = getattr(state, "version", "an earlier version")
    fault = f"it was saved by gpbench {version}, and this is {__version__}: fit it again"
    require(version == __version__, fault, ConfigError)
    runtime.require_float64()
    import jax

    from gpbench.train.checkpoint import leaves_of

    try:
        numbered = pickle.loads(state.structure)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"its method is not here, or is another one now ({error}): fit it again") from None
    return jax.tree.unflatten(jax.tree.structure(numbered), leaves_of(state.arrays))
