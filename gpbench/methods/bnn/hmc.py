"""`hmc`: samples of a neural network's weights by Hamiltonian Monte Carlo, in chains that run side by side.

As in the paper `aep_dgp` (section 8.2) weights have a normal prior, whose variance, here one for each layer, has a
broad inverse gamma prior, and the noise variance an inverse gamma prior; both are sampled as logarithms.  The paper
chose the number of leapfrog steps and their size by Bayesian optimisation; here the no-U-turn sampler (Hoffman and
Gelman, JMLR 2014) sets the number, and the warm-up their size and a diagonal mass matrix.  `init` is the warm-up, and a
step is one transition of every chain.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood
from gpbench.core.mapping import map_members
from gpbench.core.networks import Network
from gpbench.core.samplers import Adaptation, NoUTurn, Samples, blackjax
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import ChainMethod, no_samples
from gpbench.schema import setting


class _HmcPosition(eqx.Module):
    """Position that is sampled: the network, the logarithms of its layers' prior variances, and the likelihood."""

    network: Network
    log_variances: Float[Array, " L"]
    likelihood: Likelihood


class _HmcState(eqx.Module):
    """The chains, with a leading axis C: position, step size and mass matrix, divergences so far."""

    position: _HmcPosition
    adaptation: Adaptation
    divergences: Int[Array, " C"]
    samples: Samples
    count: Int[Array, ""]


class HMC(ChainMethod):
    """A Bayesian neural network by the no-U-turn sampler (Hoffman and Gelman 2014): `hmc`."""

    sample_weights: ClassVar[bool] = True

    chains: int = setting(4, "count", "Number of chains, each from an initial network of its own.")
    warmup: int = setting(
        500,
        "count",
        "Number of transitions of every chain that adapt its step size and mass matrix, before the first step.",
    )
    max_doublings: int = setting(
        8, "count", "Base-2 logarithm of the largest number of leapfrog steps in a transition."
    )
    prior_shape: float = setting(
        1.0,
        "positive",
        "Shape of the inverse gamma priors of the weights' prior variances and of the likelihood's parameters, "
        "around their initial values.",
    )

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _HmcState:
        blackjax(self.name)  # fails early where it is not installed
        self.initial_likelihood(data)  # raises ConfigError where it does not fit
        return warm_up(self, data, self.schedule.size, key=key)

    def sampler(self, data: Batch) -> NoUTurn:
        """The transitions of one chain."""
        return NoUTurn(lambda position: self.log_joint(position, data), self.max_doublings, self.name)

    def initial_position(self, data: Batch, *, key: PRNGKeyArray) -> _HmcPosition:
        """Initial position of a chain: prior variances 1, noise `target_noise`."""
        likelihood = self.initial_likelihood(data)
        network = self.initial_network(data, likelihood.latents(), key=key)
        return _HmcPosition(network, jnp.zeros(len(network.layers), data.X.dtype), likelihood)

    def log_joint(self, position: _HmcPosition, data: Batch) -> Float[Array, ""]:
        """log p(y, θ, log v, log noise): the density of the logarithms, with their Jacobians."""
        each = position.likelihood.log_prob(position.network(data.X), data.y)
        total = jnp.sum(data.weight * each)
        for layer, log_v in zip(position.network.layers, position.log_variances):
            for array in (layer.weight, layer.bias):
                total += jnp.sum(norm.logpdf(array, 0.0, jnp.exp(0.5 * log_v)))

        def hyper(log_value: Any, centre: Any) -> Array:
            return log_inverse_gamma(log_value, self.prior_shape, self.prior_shape * centre)

        total += jnp.sum(hyper(position.log_variances, 1.0))
        logs = zip(jax.tree.leaves(position.likelihood), jax.tree.leaves(self.initial_likelihood(data)))
        densities: list[Any] = [hyper(log_value, jnp.exp(initial)) for log_value, initial in logs]
        return total + sum(densities)

    def step(self, state: _HmcState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_HmcState, Info]:
        """One transition of every chain; the objective is `mean_log_joint`."""
        transition = lambda key, *chain: self.sampler(batch).step(*chain, key=key)
        end = map_members(transition, jax.random.split(key, self.chains), state.position, state.adaptation)
        divergences = state.divergences + end.is_divergent
        samples = self.extend(state, end.position, end.log_density, batch)
        objective = self.mean_log_joint(end.initial_log_density, divergences)
        return _HmcState(end.position, state.adaptation, divergences, samples, state.count + 1), Info(objective)


def log_inverse_gamma(log_value: Float[Array, "..."], shape: float, scale: Any) -> Float[Array, "..."]:
    """The log density of log v, where v has the inverse gamma distribution with this shape and scale."""
    # log v^(-a-1) + log v, the second the Jacobian's
    return shape * jnp.log(scale) - gammaln(shape) - shape * log_value - scale * jnp.exp(-log_value)


@eqx.filter_jit
def warm_up(method: HMC, data: Batch, size: int, *, key: PRNGKeyArray) -> _HmcState:
    """The state after the warm-up, with room for `size` samples; compiled once for all data of one shape."""

    def adapt(key: PRNGKeyArray) -> Any:
        start_key, run_key = jax.random.split(key)
        return method.sampler(data).warm_up(method.initial_position(data, key=start_key), method.warmup, key=run_key)

    position, adaptation = map_members(adapt, jax.random.split(key, method.chains))
    log_joints = jax.vmap(lambda position: method.log_joint(position, data))(position)
    samples = no_samples(position, log_joints, data, size)
    return _HmcState(position, adaptation, jnp.zeros(method.chains, int), samples, jnp.asarray(0))
