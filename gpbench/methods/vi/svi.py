"""`svi`: scalable variational Gaussian processes for any likelihood.

Hensman, Fusi and Lawrence, UAI 2013; Hensman, Matthews and Ghahramani, AISTATS 2015; paper `sep`, section 3.  The bound
(its equation 8) is Σ E_q log p(yₙ|fₙ) - KL[q(w) || N(0, I)] with whitened inducing outputs u = L w, Kzz = L Lᵀ.
With more than two classes every class has a latent function of its own: one kernel and set of features, and a q each.

`tsvgp` is the tighter bound of Titsias, ICML 2025, for Gaussian noise σ²: with dₙ the variance of fₙ given u, the term
-dₙ/(2σ²) of E_q log p(yₙ|fₙ) becomes -½ log(1 + dₙ/σ²).
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.covariances import residual
from gpbench.core.gaussians import Natural, Normal, standard_normal, unit_factor
from gpbench.core.likelihoods import Gaussian, Likelihood, likelihood_spec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.natural_gradient import natural_gradient_step
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch
from gpbench.methods.gradient import GradientMethod, GradientState
from gpbench.methods.sparse_layer import SparseLayer, SparseMethod


class Parameters(eqx.Module):
    """What the bound is a function of.  With P > 1 latent functions the leaves of `q` have a leading axis P."""

    layer: SparseLayer
    likelihood: Likelihood
    q: Normal


class SVI(SparseMethod, GradientMethod):
    """Configuration of `svi`; see the module's docstring.

    With `optimiser=null`, which needs all rows in each step, L-BFGS moves everything.  An optimiser of optax's kind, on
    all rows or on minibatches, moves everything too, or with `natural_step` the hyper-parameters alone, beside a
    natural-gradient step of q.
    """

    natural_step: float | Literal["auto"] | None = eqx.field(static=True, kw_only=True, default=None)
    """γ of natural-gradient steps of q; "auto" is 1 under Gaussian noise, where that reaches the optimum, 0.3 under
    other likelihoods and 0.1 on minibatches, and comes after the step of the hyper-parameters; None leaves q to the
    optimiser."""
    likelihood: LikelihoodSpec = eqx.field(static=True, kw_only=True, default="auto", converter=likelihood_spec)
    """p(y|f): see `gpbench.core.likelihoods.likelihood_spec`; "auto" is gaussian, probit or softmax by the task."""
    conditional: Literal["prior", "scaled"] = eqx.field(static=True, kw_only=True, default="prior")
    """q(fₙ|u): "prior" is p(fₙ|u); "scaled" scales its variance by the optimal factor 1 / (1 + dₙ/σ²), which needs
    Gaussian noise (`tsvgp`)."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """Initial noise variance of the scaled targets, in regression."""
    noise_floor: float = eqx.field(static=True, kw_only=True, default=0.0)
    """The least noise variance that training may reach in regression, in units of the scaled targets' variance."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        if self.optimiser is None and self.natural_step is not None:
            raise ConfigError("method.natural_step needs a method.optimiser for the hyper-parameters, such as adam; or"
                              " set it to null")  # fmt: skip
        dtype = data.X.dtype
        noise = {"noise": self.target_noise, "floor": self.noise_floor}
        likelihood = self.likelihood.initial(data.task, data.classes, **noise, dtype=dtype)
        if self.conditional == "scaled" and not isinstance(likelihood, Gaussian):
            raise ConfigError(f"{self.name}: the tighter bound needs Gaussian noise, and the likelihood is"
                              f" {self.likelihood}: set method.conditional=prior, or use svi")  # fmt: skip
        layer = self.initial_layer(data, additive_noise=data.task != "regression", key=key)
        m, latents = layer.gram().shape[0], likelihood.latents()
        q = standard_normal(m, dtype)
        return Parameters(layer, likelihood, q if latents == 1 else _repeat(q, latents))

    def init_variables(self, parameters: Parameters, data: Batch) -> Natural | None:
        """With natural gradients, the factor q(w) / N(w | 0, I) of each latent function."""
        if self.natural_step is None:
            return None
        m, latents = parameters.q.mean.shape[-1], parameters.likelihood.latents()
        factor = unit_factor(m, data.X.dtype)
        return factor if latents == 1 else _repeat(factor, latents)

    def update(
        self, parameters: Parameters, variables: Natural | None, batch: Batch
    ) -> tuple[Parameters, Natural | None]:
        """A natural-gradient step of q of the size that the configuration gives, before the gradient step."""
        return (parameters, variables) if self.natural_step == "auto" else self._step_q(parameters, variables, batch)

    def refine(
        self, parameters: Parameters, variables: Natural | None, batch: Batch
    ) -> tuple[Parameters, Natural | None]:
        """With `natural_step="auto"` the natural-gradient step comes last, so that q fits the hyper-parameters."""
        return self._step_q(parameters, variables, batch) if self.natural_step == "auto" else (parameters, variables)

    def _step_q(
        self, parameters: Parameters, variables: Natural | None, batch: Batch
    ) -> tuple[Parameters, Natural | None]:
        """A natural-gradient step of q, where it has a factor (`init_variables`)."""
        if variables is None:
            return parameters, None
        mean, variance, V, _ = self._marginals(parameters, batch.X)
        weight = batch.scale * batch.weight

        likelihood = parameters.likelihood
        full_step = 1.0 if likelihood.conjugate else 0.3
        automatic = full_step if len(batch.y) >= batch.total else 0.1  # a batch must not replace what q knows of others
        size = automatic if isinstance(self.natural_step, str) else float(self.natural_step or 0.0)

        def factor_step(factor, mean, variance, expected):
            return natural_gradient_step(factor, expected, mean, variance, V, weight, size)

        if likelihood.latents() == 1:
            expected = lambda m, v: likelihood.expected_log_prob(m, v, batch.y)
            factor = factor_step(variables, mean, variance, expected)
            return eqx.tree_at(lambda p: p.q, parameters, factor.posterior()), factor

        def of_latent(p, factor):
            replace = lambda whole, column: whole.at[:, p].set(column)
            expected = lambda m, v: likelihood.expected_log_prob(replace(mean, m), replace(variance, v), batch.y)
            return factor_step(factor, mean[:, p], variance[:, p], expected)

        factor = jax.vmap(of_latent)(jnp.arange(likelihood.latents()), variables)
        return eqx.tree_at(lambda p: p.q, parameters, jax.vmap(Natural.posterior)(factor)), factor

    def trainable(self, parameters: Parameters):
        """With natural gradients the optimiser sees the hyper-parameters alone."""
        return parameters if self.natural_step is None else (parameters.layer, parameters.likelihood)

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        return -self.bound(parameters, batch), None

    def bound(self, parameters: Parameters, batch: Batch) -> Float[Array, ""]:
        """The lower bound on the log evidence, or an unbiased estimate of it from a minibatch, in nats.

        With a prior on the lengthscales its log density is added.
        """
        mean, variance, _, rest = self._marginals(parameters, batch.X)
        expected = parameters.likelihood.expected_log_prob(mean, variance, batch.y)
        if self.conditional == "scaled" and isinstance(parameters.likelihood, Gaussian):
            ratio = rest / parameters.likelihood.noise
            expected += 0.5 * (ratio - jnp.log1p(ratio))
        return batch.scale * jnp.sum(batch.weight * expected) - _kl(parameters) + parameters.layer.log_prior()

    def _marginals(self, parameters: Parameters, X: Float[Array, "N D"]):
        """q's mean and variance of f at X, each (N,) or (N, P) (paper `sep`, equation 9); the whitened features; d."""
        cov = parameters.layer.covariances(X)
        V = inverse_cholesky(cov.zz) @ cov.zx
        rest = residual(cov, V)
        if parameters.likelihood.latents() == 1:
            mean, variance = parameters.q.project(V)
            return mean, variance + rest, V, rest
        mean, variance = jax.vmap(lambda q: q.project(V), out_axes=1)(parameters.q)
        return mean, variance + rest[:, None], V, rest

    def objective(self, state: GradientState, data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)

    def predict(self, state: GradientState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        mean, variance, *_ = self._marginals(state.parameters, X)
        return state.parameters.likelihood.predictive(mean, variance)

    def kl(self, state: GradientState) -> Float[Array, ""] | None:
        is_regression = "regression" in state.parameters.likelihood.tasks
        return _kl(state.parameters) if is_regression else None

    def expected_log_prob(
        self, state: GradientState, X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"] | None:
        mean, variance, *_ = self._marginals(state.parameters, X)
        return state.parameters.likelihood.expected_log_prob(mean, variance, y)

    def arrays(self, state: GradientState) -> dict[str, Array]:
        return {"inducing": state.parameters.layer.features.Z}

    def diagnose(self, state: GradientState) -> str:
        return state.parameters.layer.diagnose()


def _kl(parameters: Parameters) -> Float[Array, ""]:
    """KL[q || prior], of all latent functions together."""
    if parameters.likelihood.latents() == 1:
        return parameters.q.kl()
    return jnp.sum(jax.vmap(Normal.kl)(parameters.q))


def _repeat(tree, count: int):
    """The same pytree `count` times, stacked."""
    return jax.tree.map(lambda leaf: jnp.tile(leaf, (count,) + (1,) * leaf.ndim), tree)
