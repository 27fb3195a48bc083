"""`sgpr_greedy`: the collapsed bound with inducing points chosen by conditional variance, which gradients never move.

Burt, Rasmussen and van der Wilk, JMLR 2020.  The points are training rows, chosen one by one (`core.greedy`) until the
variances that are left, t, cost less than `tolerance` nats, t/(2σ²), or there are `inducing` points.  L-BFGS then
moves the hyper-parameters alone to the largest bound of Titsias (2009).  At its end the rows are chosen again under
the new kernel, and training goes on from them where the bound is larger; where it is not, the old ones stay and
training has ended.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.features import SelectedPoints
from gpbench.core.gaussians import Natural, unit_factor
from gpbench.core.greedy import select_rows
from gpbench.core.mapping import select
from gpbench.methods.base import Batch, Info, inducing_count
from gpbench.methods.parts.collapsed import CollapsedMethod, CollapsedParameters, Optimum
from gpbench.methods.parts.gradient import GradientState
from gpbench.schema import setting

_NUMBER, _TOLERANCE, _ROUNDING = 0.0, 1.0, 2.0
"""Codes of the rule that ended a choice: all points were used, t was small enough, all variances were rounding."""


class _CertifiedOptimum(Optimum):
    """q, and what bounds the evidence from above."""

    factor: Natural
    """The targets' factor of q: VVᵀ/σ² and Vy/σ²."""
    rest: Float[Array, ""]
    """t, the sum of the conditional variances dₙ."""
    square: Float[Array, ""]
    """|y|²."""

    def fit(self, noise: Float[Array, ""], added: Float[Array, ""] | float = 0.0) -> Float[Array, ""]:
        """yᵀ(VᵀV + (σ² + added) I)⁻¹y, by the formula of Woodbury."""
        ratio = noise / (noise + added)
        factor = jax.tree.map(lambda leaf: ratio * leaf, self.factor)
        return ratio * self.square / noise - factor.posterior().mean @ factor.shift


class _Rounds(eqx.Module):
    """Progress of the outer loop."""

    count: Int[Array, ""]
    """Number of choices that were trained from."""
    rule: Float[Array, ""]
    """Code of the rule that ended the choice of the present points."""
    finished: Bool[Array, ""]
    """Whether the last choice did not raise the bound, or was the last that is allowed."""


class GreedySGPR(CollapsedMethod):
    """Sparse GP regression with greedily chosen inducing points (Burt et al. 2020): `sgpr_greedy`.  Hyper-parameters
    start as those of vsgpr with the same settings."""

    features: str = setting("values", ["values"], "Inducing features: values of f at training rows.")
    tolerance: float = setting(
        0.1, "nonnegative", "Loss t/(2σ²) in nats at which no more points are chosen; 0: always `inducing` points."
    )
    rounds: int = setting(10, "count", "Largest number of choices of points.")

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> CollapsedParameters:
        return self.choose(super().init_parameters(data, key=key), data)[0]

    def init_variables(self, parameters: CollapsedParameters, data: Batch) -> _Rounds:
        return _Rounds(jnp.ones((), int), self.choose(parameters, data)[1], jnp.zeros((), bool))

    def choose(self, parameters: CollapsedParameters, data: Batch) -> tuple[CollapsedParameters, Float[Array, ""]]:
        """The parameters with points chosen under their kernel, and the code of the rule that ended the choice."""
        data, layer, noise = data.first(self.rows), parameters.layer, parameters.likelihood.noise
        m, enough = inducing_count(self.inducing, data.total), 2.0 * noise * self.tolerance
        selection = select_rows(layer.kernel, data.X, m, weight=data.weight, enough=enough)
        mask = jnp.arange(m) < selection.count
        Z = data.X[jnp.where(mask, selection.index, selection.index[0])]
        features = SelectedPoints(Z, mask.astype(Z.dtype))
        rule = jnp.where(data.weight @ selection.rest <= enough, _TOLERANCE, _ROUNDING)
        rule = jnp.where(selection.count == m, _NUMBER, rule).astype(Z.dtype)
        return eqx.tree_at(lambda p: p.layer.features, parameters, features), rule

    def init_extra(self, parameters: CollapsedParameters, data: Batch) -> _CertifiedOptimum:
        optimum, zero = super().init_extra(parameters, data), jnp.zeros((), data.X.dtype)
        return _CertifiedOptimum(optimum.A, optimum.q, unit_factor(len(optimum.A), data.X.dtype), zero, zero)

    def evidence(self, parameters: CollapsedParameters, data: Batch) -> tuple[Float[Array, ""], Optimum]:
        fixed = jax.lax.stop_gradient(parameters.layer.features)
        return super().evidence(eqx.tree_at(lambda p: p.layer.features, parameters, fixed), data)

    def by_products(self, optimum: Optimum, factor: Natural, rest: Float[Array, " N"], data: Batch) -> Optimum:
        """With what bounds the evidence from above."""
        sums = data.weight @ rest, data.weight @ data.y**2
        return _CertifiedOptimum(optimum.A, optimum.q, factor, *sums)

    def step(
        self, state: GradientState[CollapsedParameters], batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[GradientState[CollapsedParameters], Info]:
        """An iteration of L-BFGS; and where it is the last one, another choice of points."""
        state, info = super().step(state, batch, key=key)
        last = state.optimiser.converged & (state.variables.count >= self.rounds)
        state = eqx.tree_at(lambda s: s.variables.finished, state, state.variables.finished | last)
        due = state.optimiser.converged & ~state.variables.finished
        return jax.lax.cond(due, lambda s: self.choose_again(s, batch, key), lambda s: s, state), info

    def choose_again(
        self, state: GradientState[CollapsedParameters], data: Batch, key: PRNGKeyArray
    ) -> GradientState[CollapsedParameters]:
        """The state at points chosen under the present kernel if the bound is larger there; else training has ended."""
        parameters, rule = self.choose(state.parameters, data)
        parameters, optimiser = self.restart(parameters, state.optimiser.extra, data, key=key)
        gain = state.optimiser.value - optimiser.value
        better = gain > lbfgs.TOLERANCE * jnp.maximum(jnp.abs(optimiser.value), 1.0)
        rounds = _Rounds(state.variables.count + 1, rule, jnp.zeros((), bool))
        old = eqx.tree_at(lambda s: s.variables.finished, state, jnp.ones((), bool))
        new = GradientState(parameters, optimiser, rounds)
        return select(better, new, old)

    def converged(self, state: GradientState[CollapsedParameters]) -> Bool[Array, ""]:
        """Whether no choice of points raises the bound any more, or `rounds` of them were trained from."""
        return state.variables.finished

    @eqx.filter_jit
    def diagnostics(self, state: GradientState[CollapsedParameters]) -> dict[str, Array]:
        """The number of points, the bounds on the evidence's distance, and how the choice of points ended.  `gap` is
        t/(2σ²) in nats: for targets from the model the evidence is that far above the bound on average at least, and
        twice that at most.  `evidence_upper` is an upper bound of the evidence at the same parameters, for any targets.
        `rounds` counts the choices; `rule` is 0 where the present one ended with `inducing` points, 1 at the
        `tolerance`, 2 where only rounding was left."""
        optimum: _CertifiedOptimum = state.optimiser.extra
        layer, noise = state.parameters.layer, state.parameters.likelihood.noise
        gap = 0.5 * optimum.rest / noise
        bound = -state.optimiser.value - layer.log_prior()
        upper = bound + gap + 0.5 * (optimum.fit(noise) - optimum.fit(noise, optimum.rest))
        rounds: _Rounds = state.variables
        assert isinstance(layer.features, SelectedPoints)
        selected = jnp.sum(layer.features.mask)
        return {"selected": selected, "gap": gap, "evidence_upper": upper, "rounds": rounds.count, "rule": rounds.rule}
