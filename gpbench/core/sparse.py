"""Updates of large arrays that touch the drawn blocks alone, at a cost that does not grow with the arrays."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Blocks = Any
"""A pytree of arrays with one leading axis: of all blocks, or of those that were drawn."""


def take(tree: Blocks, blocks: Int[Array, " b"]) -> Blocks:
    """The drawn blocks of every array."""
    return jax.tree.map(lambda leaf: leaf[blocks], tree)


def merge(tree: Blocks, blocks: Int[Array, " b"]) -> tuple[Blocks, Bool[Array, " b"]]:
    """For every draw the sum over all draws of the same block, and whether it is the first of its block."""
    order = jnp.argsort(blocks)
    ranked = blocks[order]
    new = jnp.concatenate([jnp.ones(1, bool), ranked[1:] != ranked[:-1]])
    group = jnp.zeros(len(blocks), int).at[order].set(jnp.cumsum(new) - 1)
    first = jnp.zeros(len(blocks), bool).at[order].set(new)
    total = lambda leaf: jax.ops.segment_sum(leaf, group, len(blocks))[group]
    return jax.tree.map(total, tree), first


def adagrad(
    values: Blocks, sums: Blocks, blocks: Int[Array, " b"], gradients: Blocks, rate: Float[Array, ""] | float
) -> tuple[Blocks, Blocks, Bool[Array, " b"]]:
    """A step of AdaGrad (Duchi, Hazan and Singer 2011) on the drawn blocks: minimises.

    Args:
        values, sums: the parameters and the sums of their squared gradients, of all blocks.
        gradients: of the drawn blocks, one for each draw; those of one block add up.

    Returns:
        values and sums after it, and whether each draw is the first of its block.
    """
    totals, first = merge(gradients, blocks)
    new_sums = jax.tree.map(lambda s, g: s[blocks] + g**2, sums, totals)
    steps = jax.tree.map(lambda g, s: -rate * g * jax.lax.rsqrt(jnp.where(s > 0, s, 1.0)), totals, new_sums)
    once = lambda leaf: jnp.where(first.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 0.0)
    values = jax.tree.map(lambda v, step: v.at[blocks].add(once(step)), values, steps)
    sums = jax.tree.map(lambda s, new: s.at[blocks].set(new), sums, new_sums)
    return values, sums, first
