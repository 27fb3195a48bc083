"""`gam`: sparse variational additive Gaussian processes (Adam, Durrande and John 2018), for any likelihood.

The predictor is a constant plus zero-mean functions of one input or a few.  The bound is Σ E_q log p(yₙ|ρₙ) - KL, with
one of three posteriors of all components' inducing outputs: `gpbench.core.additive`.
"""

import itertools
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.additive import CoupledCovariance, Posterior, coupled_precision, mean_field
from gpbench.core.gaussians import Natural, unit_factor
from gpbench.core.kernels import Spec
from gpbench.core.mapping import sum_in_blocks
from gpbench.core.memory import require_memory
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, size_label
from gpbench.methods.parts.additive_layer import AdditiveLayer, effects_on_grids, initial_layer, shares
from gpbench.methods.parts.components import Component, check_distinct, components_spec, pairs_spec, zero_mean_base
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.parts.settings import PriorMethod
from gpbench.methods.parts.variational import VariationalMethod, VariationalParameters, repeat
from gpbench.schema import setting

_BLOCK = 125  # number of rows whose terms are summed at a time on a CPU: their features stay in its caches
_START_ROWS = 10_000  # maximum number of rows from which the posterior starts


class GAM(PriorMethod, VariationalMethod):
    """Sparse variational additive Gaussian processes (Adam, Durrande and John 2018): `gam`.  `VariationalMethod` says
    how it is optimised.  A natural-gradient step of any of the posteriors costs what one of coupled_covariance does:
    O(N T² + T³) for N rows and T inducing outputs.  Gradients of coupled_precision cost O(N T rank + T rank²)."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression", "count", "binary", "multiclass"})
    kernels: ClassVar[tuple[str, ...] | None] = (
        *("squared_exponential", "matern12", "matern32", "matern52"),
        *("rational_quadratic", "periodic", "sum", "product"),
    )

    posterior: str = setting(
        "coupled_precision",
        ["mean_field", "coupled_covariance", "coupled_precision"],
        "Form of q: independent components, their joint covariance, or the prior precision plus `rank` outer products.",
    )
    rank: int | None = setting(
        None, "count or null", "Number of outer products of coupled_precision; null: as many as inducing outputs."
    )
    components: tuple[Component, ...] | None = setting(
        None,
        "components",
        "Inputs of each component, as in [[0], [1], [0, 1]]; univariate: one for each input that varies.",
        converter=components_spec,
    )
    pairs: tuple[Component, ...] | str = setting(
        (),
        "pairs",
        "Interactions of two inputs beside `components`, as in [[0, 1], [2, 3]]; all: every pair of inputs that vary.",
        converter=pairs_spec,
    )
    kernel: Spec = setting(
        "squared_exponential",
        "kernel",
        "Covariance function of one input; its zero-mean forms, and products of them, are those of the components.",
        converter=zero_mean_base,
    )
    inducing: float | int = setting(
        16, "several rows", "Number of inducing points of each component, at most the training rows."
    )
    fixed_points: bool = setting(False, "flag", "Inducing points stay where they start; else they are learned.")

    @property
    def label(self) -> str:
        return size_label(self, f"m={self.inducing}")

    def components_of(self, X: Float[Array, "N D"]) -> tuple[Component, ...]:
        """All components for these rows; an input of one value has no effect, and so no component unless it is named.
        Raises ConfigError for two components of the same inputs, and where there is none."""
        varying = [int(i) for i in np.flatnonzero(np.ptp(np.asarray(X), axis=0))]
        components = self.components or tuple(Component((i,)) for i in varying)
        if not components:
            raise ConfigError("no input varies in the training rows, and so there is no component: use method=constant")
        every = tuple(map(Component, itertools.combinations(varying, 2)))
        components += every if isinstance(self.pairs, str) else self.pairs
        check_distinct(components)
        return components

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> VariationalParameters:
        if self.rank is not None and self.posterior != "coupled_precision":
            raise ConfigError(f"method.rank is for method.posterior=coupled_precision, not {self.posterior}: omit it")
        X, likelihood = data.X[: data.total], self.initial_likelihood(data)
        components = self.components_of(X)
        total = 1 + sum(int(component.inducing or self.inducing) for component in components)
        # The start and every natural-gradient step have three matrices of that size, and features of the rows
        numbers = 3 * total**2 + 2 * total * min(self.batch_size or len(X), len(X))
        require_memory(numbers * X.dtype.itemsize, f"{len(components):,} components with {total:,} inducing outputs")
        if self.rank is not None and not 1 <= self.rank <= total:
            raise ConfigError(f"method.rank={self.rank}: must be from 1 to {total}, the number of inducing outputs")
        start, fixed_points, m, unit = self.lengthscale_start, self.fixed_points, int(self.inducing), data.unit
        layer = initial_layer(X, components, self.kernel, m, start=start, fixed_points=fixed_points, unit=unit, key=key)
        layer, latents = replace(layer, lengthscale_prior=self.lengthscale_prior), likelihood.latents()
        q = repeat(_initial_posterior(self, layer, data, latents == 1), latents)
        return VariationalParameters(layer, likelihood, q)

    def bound(self, parameters: VariationalParameters, batch: Batch) -> Float[Array, ""]:
        """The bound.  On a CPU by blocks of rows, of at least as many as q has numbers for each output, so that a
        block's gradient in q is no larger than its features."""
        layer, q, size = parameters.layer, parameters.q, len(batch.y)
        if jax.default_backend() == "cpu" and jax.device_count() == 1:
            numbers = sum(leaf.size for leaf in jax.tree.leaves(q))
            size = max(_BLOCK, numbers // sum(count * m for count, m in layer.shapes))
        prepared = q.prepared() if parameters.likelihood.latents() == 1 else jax.vmap(type(q).prepared)(q)

        def sum_terms(shared: Any, block: Any) -> Any:
            (parameters, factors), (rows, weight) = shared, block
            V, rest = parameters.layer.whitened(rows.X, factors)
            return weight @ self.terms(parameters, V, rest, rows)

        shared = replace(parameters, q=prepared), layer.factors()
        total = sum_in_blocks(sum_terms, shared, replace(batch, unit=None), batch.weight, size)
        return batch.scale * total + self.prior_term(parameters, layer.log_prior())

    def times_prior(self, factor: Natural, layer: AdditiveLayer) -> Posterior:
        match self.posterior:
            case "mean_field":
                return mean_field(factor, layer.shapes)
            case "coupled_covariance":
                return CoupledCovariance(factor.posterior())
            case _:
                return coupled_precision(factor, self.rank or len(factor.shift))

    def latents(self, state: GradientState[VariationalParameters], X: Float[Array, "N D"]) -> dict[str, Array]:
        """Posterior means and variances of the components' effects at X, each (N, C); of one latent function alone."""
        if state.parameters.likelihood.latents() > 1:
            return {}
        means, variances = state.parameters.layer.effects(X, *state.parameters.q.moments())
        return {"effects": means, "effect_variances": variances}

    def effects(self, state: GradientState[VariationalParameters]) -> dict[str, Array]:
        """Effects on grids (`effects_on_grids`), and `shares` of the variance (K, C); of one latent function alone."""
        p = state.parameters
        if p.likelihood.latents() > 1:
            return {}
        key = jax.random.key(0)
        grids = [effects_on_grids(p.layer, p.q, size, key=key) for size in (1, 2)]
        return grids[0] | grids[1] | {"shares": shares(p.layer, p.q, key=key)}


@eqx.filter_jit
def _initial_posterior(method: GAM, layer: AdditiveLayer, data: Batch, single: bool = True) -> Posterior:
    """The posterior that training starts from, compiled once for all data of one shape.  Natural gradients start from
    the prior.  Otherwise it is the posterior under Gaussian noise of at most `_START_ROWS` rows: in regression with a
    `single` latent function the optimum for these rows and the initial hyper-parameters; else its mean is 0."""
    n = min(_START_ROWS, data.total)
    V, _ = layer.whitened(data.X[:n])
    weighted = data.weight[:n] * V
    if method.natural_step is not None:
        return method.times_prior(unit_factor(len(V), V.dtype), layer)
    regression = data.task == "regression" and single
    scale = data.total / n / (method.target_noise if regression else 4.0)
    shift = weighted @ data.y[:n] if regression else jnp.zeros(len(V), V.dtype)
    return method.times_prior(Natural(scale * weighted @ V.T, scale * shift), layer)
