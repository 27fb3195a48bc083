"""`sgld`: samples of a neural network's weights by stochastic gradient Langevin dynamics.

Welling and Teh (ICML 2011), as in the paper `aep_dgp` (section 8.2): a normal prior of the weights, here N(0, 1), a
noise variance softplus(κ) with a broad normal prior on κ, and a step size for each of the two.  Samples have equal
weights.  Step t, from 0, is

    θ ← θ + ½ ε_t ∇ log p(θ, data) + √ε_t N(0, I),    ε_t = ε (1 + t / b)^-γ,

the paper's ε_t = a (b + t)^-γ with a = ε b^γ; the gradient is a minibatch's estimate.  As the curvature of log p grows
with the N rows, the step sizes are configured as N ε: one value then serves data sets of all sizes.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood
from gpbench.core.networks import Network, log_standard_normal
from gpbench.core.predictive import Predictive
from gpbench.core.samplers import Samples, Schedule, blackjax, mixture, schedule
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import NetworkMethod
from gpbench.schema import setting

_KAPPA_STD = 10.0  # standard deviation of κ's prior: noise variances from 1e-9 to 20 are within two standard deviations


class _SgldPosition(eqx.Module):
    """Position that is sampled: the network, and in `kappa` κ in place of each parameter of the likelihood.
    Likelihoods have the logarithms of positive parameters, such as the noise above its floor; these are softplus(κ)."""

    network: Network
    kappa: Likelihood

    @property
    def likelihood(self) -> Likelihood:
        return jax.tree.map(lambda kappa: jnp.log(jax.nn.softplus(kappa)), self.kappa)


class _SgldState(eqx.Module):
    """The position, the positions kept, the number of steps taken, and N ε for the weights and for κ."""

    position: _SgldPosition
    samples: Samples
    count: Int[Array, ""]
    step_size: Float[Array, ""]
    noise_step_size: Float[Array, ""]


class SGLD(NetworkMethod):
    """A Bayesian neural network by stochastic gradient Langevin dynamics (Welling and Teh 2011): `sgld`."""

    searchable: ClassVar[tuple[str, ...]] = ("step_size", "noise_step_size")
    carries_over: ClassVar[bool] = True

    step_size: float = setting(
        0.3, "positive", "Step size N ε of the weights: half of ε times the gradient, and noise of variance ε."
    )
    noise_step_size: float = setting(
        0.3, "nonnegative", "Step size N ε of the likelihood's parameters; 0: they keep their initial values."
    )
    cooling: float = setting(0.55, "share", "Exponent γ of the step sizes' decay; 0: constant step sizes.")
    cooling_start: float = setting(1000.0, "positive", "Offset b of the step sizes' decay, in steps.")
    burn_in: float = setting(0.5, "share", "Fraction of the steps before the first sample.")
    thinning: int | None = setting(
        None,
        "count or null",
        "Number of steps from sample to sample; null: samples are spread evenly over the steps after the burn-in.",
    )
    samples: int = setting(100, "count", "Number of networks kept, the last ones, and averaged in a prediction.")

    @property
    def schedule(self) -> Schedule:
        """Schedule of the states that are kept.  Raises ConfigError where none is."""
        return schedule(self.steps, self.samples, burn_in=self.burn_in, thinning=self.thinning)

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _SgldState:
        blackjax(self.name)  # fails early where it is not installed
        likelihood = self.initial_likelihood(data)
        kappa = jax.tree.map(lambda log_value: jnp.log(jnp.expm1(jnp.exp(log_value))), likelihood)
        position = _SgldPosition(self.initial_network(data, likelihood.latents(), key=key), kappa)
        sizes = (jnp.asarray(size, data.X.dtype) for size in (self.step_size, self.noise_step_size))
        return _SgldState(position, Samples.empty(position, self.schedule.size), jnp.asarray(0), *sizes)

    def with_settings(self, state: _SgldState, settings: Mapping[str, float]) -> _SgldState:
        """An initial state with another `step_size` or `noise_step_size`."""
        values = self.settings(state)
        sizes = {**values, **{name: jnp.full_like(values[name], value) for name, value in settings.items()}}
        return eqx.tree_at(lambda s: (s.step_size, s.noise_step_size), state, tuple(sizes.values()))

    def settings(self, state: _SgldState) -> dict[str, Array]:
        return {"step_size": state.step_size, "noise_step_size": state.noise_step_size}

    def log_joint(self, position: _SgldPosition, batch: Batch) -> Float[Array, ""]:
        """log p(y, θ, κ), or an unbiased estimate of it from a minibatch."""
        each = position.likelihood.log_prob(position.network(batch.X), batch.y)
        kappas = jax.tree.leaves(position.kappa)
        prior = log_standard_normal(position.network) + sum(norm.logpdf(kappa, 0.0, _KAPPA_STD) for kappa in kappas)
        return batch.sum(each) + prior

    def step(self, state: _SgldState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_SgldState, Info]:
        value, gradient = jax.value_and_grad(self.log_joint)(state.position, batch)
        cooled = (1.0 + state.count.astype(value.dtype) / self.cooling_start) ** -self.cooling / batch.total
        sampler = blackjax(self.name).sgld(lambda _, gradient: gradient)

        @jax.named_scope("needs_float64")  # blackjax's noise, whatever the precision of the position
        def move(block: Any, slope: Any, size: Any, key: PRNGKeyArray) -> Any:
            # Its step is half of ε: θ + s ∇ + √(2s) N(0, I)
            moved = sampler.step(key, block, slope, 0.5 * size * cooled)
            return jax.tree.map(lambda new, old: new.astype(old.dtype), moved, block)

        old, keys = state.position, jax.random.split(key)
        network = move(old.network, gradient.network, state.step_size, keys[0])
        kappa = move(old.kappa, gradient.kappa, state.noise_step_size, keys[1])
        position, count = _SgldPosition(network, kappa), state.count + 1
        samples = state.samples.extend(position, self.schedule.keeps(count))
        return _SgldState(position, samples, count, state.step_size, state.noise_step_size), Info(value)

    def predict(self, state: _SgldState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        positions = state.samples.or_current(state.position)
        return mixture(lambda position: self.density(position, X), positions, state.samples.log_weights(X.dtype))
