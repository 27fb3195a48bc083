"""The negative variational bound of f = Σ w_i φ_i(x), estimated from some rows and some of the basis functions.  Paper
`qsgp` (Evans and Nair 2020): theorems 1 and 2 with proposition 2 under Gaussian noise, which are unbiased, and theorem
3 under other likelihoods, as corrected in docs/reference/errata.md or as printed.  With every function in each draw and
every row in the batch all of them are the deterministic bound, but for the printed form."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpbench.core.bases import Basis, KernelFunctions, Locations
from gpbench.core.gaussians import MeanVariance
from gpbench.core.kernels import Kernel
from gpbench.core.likelihoods import Gaussian, Likelihood
from gpbench.methods.base import Batch
from gpbench.methods.parts.basis_weights import (
    ControlVariate,
    Functions,
    Weights,
    columns,
    gram_product,
    log_diagonal,
    outputs_of,
    project,
    tiles,
)

_LEAST = 1e-12  # number added to the variance of the printed argument: it is often 0, where its root has no derivative


class Hyper(eqx.Module):
    """The hyper-parameters."""

    kernel: Kernel
    likelihood: Likelihood

    @property
    def noise(self) -> Float[Array, ""]:
        """σ² of Gaussian noise; 1 for other likelihoods."""
        if isinstance(self.likelihood, Gaussian):
            return self.likelihood.noise
        return jnp.ones((), jax.tree.leaves(self.kernel)[0].dtype)


class Sample(Functions):
    """The functions that a step draws: `draws` draws one after the other, each of c functions.  `third` is the draw r
    of theorem 3 as printed; None for other bounds."""

    draws: int = eqx.field(static=True)
    third: Int[Array, " r"] | None = None

    @property
    def scale(self) -> float:
        """The number of blocks over that of one draw, which makes sums over a draw unbiased."""
        return self.basis.blocks * self.draws / len(self.blocks)

    def halves(self, tree: Any) -> list[Any]:
        """Arrays with a row for each block, or each function, as one tree for each draw."""
        half = lambda k, leaf: leaf[k * len(leaf) // self.draws : (k + 1) * len(leaf) // self.draws]
        return [jax.tree.map(partial(half, k), tree) for k in range(self.draws)]

    def times_drawn(self) -> Int[Array, " c"]:
        """Count each function in its own draw: 1 without replacement."""
        counts = [_times(blocks, blocks) for blocks in self.halves(self.blocks)]
        return jnp.repeat(jnp.concatenate(counts), self.basis.block)

    def times_shared(self) -> Int[Array, " c"]:
        """Count each function of a draw in the other one and in the third, and multiply both counts."""
        i, j = self.halves(self.blocks)
        assert self.third is not None
        shared = [_times(i, j) * _times(i, self.third), _times(j, i) * _times(j, self.third)]
        return jnp.repeat(jnp.concatenate(shared), self.basis.block)

    def average(self, values: Float[Array, " c"]) -> Float[Array, ""]:
        """An unbiased estimate of a sum over all functions, the mean over the draws."""
        return self.scale / self.draws * jnp.sum(values)


def negative_bound(
    hyper: Hyper,
    drawn: Weights,
    sample: Sample,
    batch: Batch,
    control: ControlVariate | None = None,
    *,
    learned: bool = True,
) -> tuple[Float[Array, ""], Float[Array, " c"]]:
    """The estimate in nats, and the mean of each drawn function's square over the batch, without its unit.  Where S is
    a kernel matrix ½ log|S| is left out, a constant, for its hyper-parameters are fixed.  The diagonal entries of C
    that have a closed form count as constants.  Without `learned` the rows give no gradient in the kernel, so that the
    whole one is wrong."""
    basis, kernel, likelihood = sample.basis, hyper.kernel, hyper.likelihood
    columns_, noise = columns(drawn, basis.index(sample.blocks)), hyper.noise
    scales2 = sample.diagonal_squares(drawn, kernel, noise)
    if drawn.log_scale is None:
        scales2 = jax.lax.stop_gradient(scales2)
    ends = sample.halves(sample.locations), sample.halves(columns_)
    sums = jnp.zeros_like(scales2)
    if isinstance(likelihood, Gaussian):
        loss = lambda first, second: squared_error(sample.scale * first, sample.scale * second, batch)
        draws = [*map(Draw, *ends, sample.halves(batch.scale * sample.scale / sample.draws * scales2))]
        error, sums = paired_loss(loss, basis, kernel, batch.X, draws, weight=batch.weight, learned=learned)
        misfit = 0.5 * (error / noise + batch.total * jnp.log(2.0 * jnp.pi * noise))
    else:
        factors = sample.halves(scales2 * (sample.times_drawn() if sample.third is None else sample.times_shared()))
        outputs, narrow = zip(*(project(basis, kernel, batch.X, *entry) for entry in zip(*ends, factors)))
        mean, variance = _site_moments([sample.scale * draw for draw in outputs], narrow[0], sample, drawn.width)
        misfit = -batch.sum(likelihood.expected_log_prob(mean, variance, batch.y))
    value = misfit + _prior_divergence(drawn, columns_, scales2, sample, kernel)
    if control is not None:
        precision = batch.total / (len(control.X) * noise)
        term = lambda first, second: control.term(sample.scale * first, sample.scale * second, precision)
        draws = [*map(Draw, *ends, sample.halves(jnp.zeros_like(scales2)))]
        value += 0.5 * paired_loss(term, basis, control.kernel, control.X, draws)[0]
    return value, jax.lax.stop_gradient(sums / (jnp.sum(batch.weight) * basis.unit(kernel) ** 2))


def squared_error(
    first_outputs: Float[Array, "N W"], second_outputs: Float[Array, "N W"], batch: Batch
) -> Float[Array, ""]:
    """An unbiased estimate of |y - Φ mean|² + |Φ C_dense|² from independent estimates of Φ [mean, C_dense].  The linear
    term has both estimates; in theorem 1 it has one of them alone."""
    mean = (batch.y - first_outputs[:, 0]) * (batch.y - second_outputs[:, 0])
    return batch.sum(mean + jnp.sum(first_outputs[:, 1:] * second_outputs[:, 1:], axis=1))


def _site_moments(
    outputs: list[Float[Array, "N W"]], narrow: Float[Array, " N"], sample: Sample, width: int
) -> MeanVariance:
    """Mean and variance of the normal argument of theorem 3's sites, given the draws.

    Corrected: s Σ_i φ_i (mean_i + c_ii z_i + Σ_r C_ir z_r), z ~ N(0, I), with the scale s and the same i throughout; it
    is linear in the sampled sums, so that Jensen's inequality holds.  An i that was drawn t times has one z_i.
    Printed: s Σ_i φ_i mean_i + z s³ Σ_jri φ_j C_jr C_ir φ_i with independent draws j and r, which has a variance where
    the deviation belongs.  `outputs` are unbiased estimates of Φ [mean, dense columns of C], k = `width` of these, of
    every draw, and `narrow` is Σ_i t_i φ_i² c_ii², with the printed form over the i that are in all three draws.
    """
    s, first = sample.scale, outputs[0]
    if sample.third is None:
        return first[:, 0], s**2 * narrow + jnp.sum(first[:, 1:] ** 2, axis=1)
    wide = _times(jnp.arange(width) // sample.basis.block, sample.third)
    factor = s**3 * narrow + s * jnp.sum(wide * first[:, 1:] * outputs[1][:, 1:], axis=1)
    return first[:, 0], factor**2 + _LEAST


def _times(blocks: Int[Array, " b"], among: Int[Array, " a"]) -> Int[Array, " b"]:
    """Count each block among others."""
    ordered = jnp.sort(among)
    return jnp.searchsorted(ordered, blocks, side="right") - jnp.searchsorted(ordered, blocks, side="left")


def _prior_divergence(
    drawn: Weights, columns_: Float[Array, "c W"], scales2: Float[Array, " c"], sample: Sample, kernel: Kernel
) -> Float[Array, ""]:
    """KL[q(w) || N(0, S⁻¹)] = ½ (meanᵀS mean + tr SΣ - log|SΣ| - m), without log|S| where S is a kernel matrix."""
    basis, blocks = sample.basis, sample.blocks
    exists = basis.exists(blocks)
    precisions = sample.precisions(drawn, kernel)
    if isinstance(basis, KernelFunctions) and drawn.log_precision is None:
        pairs = tuple(sample.halves(sample.locations)), tuple(sample.halves(columns_))
        square = sample.scale**2 * gram_product(basis, kernel, *pairs)
    else:
        square = sample.average(jnp.where(exists, precisions * jnp.sum(columns_**2, axis=1), 0.0))
    narrow = scales2 > 0
    log_scales = 0.5 * jnp.log(jnp.where(narrow, scales2, 1.0)) + log_diagonal(drawn, basis.index(blocks))
    trace = sample.average(precisions * scales2 - 2.0 * jnp.where(exists, log_scales, 0.0))
    if drawn.log_precision is not None:
        trace -= sample.average(jnp.where(exists, drawn.log_precision.ravel(), 0.0))
    return 0.5 * (square + trace - basis.size)


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
    """loss(Φ_i columns_i, Φ_j columns_j) + Σ factors sums, and sums = `weight` Φ² of the functions of both draws.  The
    loss is affine in either argument, as in theorems 1 and 2 of the paper `qsgp`, so that its gradient in one draw
    depends on the outputs of the other draw alone.  After those of the second draw, one pass over each draw has both
    its outputs and its gradient; differentiation of the loss as it stands would make all functions twice.  The gradient
    is that in the columns, in arguments of `loss` itself and, with `learned`, in the kernel.  Without `weight` the sums
    are 0."""
    fixed_kernel, fixed_draws = jax.lax.stop_gradient((kernel, draws))
    first, second = fixed_draws
    second_outputs = outputs_of(basis, fixed_kernel, X, second.locations, second.columns)
    zero = jnp.zeros_like(second_outputs)  # where the gradient in an argument is taken does not matter
    to_left = jax.lax.stop_gradient(jax.grad(loss, argnums=0)(zero, second_outputs))
    first_outputs, of_first, first_sums = _pass(basis, fixed_kernel, X, first, to_left, weight, learned)
    to_right = jax.lax.stop_gradient(jax.grad(loss, argnums=1)(first_outputs, zero))
    second_outputs, of_second, second_sums = _pass(basis, fixed_kernel, X, second, to_right, weight, learned)
    value, sums = loss(first_outputs, second_outputs), jnp.concatenate([first_sums, second_sums])
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

    def of_tile(kernel: Any, columns: Any, locations: Any, factors: Any) -> Any:
        # the unit outside the products: the gradient in it inside would be a sum over all entries, which is slow
        unit, values = basis.unit(kernel), basis.values(kernel, X, locations)
        outputs = unit * (values @ columns)
        sums = jnp.zeros_like(factors) if weight is None else unit**2 * (weight @ values**2)
        return jnp.vdot(cotangent, outputs) + jnp.vdot(factors, sums), (outputs, sums)

    differentiate = jax.grad(of_tile, argnums=(0, 1) if learned else (1,), has_aux=True)

    def add(totals: Any, tile: Any) -> Any:
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
