"""The interface of a basis whose functions are evaluated block by block, and updates of the drawn blocks alone."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core.kernels import Kernel
from gpbench.core.random import permute

Locations = Any
"""A pytree of arrays with an axis of blocks in front: frequencies and phases, or centres."""


class Basis(eqx.Module):
    """m basis functions in blocks of `block`; the last block may be longer than what is left.

    A function is `unit` times `values`: the part of a kernel's parameters that only scales it is apart.
    """

    size: eqx.AbstractVar[int]
    """m."""
    block: eqx.AbstractVar[int]

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.size // self.block)

    def index(self, blocks: Int[Array, " b"]) -> Int[Array, " c"]:
        """The numbers of the functions of these blocks; those from `size` on are none."""
        return (blocks[:, None] * self.block + jnp.arange(self.block)).ravel()

    def exists(self, blocks: Int[Array, " b"]) -> Bool[Array, " c"]:
        """Whether these numbers are functions."""
        return self.index(blocks) < self.size

    @abc.abstractmethod
    def unit(self, kernel: Kernel) -> Float[Array, ""]:
        """The common factor of all functions."""

    @abc.abstractmethod
    def locations(self, blocks: Int[Array, " b"], inputs: int, dtype) -> Locations:
        """What distinguishes the functions of these blocks, for data of so many inputs and this dtype."""

    @abc.abstractmethod
    def values(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """The functions there at the rows, without `unit`; 0 for what fills the last block up."""

    @abc.abstractmethod
    def initial_squares(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "B block"]:
        """The mean over the rows of each function's square, without `unit`, exact or as expected."""

    @abc.abstractmethod
    def precisions(self, kernel: Kernel, locations: Locations) -> Float[Array, " c"]:
        """The diagonal of the prior precision S of the weights of the functions there."""

    def functions(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """The functions there at the rows."""
        return self.unit(kernel) * self.values(kernel, X, locations)

    def at(self, kernel: Kernel, X: Float[Array, "N D"], blocks: Int[Array, " b"]) -> Float[Array, "N c"]:
        """The functions of these blocks at the rows."""
        return self.functions(kernel, X, self.locations(blocks, X.shape[1], X.dtype))


def draw_blocks(blocks: int, count: int, replacement: bool, *, key: PRNGKeyArray) -> Int[Array, " b"]:
    """`count` of the numbers 0 .. blocks - 1 with equal probability, at a cost that does not grow with `blocks`."""
    if replacement:
        return jax.random.randint(key, (count,), 0, blocks)
    if count == blocks:
        return jnp.arange(blocks)
    return permute(jnp.arange(count), blocks, key=key)


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
