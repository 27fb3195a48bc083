"""`svi`: scalable variational Gaussian processes, for two-class classification (probit) and for regression.

Hensman, Fusi and Lawrence, UAI 2013; Hensman, Matthews and Ghahramani, AISTATS 2015; paper `sep`, section 3.  The bound
(its equation 8) is Σ E_q log p(yₙ|fₙ) - KL[q(w) || N(0, I)] with whitened inducing outputs u = L w, Kzz = L Lᵀ.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.gaussians import Normal, standard
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.observations import Noise, likelihood
from gpbench.core.optimisers import with_rate
from gpbench.core.predictive import Bernoulli, Gaussian, Laplace
from gpbench.core.sites import matched
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info
from gpbench.methods.sep_energy import Sums, posterior, site_sums
from gpbench.methods.sparse import Hyper, SparseMethod, covariances, noiseless, residual


class Parameters(eqx.Module):
    """What the bound is a function of.  `hyper.log_noise` is of the additive noise, or in regression of y about f."""

    hyper: Hyper
    q: Normal


class State(eqx.Module):
    """Parameters; with natural gradients also q's natural parameters, less those of the prior."""

    parameters: Parameters
    natural: Sums | None
    optimiser: lbfgs.State | optax.OptState
    regression: bool = eqx.field(static=True)

    @property
    def hyper(self) -> Hyper:
        return self.parameters.hyper


class SVI(SparseMethod):
    """Configuration of `svi`; see the module's docstring.

    All rows in each step: L-BFGS moves everything (`optimiser=null`).  Minibatches: an optimiser of optax's kind moves
    everything, or with `natural_step` the hyper-parameters alone, after a natural-gradient step of q.
    """

    tasks = frozenset({"binary", "regression"})

    optimiser: optax.GradientTransformation | None = eqx.field(static=True, kw_only=True, default=None)
    """Minimises minus the bound; None is L-BFGS."""
    natural_step: float | None = eqx.field(static=True, kw_only=True, default=None)
    """γ of natural-gradient steps of q; None leaves q to the optimiser."""
    nodes: int = eqx.field(static=True, kw_only=True, default=20)
    """Gauss-Hermite nodes for E log Φ."""
    likelihood: Noise = eqx.field(static=True, kw_only=True, default="gaussian")
    """Of a regression's targets; labels have the probit."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """First noise variance of the scaled targets, in regression."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        if self.optimiser is None and self.batch_size is not None and self.batch_size < data.total:
            raise ConfigError("L-BFGS needs all rows in each step: leave method.batch_size=null or choose a"
                              " method.optimiser, as method=svi_minibatch does")  # fmt: skip
        if self.optimiser is None and self.natural_step is not None:
            raise ConfigError("method.natural_step needs a method.optimiser for the hyper-parameters, such as adam")
        regression = data.classes == 0
        hyper = self.first_hyper(data, noise=self.target_noise if regression else self.noise, key=key)
        m, dtype = len(hyper.Z), data.X.dtype
        parameters = Parameters(hyper, standard(m, dtype))
        if self.optimiser is None:
            return State(parameters, None, lbfgs.start(parameters), regression)
        if self.natural_step is None:
            return State(parameters, None, self.optimiser.init(parameters), regression)
        natural = Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))
        return State(parameters, natural, self.optimiser.init(hyper), regression)

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """One iteration.  L-BFGS's first only evaluates, and it reports the bound where it ends, not where it began."""

        def minus_bound(parameters):
            return -self.bound(parameters, batch)

        def evaluate(parameters, _):
            value, gradient = jax.value_and_grad(minus_bound)(parameters)
            return value, Parameters(self.tied(gradient.hyper), gradient.q), None

        parameters, natural = state.parameters, state.natural
        if self.optimiser is None:
            parameters, optimiser = lbfgs.step(evaluate, parameters, state.optimiser)
            return State(parameters, None, optimiser, state.regression), Info(-optimiser.value)
        if natural is not None:
            natural = self.natural_gradient(parameters, natural, batch)
            parameters = Parameters(parameters.hyper, normal(natural))
        value, gradient, _ = evaluate(parameters, None)
        # With natural gradients the optimiser sees the hyper-parameters alone.
        moves = (lambda p: p) if natural is None else (lambda p: p.hyper)
        updates, optimiser = self.optimiser.update(moves(gradient), state.optimiser, moves(parameters))
        parameters = eqx.tree_at(moves, parameters, optax.apply_updates(moves(parameters), updates))
        return State(parameters, natural, optimiser, state.regression), Info(-value)

    def tried(self, state: State, rate: float) -> State:
        return eqx.tree_at(lambda s: s.optimiser, state, with_rate(state.optimiser, rate))

    def bound(self, parameters: Parameters, batch: Batch) -> Float[Array, ""]:
        """The lower bound on the log evidence, or an unbiased estimate of it from a minibatch."""
        mean, variance, _ = self._marginals(parameters, batch.X, batch.classes == 0)
        expected = self._expected_log(parameters.hyper, batch, mean, variance)
        return batch.scale * jnp.sum(batch.weight * expected) - parameters.q.kl_from_standard()

    def natural_gradient(self, parameters: Parameters, natural: Sums, batch: Batch) -> Sums:
        """q's natural parameters after a step of size γ (Hensman et al. 2013, section 3.2).

        The gradient in q's expectation parameters is that of one site per point, with slope dE/dm and curvature
        -2 dE/dv of the expected log likelihood: the site update of EP without a cavity variance.
        """
        mean, variance, V = self._marginals(parameters, batch.X, batch.classes == 0)

        def total(mean, variance):
            return jnp.sum(self._expected_log(parameters.hyper, batch, mean, variance))

        slope, half = jax.grad(total, argnums=(0, 1))(mean, variance)
        sites = matched(mean, jnp.zeros_like(mean), slope, -2.0 * half)
        new = site_sums(V, jax.tree.map(lambda s: batch.scale * batch.weight * s, sites))
        gamma = self.natural_step or 0.0
        return jax.tree.map(lambda a, b: gamma * a + (1.0 - gamma) * b, new, natural)

    def _expected_log(self, hyper: Hyper, batch: Batch, mean, variance) -> Float[Array, " B"]:
        of_y = likelihood(batch.classes == 0, self.likelihood, self.nodes)
        return of_y.expected_log(batch.y, mean, variance, jnp.exp(hyper.log_noise))

    def _marginals(self, parameters: Parameters, X: Float[Array, "N D"], regression: bool):
        """q's mean and variance of f at X (paper `sep`, equation 9), and the whitened features V."""
        hyper = parameters.hyper
        cov = noiseless(hyper, X) if regression else covariances(hyper, X, self.noise_on_inducing)
        V = inverse_cholesky(cov.zz) @ cov.zx
        mean, variance = parameters.q.along(V)
        return mean, variance + residual(cov, V), V

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)

    def predict(self, state: State, X: Float[Array, "N D"]) -> Bernoulli | Gaussian | Laplace:
        mean, variance, _ = self._marginals(state.parameters, X, state.regression)
        of_y = likelihood(state.regression, self.likelihood, self.nodes)
        return of_y.predictive(mean, variance, jnp.exp(state.hyper.log_noise))

    def divergence(self, state: State) -> Float[Array, ""] | None:
        return state.parameters.q.kl_from_standard() if state.regression else None

    def diagnose(self, state: State) -> str:
        return self.describe(state.hyper)


def normal(natural: Sums) -> Normal:
    """q(w) from its natural parameters: precision I + P and precision-times-mean."""
    q = posterior(jnp.eye(len(natural.shift), dtype=natural.shift.dtype), natural)
    return Normal(q.mu, q.R)
