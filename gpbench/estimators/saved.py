"""The trained state of a pickled estimator: NumPy arrays, and apart from them the classes, whose import starts JAX.
Pickles have the name of this module, which must stay."""

import pickle
from typing import Any, NamedTuple

import numpy as np

from gpbench import runtime
from gpbench.errors import ConfigError, require
from gpbench.version import __version__


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
