"""`vif`: inducing points, and Vecchia's approximation of what they leave over (Gyger, Furrer and Sigrist 2025).

Targets have the covariance VᵀV + S.  V = L⁻¹Kzx is that of a sparse GP, and S is Vecchia's approximation of the
residual covariance with the noise, K - VᵀV + σ²I: every row depends on `neighbours` rows before it.  Without neighbours
it is FITC; with all rows before it as neighbours its evidence is exact, and otherwise no bound on the exact one.

Rows are ordered as they come, which is at random.  Neighbours have the largest residual correlations.  Training
maximises the evidence with the neighbours that belong to its parameters.  In a round L-BFGS moves the parameters and
leaves the neighbours as they are; it then finds parameters under which these fit badly and the evidence is far too
large.  So a round counts only if the evidence is larger with the neighbours that belong to where it ends.  The next
round may then take twice as many iterations; else training goes back to where the round began, and the next takes half
as many.  Inducing points stay where they start.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.gaussians import Covariances, MeanVariance, Natural, Normal, residual, unit_factor
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky, log_determinant, product
from gpbench.core.mapping import select
from gpbench.core.vecchia import Neighbours, ResidualProcess
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.gradient import EvidenceMethod, GradientState
from gpbench.methods.parts.settings import NoiseMethod
from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod
from gpbench.schema import setting


class VIFParameters(eqx.Module):
    """Arguments of the evidence."""

    layer: SparseLayer
    likelihood: Gaussian

    def residual_process(self, X: Float[Array, "N D"]) -> tuple[Float[Array, "M M"], ResidualProcess]:
        """L⁻¹, and the residual process at the rows."""
        cov: Covariances = self.layer.covariances(X)
        A = inverse_cholesky(cov.zz)
        V = product(A, cov.zx)
        return A, ResidualProcess(self.layer.kernel, self.likelihood.noise, X, V, residual(cov, V))


class _VIFPosterior(eqx.Module):
    """State of predictions: L⁻¹, q(w), the residual process, the targets, and the rows' neighbours."""

    A: Float[Array, "M M"]
    q: Normal
    process: ResidualProcess
    y: Float[Array, " N"]
    neighbours: Neighbours


class _Round(eqx.Module):
    """A round of training: where it began, the evidence there with neighbours of its own, and the round's length."""

    start: VIFParameters
    evidence: Float[Array, ""]
    length: Int[Array, ""]
    remaining: Int[Array, ""]
    """Number of steps until the round ends."""
    horizon: Int[Array, ""]
    """Number of steps until training ends, which ends a round too: what a round gains is known at its end alone."""


class VIF(EvidenceMethod, SparseMethod, NoiseMethod):
    """Gaussian process regression by inducing points and neighbours (Gyger et al. 2025): `vif`.  The state has a matrix
    of N x M numbers."""

    label_fields: ClassVar[frozenset[str]] = frozenset({"inducing", "neighbours"})

    features: str = setting("values", ["values"], "Inducing features: values of f at the inducing points.")
    neighbours: int = setting(20, "whole", "Number of neighbours of a row, below the number of training rows.")

    @property
    def label(self) -> str:
        return f"{super().label}, k={self.neighbours}"

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> VIFParameters:
        fault = f"method.neighbours={self.neighbours}: there are {data.total} training rows: choose a number below"
        require(self.neighbours < data.total, fault, ConfigError)
        return VIFParameters(self.initial_layer(data, additive_noise=False, key=key), self.initial_noise(data.X))

    def init_extra(self, parameters: VIFParameters, data: Batch) -> _VIFPosterior:
        data = data.first(None)
        A, process = parameters.residual_process(data.X)
        q = unit_factor(len(A), A.dtype).posterior()
        return _VIFPosterior(A, q, process, data.y, self.nearest(process))

    def init_variables(self, parameters: VIFParameters, data: Batch) -> _Round:
        first = jnp.ones((), int)
        return _Round(parameters, jnp.asarray(-jnp.inf, data.X.dtype), first, first, jnp.asarray(self.steps))

    def nearest(self, process: ResidualProcess) -> Neighbours:
        """Neighbours of every row among those before it."""
        before = jnp.arange(len(process.X))
        return process.neighbours(self.neighbours, process.X, process.V, process.rest, before)

    def evidence(
        self, parameters: VIFParameters, data: Batch, neighbours: Neighbours | None = None
    ) -> tuple[Float[Array, ""], _VIFPosterior]:
        """log N(y | 0, VᵀV + S), and the posterior of w; `neighbours` are searched if None."""
        data = data.first(None)
        fixed = jax.lax.stop_gradient(parameters.layer.features)
        parameters = eqx.tree_at(lambda p: p.layer.features, parameters, fixed)
        A, process = parameters.residual_process(data.X)
        if neighbours is None:
            neighbours = jax.lax.stop_gradient(self.nearest(process))
        y, V, variance = process.independent(data.y, neighbours)
        factor = Natural(V.T @ V, V.T @ y)
        q = factor.posterior()
        value = -0.5 * jnp.sum(y**2 + jnp.log(2.0 * jnp.pi * variance))
        value += 0.5 * (q.mean @ factor.shift - log_determinant(q.root))
        posterior = _VIFPosterior(A, q, process, data.y, neighbours)
        return value + parameters.layer.log_prior(), posterior

    def evaluate(
        self, parameters: VIFParameters, extra: _VIFPosterior, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], VIFParameters, _VIFPosterior]:
        """The loss with the neighbours of the last evaluation."""

        def loss(parameters: VIFParameters) -> tuple[Float[Array, ""], _VIFPosterior]:
            value, posterior = self.evidence(parameters, batch, extra.neighbours)
            return -value, posterior

        (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        return value, gradient, new

    def objective(self, state: GradientState[VIFParameters], data: Batch) -> Float[Array, ""]:
        return self.evidence(state.parameters, data, state.optimiser.extra.neighbours)[0]

    def step(
        self, state: GradientState[VIFParameters], batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[GradientState[VIFParameters], Info]:
        """An iteration of L-BFGS; and where it is the last of a round, what follows from it."""
        old = state
        state, info = super().step(state, batch, key=key)
        remaining, horizon = state.variables.remaining - 1, state.variables.horizon - 1
        state = eqx.tree_at(lambda s: (s.variables.remaining, s.variables.horizon), state, (remaining, horizon))
        due = (remaining == 0) | state.optimiser.converged
        state = jax.lax.cond(due, lambda s: self.next_round(s, batch), lambda s: s, state)
        return select(self.converged(old), old, state), info

    def next_round(self, state: GradientState[VIFParameters], data: Batch) -> GradientState[VIFParameters]:
        """The state before a round from where this one ended; if the evidence has not risen, from where it began."""
        before: _Round = state.variables
        value, extra = self.evidence(state.parameters, data)
        rises = value - before.evidence > lbfgs.TOLERANCE * jnp.maximum(jnp.abs(value), 1.0)
        parameters = select(rises, state.parameters, before.start)
        extra = jax.lax.cond(rises, lambda: extra, lambda: self.evidence(before.start, data)[1])
        length = jnp.where(rises, 2 * before.length, before.length // 2)
        remaining = jnp.minimum(length + 1, before.horizon)  # L-BFGS's first step only evaluates
        variables = _Round(parameters, jnp.where(rises, value, before.evidence), length, remaining, before.horizon)
        return GradientState(parameters, lbfgs.start(parameters, extra), variables)

    def converged(self, state: GradientState[VIFParameters]) -> Bool[Array, ""]:
        """Whether no round of any length raises the evidence."""
        return state.variables.length == 0

    def marginals(self, state: GradientState[VIFParameters], X: Float[Array, "N D"]) -> MeanVariance:
        posterior: _VIFPosterior = state.optimiser.extra
        process, cov = posterior.process, state.parameters.layer.covariances(X)
        V = product(posterior.A, cov.zx)
        rest = residual(cov, V)
        near = process.neighbours(self.neighbours, X, V, rest)
        residual_mean, directions, variance = process.conditional(X, V, rest, near, posterior.y)
        mean, explained = posterior.q.project(directions.T)
        return residual_mean + mean, variance + explained
