"""Functions of pytrees whose types are those of their arguments."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax

T = TypeVar("T")


def tree_at(node: Callable[[T], Any], tree: T, value: Any, is_leaf: Callable[[Any], bool] | None = None) -> T:
    """Replace leaves or subtrees, as `equinox.tree_at`.

    Args:
        node: Function that selects a node of the tree, or a tuple of nodes.
        tree: Any pytree.
        value: New value of the node, or a tuple of them.
        is_leaf: Test for nodes to take as leaves, such as None.

    Returns:
        A tree of the same type.
    """
    new: T = eqx.tree_at(node, tree, value, is_leaf=is_leaf)
    return new


def tree_map(function: Callable[..., Any], tree: T, *rest: Any) -> T:
    """Map a function over the leaves of trees of the same structure, as `jax.tree.map`."""
    new: T = jax.tree.map(function, tree, *rest)
    return new
