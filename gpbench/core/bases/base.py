"""The interface of a basis whose functions are evaluated block by block, and the blocks that a step draws."""

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
