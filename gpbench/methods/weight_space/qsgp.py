"""`qsgp`: quadruply stochastic Gaussian processes (Evans and Nair 2020, paper `qsgp`), and `qsrvm` (its appendix I.3).

f = Σ w_i φ_i(x) with up to 10⁷ basis functions.  A step sees a minibatch of rows and draws of the functions; its
cost depends on neither the number of rows nor that of functions.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core.bases import KernelFunctions, draw_blocks
from gpbench.core.bases.base import adagrad, take
from gpbench.core.likelihoods import Gaussian
from gpbench.core.predictive import Predictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.basis_bound import Hyper, Sample, negative_bound
from gpbench.methods.parts.basis_method import BasisMethod, BasisState
from gpbench.methods.parts.basis_weights import columns, latent_moments
from gpbench.methods.parts.mean_solver import MeanSolver

_FOLLOWING = 0.01
"""Smallest weight of a minibatch in the running mean squares of the functions while hyper-parameters move."""
_FINITE = 1e4  # prior precision from which a function is no relevance vector (appendix I.3)


class QSGP(BasisMethod):
    """Quadruply stochastic Gaussian processes (Evans and Nair 2020): `qsgp`, and with `relevance` `qsrvm`.  The bound
    of Gaussian noise is estimated without bias (theorems 1 and 2, proposition 2); that of other log-concave likelihoods
    by theorem 3, whose expectation is lower.  Memory under Gaussian noise: (2k + 3) m numbers, and for a step the rows
    of C that are drawn and up to 2,000 functions at the batch and at the support rows; for predictions 2,000 functions
    at 10,000 rows."""

    def step(self, state: BasisState, batch: Batch, *, key: PRNGKeyArray) -> tuple[BasisState, Info]:
        if state.solver is not None:
            return self._solved(state, state.solver, batch)
        basis, control = state.basis, state.control
        sample = self._sample(state, batch, key=key)
        drawn = take(state.weights, sample.blocks)
        learned = self.optimiser is not None
        loss = lambda hyper, drawn: negative_bound(hyper, drawn, sample, batch, control, learned=learned)
        if self.optimiser is None:
            evaluate = jax.value_and_grad(loss, argnums=1, has_aux=True)
            (value, squares), gradient = evaluate(state.hyper, drawn)
            hyper, optimiser = state.hyper, None
        else:
            evaluate = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
            (value, squares), (hyper_gradient, gradient) = evaluate(state.hyper, drawn)
            hyper, optimiser = self._moved_hyper(state, hyper_gradient)
        weights, sums, first = adagrad(
            state.weights, state.sums, sample.blocks, gradient, self._fall(state) * state.rate
        )
        if control is not None:
            index = basis.index(sample.blocks)
            changes = columns(take(weights, sample.blocks), index) - columns(drawn, index)
            once = jnp.repeat(first, basis.block)[:, None]
            control = control.advance(basis, sample.locations, jnp.where(once, changes, 0.0))
        new_squares = state.squares
        if sample.squares is not None and self.features == "rff":
            weight = self._following(state, sample)
            mixed = sample.squares + weight * (squares.reshape(sample.squares.shape) - sample.squares)
            new_squares = state.squares.at[sample.blocks].set(mixed)  # type: ignore[union-attr]
        new = BasisState(
            basis, hyper, optimiser, weights, sums, state.rate, new_squares, control, state.rows, state.step + 1, None
        )
        return new, Info(-value)

    def _solved(self, state: BasisState, solver: MeanSolver, batch: Batch) -> tuple[BasisState, Info]:
        """A step of a solver of (K + σ²I) mean = y."""
        new = solver.step(state.hyper, _centres(state), batch, steps=self.steps, tolerance=self.tolerance)
        mean = state.weights.mean
        mean = jnp.pad(new.weights, (0, mean.size - state.basis.size)).reshape(mean.shape)
        parts = lambda s: (s.weights.mean, s.step, s.solver)
        return eqx.tree_at(parts, state, (mean, state.step + 1, new)), Info(new.bound)

    def converged(self, state: BasisState) -> Bool[Array, ""] | None:
        """True where a solver's residual is below the tolerance; None for AdaGrad."""
        return None if state.solver is None else state.solver.level <= self.tolerance**2

    def optimum(self, state: BasisState) -> Bool[Array, ""] | None:
        """True where a solver's residual is at most twice the tolerance in float64; None for AdaGrad.  The criterion
        that ends training is an average over steps, in the precision of the run."""
        return None if state.solver is None else self.diagnostics(state)["residual"] <= 2.0 * self.tolerance

    def _sample(self, state: BasisState, batch: Batch, *, key: PRNGKeyArray) -> Sample:
        """The blocks of a step.  Theorem 3 needs a single draw, but for its printed form and where S is a matrix."""
        basis, gaussian = state.basis, isinstance(state.hyper.likelihood, Gaussian)
        count = min(-(-self.basis_batch // basis.block), basis.blocks)
        printed = self.bound == "printed" and not gaussian
        has_gram = self.features == "inducing" and not self.relevance
        draws = 2 if gaussian or printed or has_gram else 1
        drawn = [draw_blocks(basis.blocks, count, self.replacement, key=k) for k in jax.random.split(key, 3)]
        blocks, third = jnp.concatenate(drawn[:draws]), drawn[2] if printed else None
        return Sample.of_blocks(basis, blocks, batch.X, state.squares, state.rows, draws=draws, third=third)

    def _fall(self, state: BasisState) -> Float[Array, ""]:
        """Ratio of the rates to their initial values."""
        return self.decay ** (state.step / max(1, self.steps)).astype(state.weights.mean.dtype)

    def _following(self, state: BasisState, sample: Sample) -> Float[Array, ""]:
        """The weight of a minibatch in the running mean squares: all count alike until hyper-parameters move them."""
        drawn = len(sample.blocks) / sample.draws / state.basis.blocks
        visits = 2.0 + state.step * (1.0 - (1.0 - drawn) ** sample.draws)  # as expected, the initial value counting too
        least = 0.0 if self.optimiser is None else _FOLLOWING
        return jnp.maximum(1.0 / visits, least).astype(state.weights.mean.dtype)

    def _moved_hyper(self, state: BasisState, gradient: Hyper) -> tuple[Hyper, optax.OptState]:
        """Hyper-parameters after an optimiser's step; as they are in the first part of the steps."""
        assert self.optimiser is not None
        updates, optimiser = self.optimiser.update(gradient, state.hyper_optimiser, state.hyper)
        fall, moves = self._fall(state), state.step >= self.freeze * self.steps
        moved = optax.apply_updates(state.hyper, jax.tree.map(lambda u: (fall * u).astype(u.dtype), updates))
        return jax.tree.map(
            lambda new, old: jnp.where(moves, new, old), (moved, optimiser), (state.hyper, state.hyper_optimiser)
        )

    def predict(self, state: BasisState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        kernel, noise = state.hyper.kernel, state.hyper.noise
        model = (state.basis, state.weights, state.squares, kernel, noise, state.rows)
        mean, variance, norms = latent_moments(*model, X)
        if self.augmentation:
            prior = kernel.diag(X)
            variance += noise * prior**2 / (norms + noise * prior)
        return state.hyper.likelihood.predictive(mean, jnp.zeros_like(variance) if self.plug_in else variance)

    def objective(self, state: BasisState, data: Batch) -> Float[Array, ""]:
        """The deterministic bound, from all rows and all functions, in O(N m) memory.  Where S is a kernel matrix ½
        log|S| is left out, so that the number is no bound on the evidence."""
        every = jnp.arange(state.basis.blocks)
        blocks = jnp.concatenate([every, every])
        sample = Sample.of_blocks(state.basis, blocks, data.X, state.squares, state.rows, draws=2)
        return -negative_bound(state.hyper, take(state.weights, blocks), sample, data, learned=False)[0]

    def diagnostics(self, state: BasisState) -> dict[str, Array]:
        """Number of relevance vectors, whose prior precision is below 1e4 (appendix I.3), and below 1e3 and 1e5; or the
        residual of a solver on up to 1,000 rows, |y - (K + σ²I) mean| / |y|."""
        if state.solver is not None:
            return {"residual": jax.jit(MeanSolver.residual)(state.solver, state.hyper, _centres(state))}
        if state.weights.log_precision is None:
            return {}
        limits = {"relevant": _FINITE, "relevant_1e3": 1e3, "relevant_1e5": 1e5}
        return {name: jnp.sum(self._relevant(state, limit)) for name, limit in limits.items()}

    def arrays(self, state: BasisState) -> dict[str, Array]:
        """The centres (M, D) of kernel functions; NaN, which is not drawn, for those that are no relevance vectors."""
        if not isinstance(state.basis, KernelFunctions):
            return {}
        centres = _centres(state)
        if state.weights.log_precision is None:
            return {"inducing": centres}
        return {"inducing": jnp.where(self._relevant(state, _FINITE)[:, None], centres, jnp.nan)}

    def _relevant(self, state: BasisState, limit: float) -> Bool[Array, " M"]:
        """Mask of the functions whose prior precision is below `limit`."""
        assert state.weights.log_precision is not None
        return state.weights.log_precision.ravel()[: state.basis.size] < math.log(limit)

    def diagnose(self, state: BasisState) -> str:
        if state.solver is not None:
            return "the solver of the mean diverged: try another method.solver, or protocol.precision=float64"
        moves = "" if self.optimiser is None else ", smaller rates in method.optimiser"
        return f"the steps grew without bound: try a smaller method.rate{moves} or a larger method.basis_batch"


def _centres(state: BasisState) -> Float[Array, "M D"]:
    """The centres of kernel functions."""
    assert isinstance(state.basis, KernelFunctions)
    return state.basis.Z[: state.basis.size]
