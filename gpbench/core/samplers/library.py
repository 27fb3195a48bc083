"""The library blackjax, which is optional, and the precision in which it samples.

blackjax 1.7 samples in JAX's default precision alone, so positions are in that precision there and densities are not.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from gpbench.errors import ConfigError

Position = Any
"""A pytree of arrays of one dtype."""

LogDensity = Callable[[Position], Float[Array, ""]]
"""Log density of a position, up to a constant."""


def blackjax(method: str) -> ModuleType:
    """Imports the library blackjax, which is optional.

    Args:
        method: Name of the method that needs it, for the message.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import blackjax
    except ImportError as error:
        install = "pip install -c constraints.txt -e '.[samplers]' in the checkout"
        raise ConfigError(f"method={method} needs blackjax: {install}") from error
    return blackjax


def dtype_of(position: Position) -> Any:
    """Precision of a position."""
    return jax.tree.leaves(position)[0].dtype


def cast(tree: Any, dtype: DTypeLike) -> Any:
    """The pytree with all of its leaves in a precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def in_precision(log_density: LogDensity, dtype: DTypeLike) -> LogDensity:
    """The log density of a position in JAX's default precision, evaluated in that of the data."""
    return lambda position: cast(log_density(cast(position, dtype)), float)
