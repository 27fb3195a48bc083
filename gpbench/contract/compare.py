"""Comparison of states and predictions, and the errors of a check where they should agree and do not."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Broken(Exception):
    """The claim does not hold; the text says what was seen and how to mend it."""


class Doubtful(Exception):
    """The claim may not hold: worth a look, but the loop does not count on it."""


def leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a pytree with their places, `.hyper.Z`; random keys as the numbers behind them."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        yield jax.tree_util.keystr(path), jax.random.key_data(leaf) if is_key else leaf


def kind(value: Any) -> str:
    """`float64[3,2]` of an array, the name of its class of anything else."""
    if not isinstance(value, jax.Array | np.ndarray):
        return type(value).__name__
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def largest_difference(old: Any, new: Any) -> tuple[float, str]:
    """The largest difference of two pytrees, relative to its leaf's largest entry or 1, and where it is.  NaN agrees
    with NaN; infinite where structure, shapes or what is not finite differ.
    """
    if jax.tree.structure(old) != jax.tree.structure(new):
        return np.inf, "in structure or static fields"
    worst, position = 0.0, ""
    for (location, a), (_, b) in zip(leaves(old), leaves(new)):
        if np.shape(a) != np.shape(b):
            return np.inf, f"in shape, {kind(a)} and {kind(b)}" + f" in {location}" * bool(location)
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        finite = np.isfinite(a)
        gap = np.inf
        if np.array_equal(a[~finite], b[~finite], equal_nan=True):
            scale = max(1.0, np.abs(a[finite]).max(initial=0.0))
            gap = float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale
        if not gap <= worst:
            worst, position = gap, f"by {gap:.2g}" + f" in {location}" * bool(location)
    return worst, position


def difference(old: Any, new: Any, tolerance: float) -> str:
    """Describe where two pytrees differ by more than `tolerance`; "" where they agree."""
    gap, position = largest_difference(old, new)
    return position if not gap <= tolerance else ""


def require(good: Any, fault: str, error: type[Exception] = Broken) -> None:
    """Raises an error, with what was seen and how to mend it, unless a claim is good."""
    if not good:
        raise error(fault)


def require_same(old: Any, new: Any, tolerance: float, fault: str) -> None:
    """Raises Broken where two pytrees differ by more than `tolerance`; {} in the fault stands for the position."""
    position = difference(old, new, tolerance)
    require(not position, fault.format(position))


def require_arrays(state: Any, precision: str | None = None) -> None:
    """Raises Broken unless all leaves are arrays without NaN, and of `precision`, if given, where floating point."""
    for location, leaf in leaves(state):
        is_array = isinstance(leaf, jax.Array | np.ndarray)
        require(is_array, f"state{location} is of type {kind(leaf)}: make it an array, or a static field")
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            fault = f"state{location} is {kind(leaf)} where the data are {precision}: use the dtype of the data"
            require(precision in (None, leaf.dtype), fault)
            missing = int(np.isnan(np.asarray(leaf)).sum())
            require(not missing, f"state{location} has NaN in {missing} of {leaf.size} places")
