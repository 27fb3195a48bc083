"""Optimisers that optax does not have.  All are optax transformations that MINIMISE, like optax's own."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from gpbench.errors import ConfigError


class AdaptiveRatesState(NamedTuple):
    rates: optax.Updates
    signs: optax.Updates


def adaptive_rates(
    start: float = 1e-2, up: float = 1.02, down: float = 0.5, shared: str = "", reach: float = math.inf
) -> optax.GradientTransformation:
    """Gradient steps with a learning rate per parameter (paper `sep`, appendix A.6).

    A rate grows by `up` while its gradient keeps its sign and is multiplied by `down` when the sign flips.  Parameters
    whose path contains `shared` have one sign together, that of their summed gradient, as the lengthscales have in the
    authors' own program (hl2016).  An empty `shared` shares nothing.  No step moves a parameter by more than `reach`:
    gradients are sums over rows, and on many rows an initial rate that suits few moves inducing points out of the data.
    """

    def signs_of(gradients):
        def sign(path, g):
            shares = shared and shared in jax.tree_util.keystr(path)
            return jnp.broadcast_to(jnp.sign(jnp.sum(g)), g.shape) if shares else jnp.sign(g)

        return jax.tree_util.tree_map_with_path(sign, gradients)

    def init(parameters):
        rates = jax.tree.map(lambda p: jnp.full_like(p, start), parameters)
        return AdaptiveRatesState(rates, jax.tree.map(jnp.zeros_like, parameters))

    def update(gradients, state, parameters=None):
        signs = signs_of(gradients)

        def adapt(rate, new, old):
            return rate * jnp.where(new * old > 0, up, jnp.where(new * old < 0, down, 1.0)).astype(rate.dtype)

        rates = jax.tree.map(adapt, state.rates, signs, state.signs)
        updates = jax.tree.map(lambda r, g: jnp.clip(-r * g, -reach, reach), rates, gradients)
        return updates, AdaptiveRatesState(rates, signs)

    return optax.GradientTransformation(init, update)


def adadelta(rho: float = 0.9, eps: float = 1e-5) -> optax.GradientTransformation:
    """ADADELTA at rate 1 with the paper's ρ and ε (paper `sep`, section 4.4; optax's default ε is 1e-6)."""
    return optax.adadelta(1.0, rho=rho, eps=eps)


def adam_of_scales(learning_rate: float) -> optax.GradientTransformation:
    """Adam as in programs whose parameters are the logarithms of lengthscales and standard deviations (bui2016).

    Ours are logarithms of their squares, which are twice as large, so that steps are twice as long.  The scale of
    gradients makes no difference to Adam.
    """

    def double(path, update):
        return 2.0 * update if jax.tree_util.keystr(path[-1:]).startswith(".log_") else update

    doubled = optax.stateless(lambda updates, _: jax.tree_util.tree_map_with_path(double, updates))
    return optax.chain(optax.adam(learning_rate), doubled)


class DecayingState(NamedTuple):
    """Adam's state, the initial rate γ₀, and the number of steps done."""

    adam: optax.OptState
    rate: jax.Array
    steps: jax.Array


def decaying_adam(rate: float = 1e-2, decay: float = 0.1) -> optax.GradientTransformation:
    """Adam at the rate γ₀ / (1 + decay √t) (paper `svdgp`, section 4); γ₀ is part of the state (`with_rate`)."""
    adam = optax.adam(1.0)

    def init(parameters):
        return DecayingState(adam.init(parameters), jnp.asarray(rate, float), jnp.zeros((), int))

    def update(gradients, state, parameters=None):
        updates, inner = adam.update(gradients, state.adam, parameters)
        now = state.rate / (1.0 + decay * jnp.sqrt(state.steps.astype(float)))
        updates = jax.tree.map(lambda u: (now * u).astype(u.dtype), updates)
        return updates, DecayingState(inner, state.rate, state.steps + 1)

    return optax.GradientTransformation(init, update)


def with_rate(state: optax.OptState, rate: float) -> DecayingState:
    """The state of a `decaying_adam` with another initial rate.  Raises ConfigError for other optimisers."""
    if not isinstance(state, DecayingState):
        raise ConfigError(
            "method.rates are initial rates of gpbench.core.optimisers.decaying_adam: choose that as"
            " method.optimiser, or leave method.rates=[]"
        )
    return state._replace(rate=jnp.full_like(state.rate, rate))
