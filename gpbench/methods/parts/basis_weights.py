"""A Gaussian posterior of the weights of many basis functions, and a control variate for estimates from some of them.

Paper `qsgp` (Evans and Nair 2020), sections 2.2 and 2.4 and appendix F.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpbench.core.bases import Basis, Locations
from gpbench.core.kernels import Kernel
from gpbench.methods.parts.basis_projections import outputs_of


class Weights(eqx.Module):
    """q(w) = N(mean, C Cᵀ) in B blocks, C lower triangular with k dense columns and else diagonal (a chevron).

    `dense` has the entries of the dense columns below the diagonal, and on it their logarithms.  `log_scale` is the
    logarithm of the other diagonal entries where they are parameters, None where they have a closed form.
    `log_precision` is that of the prior precision of each weight, None where the prior is fixed.
    """

    mean: Float[Array, "B block"]
    dense: Float[Array, "B block k"]
    log_scale: Float[Array, "B block"] | None = None
    log_precision: Float[Array, "B block"] | None = None

    @property
    def width(self) -> int:
        """k, the number of dense columns."""
        return self.dense.shape[-1]


def columns(drawn: Weights, index: Int[Array, " c"]) -> Float[Array, "c W"]:
    """The mean and the k = W - 1 dense columns of C at the drawn weights, whose numbers are `index`."""
    row, column, dense = index[:, None], jnp.arange(drawn.width), drawn.dense.reshape(drawn.mean.size, drawn.width)
    entries = jnp.where(
        row == column, jnp.exp(jnp.where(row == column, dense, 0.0)), jnp.where(row > column, dense, 0.0)
    )
    return jnp.concatenate([drawn.mean.reshape(-1, 1), entries], axis=1)


def log_diagonal(drawn: Weights, index: Int[Array, " c"]) -> Float[Array, " c"]:
    """The logarithms of C's diagonal at the drawn weights that have a dense column; 0 at the others."""
    dense = drawn.dense.reshape(drawn.mean.size, drawn.width)
    return jnp.sum(jnp.where(index[:, None] == jnp.arange(drawn.width), dense, 0.0), axis=1)


def diagonal_squares(
    drawn: Weights,
    squares: Float[Array, "b block"] | None,
    basis: Basis,
    blocks: Int[Array, " b"],
    locations: Locations,
    kernel: Kernel,
    noise: Float[Array, ""],
    rows: Int[Array, ""],
) -> Float[Array, " c"]:
    """c_rr² of the drawn weights without a dense column; 0 for the others.

    Under Gaussian noise σ² it is σ² / (φ_rᵀφ_r + σ² s_rr) (proposition 1), with `squares` the mean of φ_r² over all
    `rows` in its unit; else a parameter.
    """
    if drawn.log_scale is not None:
        values = jnp.exp(2.0 * drawn.log_scale.ravel())
    else:
        assert squares is not None
        products = rows.astype(squares.dtype) * basis.unit(kernel) ** 2 * squares.ravel()
        values = noise / (products + noise * prior_precisions(drawn, basis, locations, kernel))
    return jnp.where((basis.index(blocks) >= drawn.width) & basis.exists(blocks), values, 0.0)


def prior_precisions(drawn: Weights, basis: Basis, locations: Locations, kernel: Kernel) -> Float[Array, " c"]:
    """s_rr of the drawn weights."""
    return basis.precisions(kernel, locations) if drawn.log_precision is None else jnp.exp(drawn.log_precision.ravel())


class ControlVariate(eqx.Module):
    """R = Φ_p [mean, dense columns of C] at p support rows, kept up to date while weights change (proposition 3).

    The functions stay those of the initial hyper-parameters (appendix F.3).  `root` is the inverse Cholesky factor of
    k(X_p, X_p) where the prior precision S is a kernel matrix, for the Nyström term of appendix F.2.
    """

    X: Float[Array, "p D"]
    kernel: Kernel
    running: Float[Array, "p W"]
    root: Float[Array, "p p"] | None

    def term(
        self, left: Float[Array, "p W"], right: Float[Array, "p W"], precision: Float[Array, ""]
    ) -> Float[Array, ""]:
        """⟨R, M R⟩ - ⟨left, M right⟩, where left and right are independent unbiased estimates of R: 0 in expectation.

        M = `precision` I (+ k(X_p, X_p)⁻¹), with `precision` = N / (p σ²).  Its gradient is that of
        -⟨left - R, M (right - R)⟩ with R constant: the gradient of ⟨R, M R⟩, which would touch all weights, is
        estimated from the drawn ones, each draw scaled as its estimate is (compare appendix F.1, which scales both
        together).
        """

        def product(a, b):
            value = precision * jnp.sum(a * b)
            return value if self.root is None else value + jnp.sum((self.root @ a) * (self.root @ b))

        R = jax.lax.stop_gradient(self.running)
        centred = product(left - R, right - R)
        constant = product(R, R) - product(left, right) + centred
        return jax.lax.stop_gradient(constant) - centred

    def advance(self, basis: Basis, locations: Locations, changes: Float[Array, "c W"]) -> "ControlVariate":
        """After a step that changed [mean, dense columns of C] of the weights there by `changes`."""
        change = outputs_of(basis, self.kernel, self.X, locations, changes)
        return eqx.tree_at(lambda c: c.running, self, self.running + change)
