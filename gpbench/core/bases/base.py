"""The interface of a basis whose functions are evaluated block by block, and updates of the drawn blocks alone."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core.kernels import Kernel
from gpbench.core.random import permute

Locations = Any
"""A pytree of arrays with an axis of blocks in front: frequencies and phases, or centres."""


class Basis(eqx.Module):
    """m basis functions in blocks of `block`; the last block may be longer than what is left.  A function is `unit`
    times `values`: the part of a kernel's parameters that only scales it is apart."""

    size: eqx.AbstractVar[int]
    """Number m of functions."""
    block: eqx.AbstractVar[int]
    """Number of functions in a block."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.size // self.block)

    def index(self, blocks: Int[Array, " b"]) -> Int[Array, " c"]:
        """Numbers of the functions in these blocks; those from `size` on fill the last block up."""
        return (blocks[:, None] * self.block + jnp.arange(self.block)).ravel()

    def exists(self, blocks: Int[Array, " b"]) -> Bool[Array, " c"]:
        """True for functions, false for what fills the last block up."""
        return self.index(blocks) < self.size

    @abc.abstractmethod
    def unit(self, kernel: Kernel) -> Float[Array, ""]:
        """Common factor of all functions."""

    @abc.abstractmethod
    def locations(self, blocks: Int[Array, " b"], inputs: int, dtype: DTypeLike) -> Locations:
        """Parameters that tell the functions of these blocks apart for D = `inputs`, such as frequencies or centres."""

    @abc.abstractmethod
    def values(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """Values at X of the functions with these locations, without `unit`; 0 for what fills the last block up."""

    @abc.abstractmethod
    def initial_squares(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "B block"]:
        """Mean over the rows of each function's square, without `unit`, exact or in expectation."""

    @abc.abstractmethod
    def precisions(self, kernel: Kernel, locations: Locations) -> Float[Array, " c"]:
        """Diagonal of the prior precision S of the weights of these functions."""

    def functions(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """Values at X of the functions with these locations."""
        return self.unit(kernel) * self.values(kernel, X, locations)

    def evaluate(self, kernel: Kernel, X: Float[Array, "N D"], blocks: Int[Array, " b"]) -> Float[Array, "N c"]:
        """Values at X of the functions in these blocks."""
        return self.functions(kernel, X, self.locations(blocks, X.shape[1], X.dtype))


def draw_blocks(blocks: int, count: int, replacement: bool, *, key: PRNGKeyArray) -> Int[Array, " b"]:
    """`count` block numbers of equal probability, at a cost that does not grow with `blocks`.  All in order where
    `count` is `blocks` and there is no `replacement`."""
    if replacement:
        return jax.random.randint(key, (count,), 0, blocks)
    if count == blocks:
        return jnp.arange(blocks)
    return permute(jnp.arange(count), blocks, key=key)


_Blocks = Any
"""A pytree of arrays with one leading axis: of all blocks, or of those that were drawn."""


def take(tree: _Blocks, blocks: Int[Array, " b"]) -> _Blocks:
    """The drawn blocks of every array."""
    return jax.tree.map(lambda leaf: leaf[blocks], tree)


def merge(tree: _Blocks, blocks: Int[Array, " b"]) -> tuple[_Blocks, Bool[Array, " b"]]:
    """For every draw the sum of the entries of all draws of its block, and true where it is the first of its block."""
    order = jnp.argsort(blocks)
    ranked = blocks[order]
    new = jnp.concatenate([jnp.ones(1, bool), ranked[1:] != ranked[:-1]])
    group = jnp.zeros(len(blocks), int).at[order].set(jnp.cumsum(new) - 1)
    first = jnp.zeros(len(blocks), bool).at[order].set(new)
    total = lambda leaf: jax.ops.segment_sum(leaf, group, len(blocks))[group]
    return jax.tree.map(total, tree), first


def adagrad(
    values: _Blocks, sums: _Blocks, blocks: Int[Array, " b"], gradients: _Blocks, rate: Float[Array, ""] | float
) -> tuple[_Blocks, _Blocks, Bool[Array, " b"]]:
    """A step of AdaGrad (Duchi, Hazan and Singer 2011) on the drawn blocks: minimises.  `values` and the `sums` of
    squared gradients are those of all blocks; `gradients` have an entry for each draw, and those of one block add up.
    The values and sums after the step, and true for each draw that is the first of its block."""
    totals, first = merge(gradients, blocks)
    new_sums = jax.tree.map(lambda s, g: s[blocks] + g**2, sums, totals)
    steps = jax.tree.map(lambda g, s: -rate * g * jax.lax.rsqrt(jnp.where(s > 0, s, 1.0)), totals, new_sums)

    def once(leaf: Array) -> Array:
        return jnp.where(first.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 0.0)

    values = jax.tree.map(lambda v, step: v.at[blocks].add(once(step)), values, steps)
    sums = jax.tree.map(lambda s, new: s.at[blocks].set(new), sums, new_sums)
    return values, sums, first
