"""Samples of a run: which states are kept, and the no-U-turn sampler (Hoffman and Gelman, JMLR 2014) of blackjax.

blackjax 1.7 samples in JAX's default precision alone, so positions are in that precision here and densities are not.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.errors import ConfigError

_TOGETHER = 100
"""How many samples predict side by side: more would need memory in proportion."""


def blackjax(method: str) -> ModuleType:
    """The library blackjax, imported where a sampler first needs it.  Raises ConfigError where it is not installed."""
    try:
        import blackjax
    except ImportError as error:
        install = "pip install -c constraints.txt -e '.[samplers]' in the checkout"
        raise ConfigError(f"method={method} needs blackjax: {install}") from error
    return blackjax


class Schedule(NamedTuple):
    """Which states of a run are kept: one of every `thinning` after `burn_in` steps, and of these the last `size`."""

    burn_in: int
    thinning: int
    size: int

    def keeps(self, step: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the state after this many steps is kept."""
        return (step > self.burn_in) & ((step - self.burn_in) % self.thinning == 0)


def schedule(steps: int, samples: int, *, burn_in: float = 0.0, thinning: int | None = None) -> Schedule:
    """The schedule that keeps up to `samples` states of `steps`, after the fraction `burn_in` of them.

    Without `thinning` they are spread evenly over the steps.  Raises ConfigError where no state would be kept.
    """
    first = round(burn_in * steps)
    thinning = thinning or max(1, (steps - first) // samples)
    if (count := (steps - first) // thinning) < 1:
        raise ConfigError(
            f"no samples: of method.steps={steps} the first {first} are burn-in and one of every"
            f" {thinning} others is kept; take more steps, or less burn-in or thinning"
        )
    return Schedule(first, thinning, min(samples, count))


class Samples(eqx.Module):
    """The last S values that were kept, in a ring: a pytree with a leading axis, and how many there have been.

    The slots that are not filled yet hold the initial value.
    """

    values: Any
    count: Int[Array, ""]

    @classmethod
    def empty(cls, value: Any, size: int) -> "Samples":
        """`size` slots for values like this one."""
        return cls(jax.tree.map(lambda leaf: jnp.repeat(leaf[None], size, axis=0), value), jnp.asarray(0))

    @property
    def size(self) -> int:
        """S."""
        return jax.tree.leaves(self.values)[0].shape[0]

    def extend(self, value: Any, keeps: Bool[Array, ""]) -> "Samples":
        """With one more value, in place of the oldest, if `keeps`."""
        slot = self.count % self.size
        put = lambda ring, new: ring.at[slot].set(jnp.where(keeps, new, ring[slot]))
        return Samples(jax.tree.map(put, self.values, value), self.count + keeps)

    def in_order(self) -> Any:
        """The values from the oldest to the newest, of a full ring."""
        return jax.tree.map(lambda ring: jnp.roll(ring, -(self.count % self.size), axis=0), self.values)

    def log_weights(self, dtype) -> Float[Array, " S"]:
        """Logarithms of equal weights of the filled slots, of the first one where none is."""
        return jnp.where(jnp.arange(self.size) < jnp.maximum(self.count, 1), 0.0, -jnp.inf).astype(dtype)

    def or_current(self, current: Any) -> Any:
        """The values, or in every slot the current one as long as none is kept."""
        return jax.tree.map(lambda ring, now: jnp.where(self.count > 0, ring, now), self.values, current)


def mixture(positions: Any, log_weights: Float[Array, " S"], X: Float[Array, "N D"]) -> MixturePredictive:
    """The predictive distributions at X of S positions, each a `network` with a `likelihood`, as one mixture."""

    def density(position) -> Predictive:
        outputs = position.network(X)
        return position.likelihood.predictive(outputs, jnp.zeros_like(outputs))

    return MixturePredictive(jax.lax.map(density, positions, batch_size=_TOGETHER), log_weights)


Position = Any
"""A pytree of arrays of one dtype."""


class Adaptation(eqx.Module):
    """What the warm-up of a chain finds."""

    step_size: Float[Array, " *chains"]
    inverse_mass: Float[Array, "*chains P"]
    """The diagonal of the inverse mass matrix."""


class Transition(eqx.Module):
    """Where a transition ends, the log densities there and where it started, and whether it diverged."""

    position: Position
    log_density: Float[Array, " *chains"]
    initial_log_density: Float[Array, " *chains"]
    is_divergent: Bool[Array, " *chains"]


class Sampler(eqx.Module):
    """NUTS with a diagonal mass matrix for a log density, up to 2^`max_doublings` - 1 leapfrog steps a transition.

    `method` is the name that a message about a missing blackjax has.
    """

    log_density: Callable[[Position], Float[Array, ""]]
    max_doublings: int
    method: str

    def warm_up(self, position: Position, steps: int, *, key: PRNGKeyArray) -> tuple[Position, Adaptation]:
        """The position after these many transitions, in which step size and mass matrix adapt as in Stan."""
        library, dtype = blackjax(self.method), _dtype(position)
        settings = {"max_num_doublings": self.max_doublings, "adaptation_info_fn": lambda *_: None}
        adaptation = library.window_adaptation(library.nuts, self._density(dtype), **settings)
        (end, adapted), _ = adaptation.run(key, _cast(position, float), steps)
        result = Adaptation(adapted["step_size"], adapted["inverse_mass_matrix"])
        return _cast((end.position, result), dtype)

    def step(self, position: Position, adaptation: Adaptation, *, key: PRNGKeyArray) -> Transition:
        """One transition."""
        nuts, dtype = blackjax(self.method).nuts, _dtype(position)
        density, adapted = self._density(dtype), _cast(adaptation, float)
        start = nuts.init(_cast(position, float), density)
        arguments = (density, adapted.step_size, adapted.inverse_mass, self.max_doublings)
        end, info = nuts.build_kernel()(key, start, *arguments)
        position, after, before = _cast((end.position, end.logdensity, start.logdensity), dtype)
        return Transition(position, after, before, info.is_divergent)

    def _density(self, dtype) -> Callable[[Position], Float[Array, ""]]:
        return lambda position: _cast(self.log_density(_cast(position, dtype)), float)


def _dtype(position: Position):
    return jax.tree.leaves(position)[0].dtype


def _cast(tree: Any, dtype) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)
