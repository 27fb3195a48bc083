"""Losses of the outputs of two draws of basis functions, with their gradients, in three passes over the functions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.bases import Basis, Locations
from gpbench.core.kernels import Kernel
from gpbench.methods.parts.basis_projections import outputs_of, tiles


class Draw(NamedTuple):
    """c drawn functions: their locations, columns (their means and rows of C), and the factors of their squares."""

    locations: Locations
    columns: Float[Array, "c W"]
    factors: Float[Array, " c"]


def paired_loss(
    loss: Callable[[Float[Array, "N W"], Float[Array, "N W"]], Float[Array, ""]],
    basis: Basis,
    kernel: Kernel,
    X: Float[Array, "N D"],
    draws: Sequence[Draw],
    *,
    weight: Float[Array, " N"] | None = None,
    learned: bool = False,
) -> tuple[Float[Array, ""], Float[Array, " c2"]]:
    """loss(Φ_i columns_i, Φ_j columns_j) + Σ factors sums, and sums = `weight` Φ² of the functions of both draws.

    The loss is affine in either argument, as in theorems 1 and 2 of the paper `qsgp`, so that its gradient in one draw
    depends on the outputs of the other draw alone.  After those of the second draw, one pass over each draw has both
    its outputs and its gradient; differentiation of the loss as it stands would make all functions twice.

    The gradient is that in the columns and, with `learned`, in the kernel, and in what `loss` itself depends on.
    Without `weight` the sums are 0.
    """
    fixed_kernel, fixed_draws = jax.lax.stop_gradient((kernel, draws))
    first, second = fixed_draws
    right = outputs_of(basis, fixed_kernel, X, second.locations, second.columns)
    zero = jnp.zeros_like(right)  # where the gradient in an argument is taken does not matter
    to_left = jax.lax.stop_gradient(jax.grad(loss, argnums=0)(zero, right))
    left, of_first, first_sums = _pass(basis, fixed_kernel, X, first, to_left, weight, learned)
    to_right = jax.lax.stop_gradient(jax.grad(loss, argnums=1)(left, zero))
    right, of_second, second_sums = _pass(basis, fixed_kernel, X, second, to_right, weight, learned)
    value, sums = loss(left, right), jnp.concatenate([first_sums, second_sums])
    value += jnp.vdot(jnp.concatenate([first.factors, second.factors]), sums)
    for draw, gradient in zip(draws, (of_first, of_second)):
        value += _linear(gradient, (kernel, draw.columns) if learned else (None, draw.columns))
    return value, sums


def _pass(
    basis: Basis,
    kernel: Kernel,
    X: Float[Array, "N D"],
    draw: Draw,
    cotangent: Float[Array, "N W"],
    weight: Float[Array, " N"] | None,
    learned: bool,
) -> tuple[Float[Array, "N W"], tuple[Any, Float[Array, "c W"]], Float[Array, " c"]]:
    """Φ `columns`; the gradient of ⟨cotangent, Φ columns⟩ + Σ factors sums in kernel (or None) and columns; sums."""

    def of_tile(kernel, columns, locations, factors):
        # the unit outside the products: the gradient in it inside would be a sum over all entries, which is slow
        unit, values = basis.unit(kernel), basis.values(kernel, X, locations)
        outputs = unit * (values @ columns)
        sums = jnp.zeros_like(factors) if weight is None else unit**2 * (weight @ values**2)
        return jnp.vdot(cotangent, outputs) + jnp.vdot(factors, sums), (outputs, sums)

    differentiate = jax.grad(of_tile, argnums=(0, 1) if learned else (1,), has_aux=True)

    def add(totals, tile):
        locations, columns, factors = tile
        (*of_kernel, of_columns), (outputs, sums) = differentiate(kernel, columns, locations, factors)
        return jax.tree.map(jnp.add, totals, (outputs, of_kernel)), (of_columns, sums)

    count, width = draw.columns.shape
    start = jnp.zeros((len(X), width), X.dtype), [jax.tree.map(jnp.zeros_like, kernel)] * learned
    (outputs, of_kernel), (of_columns, sums) = jax.lax.scan(add, start, tiles(basis.block, *draw))
    gradient = of_kernel[0] if learned else None, of_columns.reshape(-1, width)[:count]
    return outputs, gradient, sums.ravel()[:count]


def _linear(gradient: Any, parameters: Any) -> Float[Array, ""]:
    """0, with this gradient in the parameters."""
    change = lambda g, p: jnp.vdot(g, p - jax.lax.stop_gradient(p))
    return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(change, gradient, parameters))))
