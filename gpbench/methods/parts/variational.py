"""Methods with a variational bound: a layer, a likelihood, and a posterior q(w) of the layer's whitened outputs.  The
bound is Σ E_q log p(yₙ|fₙ) - KL[q(w) || N(0, I)] (Hensman, Matthews and Ghahramani, AISTATS 2015; paper `sep`, equation
8), with fₙ = Vₙᵀw + independent rest."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Natural, unit_factor
from gpbench.core.likelihoods import Likelihood
from gpbench.core.natural_gradient import natural_gradient_step
from gpbench.core.quadrature import PerRow
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Batch
from gpbench.methods.parts.gradient import GradientState, MarginalMethod
from gpbench.methods.parts.settings import LikelihoodMethod
from gpbench.schema import setting

Latent = Float[Array, "N ..."]
"""A number of each row, or (N, P) of each latent function too."""


class Layer(Protocol):
    """The prior of f, as its whitened outputs w ~ N(0, I) see it."""

    def whitened(self, X: Float[Array, "N D"]) -> tuple[Float[Array, "M N"], Float[Array, " N"]]:
        """V with f = Vᵀw + independent rest at X, and the variance of that rest."""

    def log_prior(self) -> Float[Array, ""]:
        """The log density of the hyper-parameters under their prior; 0 without one."""

    def diagnose(self) -> str:
        """Find the reason why a factorisation fails with these parameters; "" where none does."""


class VariationalParameters(eqx.Module):
    """Arguments of the bound.  With P > 1 latent functions the leaves of `q` have a leading axis P.  `q` has
    `project(V)`, mean and variance (N,) of Vᵀw, and `kl()` from N(0, I): `core.gaussians.Normal`, or one of
    `core.additive`.  `beta` is the weight of that divergence, which training leaves as it is; None for 1."""

    layer: Any
    likelihood: Likelihood
    q: Any
    beta: Float[Array, ""] | None = None


class VariationalMethod(LikelihoodMethod, MarginalMethod):
    """A method that maximises the module's bound.  With `optimiser=null`, which needs all rows in each step, L-BFGS
    moves everything.  An optimiser of optax's kind, on all rows or on minibatches, moves everything too, or with
    `natural_step` the hyper-parameters alone, beside a natural-gradient step of q."""

    sample_weights: ClassVar[bool] = True
    exposures: ClassVar[bool] = True

    natural_step: float | str | None = setting(
        None,
        "fraction or auto or null",
        "Size of natural-gradient steps of q, before each step of the optimiser; auto: on all rows after it, 1, or 0.3 "
        "without Gaussian noise, on minibatches half their share of that, at least 0.1; null: the optimiser moves q.",
    )

    def initial_likelihood(self, data: Batch) -> Likelihood:
        """The likelihood with its initial parameters.  Raises ConfigError where it does not fit the task, or where
        nothing would move the hyper-parameters."""
        moves = self.optimiser is not None or self.natural_step is None
        fault = "needs a method.optimiser for the hyper-parameters, such as adam; or set it to null"
        require(moves, f"method.natural_step {fault}", ConfigError)
        return super().initial_likelihood(data)

    def times_prior(self, factor: Natural, layer: Any) -> Any:
        """The q of one latent function: of the method's form, the closest to the factor times N(0, I)."""
        return factor.posterior()

    def row_terms(self, likelihood: Likelihood, mean: Latent, variance: Latent, rest: PerRow, y: PerRow) -> PerRow:
        """The term of each row in the bound, in nats: here E_q log p(yₙ|fₙ).  `rest` is the variance of f given w."""
        return likelihood.expected_log_prob(mean, variance, y)

    def loss(
        self, parameters: VariationalParameters, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], None]:
        return -self.bound(parameters, batch), None

    def bound(self, parameters: VariationalParameters, batch: Batch) -> Float[Array, ""]:
        """The lower bound on the log evidence, or an unbiased estimate of it from a minibatch, in nats.  With a prior
        on the hyper-parameters its log density is added."""
        layer: Layer = parameters.layer
        return self._bound(parameters, *layer.whitened(batch.X), layer.log_prior(), batch)

    def _bound(
        self,
        parameters: VariationalParameters,
        V: Float[Array, "M N"],
        rest: Float[Array, " N"],
        log_prior: Float[Array, ""],
        batch: Batch,
    ) -> Float[Array, ""]:
        """The bound, with what the layer contributes to it."""
        return batch.sum(self.terms(parameters, V, rest, batch)) + self.prior_term(parameters, log_prior)

    def terms(
        self, parameters: VariationalParameters, V: Float[Array, "M N"], rest: Float[Array, " N"], batch: Batch
    ) -> PerRow:
        """The term of each row."""
        mean, variance = _output(parameters, V, rest)
        return self.row_terms(parameters.likelihood, batch.shifted(mean), variance, rest, batch.y)

    def prior_term(self, parameters: VariationalParameters, log_prior: Float[Array, ""]) -> Float[Array, ""]:
        """What the bound has beside the terms of rows."""
        kl = kl_of(parameters)
        if parameters.beta is not None:
            kl = jax.lax.stop_gradient(parameters.beta) * kl
        return log_prior - kl

    def objective(self, state: GradientState[VariationalParameters], data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)

    def marginals(
        self, state: GradientState[VariationalParameters], X: Float[Array, "N D"]
    ) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        return _output(state.parameters, *state.parameters.layer.whitened(X))

    def kl(self, state: GradientState[VariationalParameters]) -> Float[Array, ""] | None:
        """KL[q || prior] in regression, for the metric `vlb`; None for other targets."""
        is_regression = "regression" in state.parameters.likelihood.tasks
        return kl_of(state.parameters) if is_regression else None

    def diagnose(self, state: GradientState[VariationalParameters]) -> str:
        layer: Layer = state.parameters.layer
        return layer.diagnose()

    def init_variables(self, parameters: VariationalParameters, data: Batch) -> Natural | None:
        """The factor q(w) / N(w | 0, I) of each latent function for natural gradients; None without them."""
        if self.natural_step is None:
            return None
        m = jax.eval_shape(lambda X: parameters.layer.whitened(X)[0], data.X[:1]).shape[0]
        return repeat(unit_factor(m, data.X.dtype), parameters.likelihood.latents())

    def update_and_evaluate(
        self, parameters: VariationalParameters, variables: Natural | None, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[VariationalParameters, Natural | None, Float[Array, ""], VariationalParameters]:
        """A natural-gradient step of q of the configured size, then the loss; Kzz is factorised once for both."""
        if variables is None or self._is_later(batch):
            return super().update_and_evaluate(parameters, variables, batch, key=key)
        prior = lambda layer: (*layer.whitened(batch.X), layer.log_prior())
        (V, rest, log_prior), pull_back = jax.vjp(prior, parameters.layer)
        parameters, factor = self._step_q(parameters, variables, batch, V, rest)

        def loss(likelihood: Likelihood, V: Array, rest: Array, log_prior: Array) -> Array:
            return -self._bound(eqx.tree_at(lambda p: p.likelihood, parameters, likelihood), V, rest, log_prior, batch)

        evaluate = jax.value_and_grad(loss, argnums=(0, 1, 2, 3))
        value, (likelihood_bar, *bars) = evaluate(parameters.likelihood, V, rest, log_prior)
        (layer_bar,) = pull_back(tuple(bars))
        return parameters, factor, value, VariationalParameters(layer_bar, likelihood_bar, None)

    def refine(
        self, parameters: VariationalParameters, variables: Natural | None, batch: Batch
    ) -> tuple[VariationalParameters, Natural | None]:
        """A natural-gradient step of q after the gradient step, where it is due there: q fits its result."""
        if variables is None or not self._is_later(batch):
            return parameters, variables
        return self._step_q(parameters, variables, batch, *parameters.layer.whitened(batch.X))

    def _is_later(self, batch: Batch) -> bool:
        """Whether q moves after the gradient step: with `natural_step="auto"` on all rows."""
        return self.natural_step == "auto" and len(batch.y) >= batch.total

    def _step_q(
        self,
        parameters: VariationalParameters,
        variables: Natural,
        batch: Batch,
        V: Float[Array, "M N"],
        rest: Float[Array, " N"],
    ) -> tuple[VariationalParameters, Natural]:
        """Parameters and factors after a natural-gradient step of q."""
        mean, variance = _output(parameters, V, rest)
        weight, likelihood = batch.scale * batch.weight, parameters.likelihood
        full_step = 1.0 if likelihood.conjugate else 0.3
        share = len(batch.y) / batch.total  # a batch must not displace the others in q
        automatic = full_step if share >= 1.0 else max(0.1, 0.5 * share * full_step)
        size = self.natural_step if isinstance(self.natural_step, int | float) else automatic

        def factor_step(factor: Any, mean: Any, variance: Any, expected: Any) -> Any:
            log_concave = likelihood.log_concave
            return natural_gradient_step(factor, expected, mean, variance, V, weight, size, log_concave=log_concave)

        if likelihood.latents() == 1:
            expected = lambda m, v: likelihood.expected_log_prob(batch.shifted(m), v, batch.y)
            factor = factor_step(variables, mean, variance, expected)
            return eqx.tree_at(lambda p: p.q, parameters, self.times_prior(factor, parameters.layer)), factor

        def of_latent(p: Any, factor: Any) -> Any:
            replace: Callable[[Any, Any], Array] = lambda whole, column: whole.at[:, p].set(column)
            expected = lambda m, v: likelihood.expected_log_prob(replace(mean, m), replace(variance, v), batch.y)
            return factor_step(factor, mean[:, p], variance[:, p], expected)

        factor = jax.vmap(of_latent)(jnp.arange(likelihood.latents()), variables)
        q = jax.vmap(lambda factor: self.times_prior(factor, parameters.layer))(factor)
        return eqx.tree_at(lambda p: p.q, parameters, q), factor

    def trainable(self, parameters: VariationalParameters) -> Any:
        """The parameters of the optimiser: all, or the hyper-parameters alone where natural gradients move q."""
        return parameters if self.natural_step is None else (parameters.layer, parameters.likelihood)


def _output(
    parameters: VariationalParameters, V: Float[Array, "M N"], rest: Float[Array, " N"]
) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
    """q's mean and variance of f, each (N,) or (N, P) (paper `sep`, equation 9)."""
    if parameters.likelihood.latents() == 1:
        mean, variance = parameters.q.project(V)
        return mean, variance + rest
    mean, variance = jax.vmap(lambda q: q.project(V), out_axes=1)(parameters.q)
    return mean, variance + rest[:, None]


def kl_of(parameters: VariationalParameters) -> Float[Array, ""]:
    """KL[q || prior] in nats, of all latent functions together."""
    of_one: Callable[[Any], Array] = lambda q: q.kl()
    return of_one(parameters.q) if parameters.likelihood.latents() == 1 else jnp.sum(jax.vmap(of_one)(parameters.q))


def repeat(tree: Any, count: int) -> Any:
    """Stack `count` copies of a pytree; without a new axis where `count` is 1."""
    return tree if count == 1 else jax.tree.map(lambda leaf: jnp.tile(leaf, (count,) + (1,) * leaf.ndim), tree)
