"""Solvers of the mean of kernel functions around all training rows, under Gaussian noise and fixed hyper-parameters.
With Φ = S = K and a diagonal C the mean solves (K + σ²I) mean = y, and C is that of proposition 1 (paper `qsgp`).
AdaGrad on the bound is slow there, for its Hessian is K (K + σ²I) / σ²; a step of these solvers costs O(N) for each of
its rows, where AdaGrad's does not grow with N."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.likelihoods import Gaussian
from gpbench.core.memory import require_memory
from gpbench.core.solvers import (
    Blocks,
    ConjugateGradients,
    Descent,
    KernelSystem,
    Nystroem,
    Rows,
    exact,
    relative,
    step_limit,
)
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch
from gpbench.methods.parts.basis_bound import Hyper

_STEP_SIZE, _MOMENTUM, _WINDOW = 0.9, 0.99, 100
"""Of stochastic dual descent: step size in units of the largest stable one, momentum, and steps over the average's."""
_MOST = 100_000
"""Number of rows up to which conjugate gradients take no longer than 5,000 steps of AdaGrad, or a few times that."""
_CHECKED = 1000  # largest number of training rows whose residuals the record has


class MeanSolver(eqx.Module):
    """A solver with y, and what a step reports."""

    targets: Float[Array, "N 1"]
    solver: ConjugateGradients | Blocks | Descent
    level: Float[Array, ""]
    """Square of the residual relative to y: that of cg's iterations, or of the last minibatches on average."""
    length: Float[Array, ""]
    """Step size of dual."""
    constant: Float[Array, ""]
    """The part of the bound in which the mean is not."""
    bound: Float[Array, ""]
    """The bound before the last step, estimated for minibatches."""

    @property
    def weights(self) -> Float[Array, " N"]:
        """The mean."""
        return (self.solver.average if isinstance(self.solver, Descent) else self.solver.weights)[:, 0]

    def equations(self, hyper: Hyper, X: Float[Array, "N D"]) -> KernelSystem:
        """(K + σ²I) mean = y."""
        return KernelSystem(hyper.kernel, hyper.noise, X, self.targets)

    def residual(self, hyper: Hyper, X: Float[Array, "N D"]) -> Float[Array, ""]:
        """The residual relative to y in float64, on up to 1,000 rows.  They are no neighbours, which blocks may just
        have solved.  In float32 the entries of K are rounded, and the solution of their system may be far from that of
        the exact one."""
        with jax.named_scope("needs_float64"):
            hyper, X, weights, targets = exact((hyper, X, self.weights[:, None], self.targets))
            system = KernelSystem(hyper.kernel, hyper.noise, X, targets)
            index = jnp.arange(0, len(X), -(-len(X) // _CHECKED))
            rows = Rows(system.X[index], index, jnp.ones((len(index), 1)))
            return relative(system.residual(weights, rows), system.targets[index])

    def step(self, hyper: Hyper, X: Float[Array, "N D"], batch: Batch, *, steps: int, tolerance: float) -> "MeanSolver":
        """The next state; this one where the relative residual is below the tolerance.  cg ignores the rows of the
        `batch`; the number of training `steps` sets the window of dual's average."""
        system = self.equations(hyper, X)
        all_rows = isinstance(self.solver, ConjugateGradients)
        move = partial(self._all_rows, tolerance) if all_rows else partial(self._some_rows, batch, steps)
        with jax.named_scope("needs_float64"):  # the preconditioner, which passes through unchanged
            return jax.lax.cond(self.level <= tolerance**2, lambda: self, lambda: move(system))

    def _all_rows(self, tolerance: float, system: KernelSystem) -> "MeanSolver":
        """An iteration of cg.  It goes on from the true residual where only its own is below the tolerance.  The
        weights become NaN where they are worse than 0 by what cg minimises, ½ wᵀHw - yᵀw = -½ wᵀ(y + r): H is
        indefinite to the precision of its entries."""
        assert isinstance(self.solver, ConjugateGradients)
        before, after = self.solver, self.solver.step(system)
        misfit = _misfit(before.weights, before.residual, self.targets, system.noise)
        below = relative(after.residual, self.targets) <= tolerance
        after = jax.lax.cond(below, lambda: after.restart(system), lambda: after)
        sound = jnp.sum(after.weights * (self.targets + after.residual)) >= 0.0
        after = dataclasses.replace(after, weights=jnp.where(sound, after.weights, jnp.nan))
        level = relative(after.residual, self.targets) ** 2
        return dataclasses.replace(self, solver=after, level=level, bound=self.constant - misfit)

    def _some_rows(self, batch: Batch, steps: int, system: KernelSystem) -> "MeanSolver":
        rows, batches = Rows(batch.X, batch.index, batch.weight[:, None]), -(-batch.total // len(batch.y))
        after: Blocks | Descent
        if isinstance(self.solver, Descent):
            share, point = min(1.0, _WINDOW / max(steps, 1)), self.solver.ahead(_MOMENTUM)
            residual, length = system.residual(point, rows), self.length * batches
            after = self.solver.step(residual, rows, length=length, momentum=_MOMENTUM, averaged=share)
        else:
            assert isinstance(self.solver, Blocks)
            share, point = 1.0 / batches, self.solver.weights
            after, residual = self.solver.step(system, rows)
        weights, targets = (rows.counted * array[rows.index] for array in (point, self.targets))
        misfit = batches * _misfit(weights, residual, targets, system.noise)
        level = jnp.mean(residual**2) * (len(rows.X) / jnp.maximum(rows.counted.sum(), 1.0)) / jnp.mean(self.targets**2)
        level = share * level + (1.0 - share) * self.level
        return dataclasses.replace(self, solver=after, level=level, bound=self.constant - misfit)


def _misfit(weights: Array, residual: Array, targets: Array, noise: Array) -> Float[Array, ""]:
    """|y - K w|² / (2 σ²) + ½ wᵀK w with K w = y - r - σ²w."""
    return jnp.sum(residual**2) / (2.0 * noise) + 0.5 * jnp.sum(weights * (targets + residual))


def chosen_solver(method: Any, data: Batch) -> str:
    """The solver of the mean, of a method with the settings of `BasisMethod`: `auto` is cg where that is possible with
    at most 100,000 rows, else adagrad."""
    reason = _obstacle(method, data)
    if method.solver == "auto":
        return "adagrad" if reason or method.search or data.total > _MOST else "cg"
    if method.solver == "adagrad":
        return "adagrad"
    if method.search:
        reason = "it has no rate to search: set method.search=null"
    if reason:
        raise ConfigError(f"method.solver={method.solver}: {reason}, or method.solver=adagrad")
    return method.solver


def _obstacle(method: Any, data: Batch) -> str:
    """Reason why the mean is no solution of (K + σ²I) mean = y, and what to set; "" where it is one."""
    if method.features != "inducing" or method.size(data.total) < data.total:
        return (
            "it is for kernel functions around all rows: set method.features=inducing, method.basis=null and"
            " method.optimiser=null"
        )
    if method.relevance:
        return "it is for a prior whose precision is K: set method.relevance=false"
    if method.dense_columns:
        return "it is for a diagonal C: set method.dense_columns=0"
    likelihood = method.likelihood.initial(data.task, data.classes, noise=1.0, floor=0.0, dtype=data.X.dtype)
    return "" if isinstance(likelihood, Gaussian) else "it is for Gaussian noise: set method.likelihood=gaussian"


def start_solver(
    name: str,
    hyper: Hyper,
    X: Float[Array, "N D"],
    y: Float[Array, " N"],
    log_scales: Float[Array, " N"],
    *,
    rank: int | None,
    rows: int,
    batch: int,
) -> MeanSolver:
    """The solver cg, blocks or dual with weights of 0; `log_scales` are the logarithms of C's diagonal.  `rank` is that
    of cg's preconditioner, None for none; dual's step size is computed from the first `rows` rows."""
    noise, targets = hyper.noise, y[:, None]
    system = KernelSystem(hyper.kernel, noise, X, targets)
    zero = jnp.zeros((), X.dtype)
    solver: ConjugateGradients | Blocks | Descent
    if name == "blocks":
        require_memory(6 * batch**2 * 8, f"the equations of {batch:,} rows", "rows in a step (method.batch_size)")
        solver, length = Blocks(jnp.zeros_like(targets)), zero
    elif name == "dual":
        solver = Descent.start(targets)
        length = _STEP_SIZE * step_limit(hyper.kernel, noise, X, rows, batch, _MOMENTUM)
    else:
        preconditioner = None if rank is None else eqx.filter_jit(Nystroem.of_first)(system, rank)
        solver, length = ConjugateGradients.start(system, preconditioner), zero
    constant = jnp.sum(log_scales) - 0.5 * len(X) * jnp.log(2.0 * jnp.pi * noise)
    return MeanSolver(targets, solver, jnp.ones((), X.dtype), length, constant, constant)


@jax.jit
def regressors_mean(
    hyper: Hyper, X: Float[Array, "N D"], Z: Float[Array, "p D"], y: Float[Array, " N"]
) -> Float[Array, " p"]:
    """The mean of the functions around Z, the first rows of X, if there were no others (a subset of regressors)."""
    system = KernelSystem(hyper.kernel, hyper.noise, X, y[:, None])
    return Nystroem.of_first(system, len(Z)).regress(system, y[:, None])[:, 0]
