"""Optimisers that optax does not have.  All are optax transformations that minimise.  The annotation of an argument has
its range in words (`gpbench.schema`), by which configurations are checked."""

import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from gpbench.errors import ConfigError


class _AdaptiveRatesState(NamedTuple):
    """Learning rate and last sign of the gradient of each parameter."""

    rates: optax.Updates
    signs: optax.Updates


def adaptive_rates(
    start: Annotated[float, "positive"] = 1e-2,
    up: Annotated[float, "positive"] = 1.02,
    down: Annotated[float, "positive"] = 0.5,
    shared: Annotated[str, "text"] = "",
    reach: Annotated[float, "positive"] = math.inf,
) -> optax.GradientTransformation:
    """Gradient steps with a learning rate per parameter (paper `sep`, appendix A.6).

    Gradients are sums over rows, and on many rows an initial rate that suits few moves inducing points out of the data:
    `reach` prevents it.

    Args:
        start: Initial rate.
        up: Factor of a rate whose gradient keeps its sign.
        down: Factor of a rate whose gradient changes its sign.
        shared: Parameters whose path contains this text have one sign together, that of their summed gradient, as the
            lengthscales have in the authors' own program (hl2016).  An empty text shares nothing.
        reach: Largest change of a parameter in a step.
    """

    def signs_of(gradients: optax.Updates) -> optax.Updates:
        def sign(path: Any, g: jax.Array) -> jax.Array:
            shares = shared and shared in jax.tree_util.keystr(path)
            return jnp.broadcast_to(jnp.sign(jnp.sum(g)), g.shape) if shares else jnp.sign(g)

        return jax.tree_util.tree_map_with_path(sign, gradients)

    def init(parameters: optax.Params) -> _AdaptiveRatesState:
        rates = jax.tree.map(lambda p: jnp.full_like(p, start), parameters)
        return _AdaptiveRatesState(rates, jax.tree.map(jnp.zeros_like, parameters))

    def update(
        gradients: optax.Updates, state: Any, parameters: optax.Params | None = None
    ) -> tuple[optax.Updates, _AdaptiveRatesState]:
        signs = signs_of(gradients)

        def adapt(rate: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
            faster, slower, same = (jnp.asarray(factor, rate.dtype) for factor in (up, down, 1.0))
            return rate * jnp.where(new * old > 0, faster, jnp.where(new * old < 0, slower, same))

        rates = jax.tree.map(adapt, state.rates, signs, state.signs)
        updates = jax.tree.map(lambda r, g: jnp.clip(-r * g, -reach, reach), rates, gradients)
        return updates, _AdaptiveRatesState(rates, signs)

    return optax.GradientTransformation(init, update)


def adadelta(
    rho: Annotated[float, "fraction"] = 0.9, eps: Annotated[float, "positive"] = 1e-5
) -> optax.GradientTransformation:
    """ADADELTA at rate 1 (Zeiler 2012), with the decay ρ and the ε under the roots of paper `sep`, section 4.4."""
    return optax.adadelta(1.0, rho=rho, eps=eps)


def adam_of_scales(learning_rate: Annotated[float, "positive"]) -> optax.GradientTransformation:
    """Adam as in programs whose parameters are the logarithms of lengthscales and standard deviations (bui2016).  The
    parameters here are logarithms of their squares, twice as large, so steps are twice as long.  The scale of gradients
    makes no difference to Adam."""

    def double(path: Any, update: jax.Array) -> jax.Array:
        return 2.0 * update if jax.tree_util.keystr(path[-1:]).startswith(".log_") else update

    doubled = optax.stateless(lambda updates, _: jax.tree_util.tree_map_with_path(double, updates))
    return optax.chain(optax.adam(learning_rate), doubled)


class _DecayingState(NamedTuple):
    """Adam's state, the initial rate γ₀, and the number of steps done."""

    adam: optax.OptState
    rate: jax.Array
    steps: jax.Array


def decaying_adam(
    rate: Annotated[float, "positive"] = 1e-2, decay: Annotated[float, "nonnegative"] = 0.1
) -> optax.GradientTransformation:
    """Adam with steps of γ₀ / (1 + decay √t) at step t (paper `svdgp`, section 4).  The initial `rate` γ₀ is part of
    the state (`with_rate`)."""
    adam = optax.adam(1.0)

    def init(parameters: optax.Params) -> _DecayingState:
        return _DecayingState(adam.init(parameters), jnp.asarray(rate, float), jnp.zeros((), int))

    def update(
        gradients: optax.Updates, state: Any, parameters: optax.Params | None = None
    ) -> tuple[optax.Updates, _DecayingState]:
        updates, inner = adam.update(gradients, state.adam, parameters)
        now = state.rate / (1.0 + decay * jnp.sqrt(state.steps.astype(float)))
        updates = jax.tree.map(lambda u: now.astype(u.dtype) * u, updates)
        return updates, _DecayingState(inner, state.rate, state.steps + 1)

    return optax.GradientTransformation(init, update)


def with_rate(state: optax.OptState, rate: float) -> _DecayingState:
    """The state of a `decaying_adam` with another initial rate γ₀; a ConfigError for that of another optimiser."""
    if not isinstance(state, _DecayingState):
        raise ConfigError(
            "method.rates are initial rates of gpbench.core.optimisers.decaying_adam: choose that as"
            " method.optimiser, or leave method.rates=[]"
        )
    return state._replace(rate=jnp.full_like(state.rate, rate))
