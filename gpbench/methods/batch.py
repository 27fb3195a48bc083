"""Rows of the training data, as methods get them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Batch(eqx.Module):
    """Rows of the training data: a minibatch, or all of them.

    Rows of weight 0 are padding: of a last, short minibatch, or of all rows, so that several devices share them
    equally.  In the second case the rows that count come first.

    Args:
        X: Standardised inputs.
        y: Targets: standardised for regression, counts as they are, -1 and 1 for two classes, 0 .. C-1 for more.
        index: Index of each row among the N training rows; 0 .. N-1 where the batch is all of them.
        weight: 1 for a row that counts, or its sample weight above 0; else 0.  A sum over rows needs it as a factor
            (`sum`).
        total: Number N of training rows that count.
        classes: Number C of classes; 0 for regression, 1 for counts.
        is_weighted: Whether rows have sample weights; a minibatch of others needs no array of N weights.
        unit: Size of one unit of each input in units of the file, for `init` alone; None if not known, and in steps.
    """

    X: Float[Array, "B D"]
    y: Float[Array, " B"]
    index: Int[Array, " B"]
    weight: Float[Array, " B"]
    total: int = eqx.field(static=True)
    classes: int = eqx.field(static=True, default=0)
    is_weighted: bool = eqx.field(static=True, default=False)
    unit: Float[Array | np.ndarray, " D"] | None = None

    @property
    def scale(self) -> Float[Array, ""]:
        """Ratio N / |B| of the training rows to the batch's rows that count."""
        return self.total / self.counted.sum()

    @property
    def counted(self) -> Float[Array, " B"]:
        """1 for a row that counts, whatever its sample weight; else 0."""
        return (self.weight > 0.0).astype(self.weight.dtype)

    def sum(self, terms: Float[Array, " B"]) -> Float[Array, ""]:
        """Estimate the sum over all N rows, without bias, from a term for each row of the batch."""
        return self.scale * jnp.sum(self.weight * terms)

    @property
    def task(self) -> str:
        """Kind of the targets: regression, count, binary or multiclass."""
        return {0: "regression", 1: "count", 2: "binary"}.get(self.classes, "multiclass")

    def first(self, rows: int | None) -> "Batch":
        """The first of all training rows, which come in random order; None, or a number above N: all that count."""
        n = min(rows or self.total, self.total)
        if n == len(self.y):
            return self
        first = (self.X[:n], self.y[:n], self.index[:n], self.weight[:n])
        return Batch(*first, n, self.classes, self.is_weighted, self.unit)
