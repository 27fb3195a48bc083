"""L-BFGS as a step, for programs that run many problems at once under `vmap`.  Under vmap a loop runs until its last
problem ends and a conditional takes both branches, so a line search should evaluate the function in one place only
(optax's zoom does so in two).  And a function that is itself the end of an iteration has a by-product to start from
next time, such as EP sites: `extra`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from gpbench.core.mapping import select

# The usual constants of the Wolfe conditions, and the relative gain at which L-BFGS-B stops by default.
_DECREASE, _CURVATURE = 1e-4, 0.9
TOLERANCE = 2.2e-9
_STEPS = 10  # that the Hessian is made from
_EVALUATIONS = 20  # in a line search, at most

Parameters = Any
_Evaluate = Callable[[Parameters, Any], tuple[Float[Array, ""], Parameters, Any]]
"""Function of (parameters, extra) that returns value, gradient and the new extra."""


class State(eqx.Module):
    """Value, gradient and `extra` at the parameters, and the last K steps and changes of gradient, the newest last."""

    value: Float[Array, ""]
    gradient: Float[Array, " P"]
    extra: Any
    steps: Float[Array, "K P"]
    changes: Float[Array, "K P"]
    converged: Bool[Array, ""]


class _Point(NamedTuple):
    """A point on the line: its distance from the start, and value and slope of the function."""

    t: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]


def start(parameters: Parameters, extra: Any = None) -> State:
    """State before the first step, which only evaluates the value, from the by-product `extra`."""
    x, _ = ravel_pytree(parameters)
    empty = jnp.zeros((_STEPS, x.size), x.dtype)
    return State(jnp.asarray(jnp.inf, x.dtype), jnp.zeros_like(x), extra, empty, empty, jnp.zeros((), bool))


def step(
    evaluate: _Evaluate, parameters: Parameters, state: State, *, tolerance: float = TOLERANCE
) -> tuple[Parameters, State]:
    """One iteration of minimisation (Nocedal and Wright 2006, algorithm 7.5).  The line search ends at the weak Wolfe
    conditions; a value of NaN counts as too far.  Where no point along the direction is better the memory is cleared,
    and with an empty memory, or once an iteration gains less than `tolerance` of the value, the problem has `converged`
    and later steps leave it as it is."""
    x, unravel = ravel_pytree(parameters)
    d = direction(state)
    current = _Point(jnp.zeros((), x.dtype), state.value, d @ state.gradient)
    searching = lambda carry: (carry[0] < _EVALUATIONS) & ~carry[1]

    def search(carry: Any) -> Any:
        evaluations, _, low, high, t, best = carry
        value, gradient, extra = evaluate(unravel(x + t * d), state.extra)
        gradient, _ = ravel_pytree(gradient)
        new = _Point(t, value, gradient @ d)
        # NaN compares false: too far
        lower = (value <= current.value + _DECREASE * t * current.slope) & jnp.all(jnp.isfinite(gradient))
        low, high = select(lower, new, low), select(lower, high, new)
        best = select(lower, (gradient, extra), best)
        return evaluations + 1, lower & (new.slope >= _CURVATURE * current.slope), low, high, _between(low, high), best

    unbounded = _Point(*(jnp.full((), jnp.inf, x.dtype),) * 3)
    unit = jnp.ones((), x.dtype)
    start = (0, state.converged, current, unbounded, unit, (state.gradient, state.extra))
    *_, low, _, _, (gradient, extra) = jax.lax.while_loop(searching, search, start)

    s, y = low.t * d, gradient - state.gradient
    is_curved = s @ y > 1e-12 * jnp.linalg.norm(s) * jnp.linalg.norm(y)
    old = (state.steps, state.changes)
    memory = select(is_curved, (_push(state.steps, s), _push(state.changes, y)), old)
    stuck = low.t == 0
    gain = state.value - low.value
    scale = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(low.value)), 1.0)
    converged = jnp.where(stuck, jnp.all(state.steps == 0), gain / scale <= tolerance)
    steps, changes = select(stuck, jax.tree.map(jnp.zeros_like, memory), memory)
    new = State(low.value, gradient, extra, steps, changes, state.converged | converged)
    return unravel(x + s), select(state.converged, state, new)


def direction(state: State) -> Float[Array, " P"]:
    """-H g with the memory's inverse Hessian H (Nocedal and Wright 2006, algorithm 7.4).  Without memory it is the
    steepest descent of length 1 at most, as in L-BFGS-B."""
    S, Y, g = state.steps, state.changes, state.gradient
    sy = jnp.sum(S * Y, axis=1)
    rho = jnp.where(sy > 0, 1.0 / jnp.where(sy > 0, sy, 1.0), 0.0)  # empty slots of the memory have no effect

    # loops, not lines: each product with a row of the memory would be a kernel that takes XLA 50 ms to compile
    def newest_first(q: Array, pair: Any) -> tuple[Array, Array]:
        s, y, rho = pair
        weight = rho * (s @ q)
        return q - weight * y, weight

    def oldest_first(q: Array, pair: Any) -> tuple[Array, None]:
        s, y, rho, weight = pair
        return q + s * (weight - rho * (y @ q)), None

    q, weights = jax.lax.scan(newest_first, g, (S, Y, rho), reverse=True)
    first = 1.0 / jnp.maximum(jnp.linalg.norm(g), 1.0)
    q = q * jnp.where(sy[-1] > 0, sy[-1] / jnp.where(sy[-1] > 0, jnp.sum(Y[-1] ** 2), 1.0), first)
    q, _ = jax.lax.scan(oldest_first, q, (S, Y, rho, weights))
    return -q


def _between(low: _Point, high: _Point) -> Float[Array, ""]:
    """The next distance: beyond `low` while nothing is too far, else the minimum of the parabola between the two."""
    h = high.t - low.t
    rise = high.value - low.value - low.slope * h  # ≥ 0 where `low` is no maximum
    inside = low.t + jnp.clip(jnp.where(rise > 0, -0.5 * low.slope * h**2 / rise, 0.5 * h), 0.1 * h, 0.9 * h)
    middle = low.t + 0.5 * h
    return jnp.where(jnp.isinf(high.t), 2.0 * low.t, jnp.where(jnp.isfinite(inside), inside, middle))


def _push(rows: Float[Array, "K P"], row: Float[Array, " P"]) -> Float[Array, "K P"]:
    return jnp.concatenate([rows[1:], row[None]])
