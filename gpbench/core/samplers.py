"""Samples of a run: the schedule that keeps states, and the no-U-turn sampler (Hoffman and Gelman 2014) of blackjax.

blackjax 1.7 samples in JAX's default precision alone, so positions are in that precision here and densities are not.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core.networks import predict_outputs
from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.errors import ConfigError

_TOGETHER = 100
"""Number of samples that predict side by side; memory is in proportion to it."""


def blackjax(method: str) -> ModuleType:
    """Imports the library blackjax, which is optional.

    Args:
        method: Name of the method that needs it, for the message.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import blackjax
    except ImportError as error:
        install = "pip install -c constraints.txt -e '.[samplers]' in the checkout"
        raise ConfigError(f"method={method} needs blackjax: {install}") from error
    return blackjax


class Schedule(NamedTuple):
    """States that a run keeps: one of every `thinning` after `burn_in` steps, and of these the last `size`."""

    burn_in: int
    thinning: int
    size: int

    def keeps(self, step: Int[Array, ""]) -> Bool[Array, ""]:
        """True where the state after `step` steps is kept."""
        return (step > self.burn_in) & ((step - self.burn_in) % self.thinning == 0)


def schedule(steps: int, samples: int, *, burn_in: float = 0.0, thinning: int | None = None) -> Schedule:
    """Makes a schedule.

    Args:
        steps: Number of steps of the run.
        samples: Largest number of states that are kept.
        burn_in: Fraction of the steps before the first of them.
        thinning: Number of steps between two; None spreads them evenly.

    Raises:
        ConfigError: No state would be kept.
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
    """Ring of the last S kept values: a pytree with a leading axis, and the number of values kept so far.

    Slots that are not filled yet hold the initial value.
    """

    values: Any
    count: Int[Array, ""]

    @classmethod
    def empty(cls, value: Any, size: int) -> "Samples":
        """A ring with `size` slots for values like `value`."""
        return cls(jax.tree.map(lambda leaf: jnp.repeat(leaf[None], size, axis=0), value), jnp.asarray(0))

    @property
    def size(self) -> int:
        """Number S of slots."""
        return jax.tree.leaves(self.values)[0].shape[0]

    def extend(self, value: Any, keeps: Bool[Array, ""]) -> "Samples":
        """Puts a value in the place of the oldest one, if `keeps`."""
        slot = self.count % self.size
        write = lambda ring, new: ring.at[slot].set(jnp.where(keeps, new, ring[slot]))
        return Samples(jax.tree.map(write, self.values, value), self.count + keeps)

    def in_order(self) -> Any:
        """The values from the oldest to the newest, of a full ring."""
        return jax.tree.map(lambda ring: jnp.roll(ring, -(self.count % self.size), axis=0), self.values)

    def log_weights(self, dtype: DTypeLike) -> Float[Array, " S"]:
        """Logarithms of equal weights of the filled slots, or of the first slot where none is filled."""
        is_filled = jnp.arange(self.size) < jnp.maximum(self.count, 1)
        return jnp.where(is_filled, jnp.zeros((), dtype), -jnp.inf)

    def or_current(self, current: Any) -> Any:
        """The values; as long as none is kept, `current` in every slot."""
        return jax.tree.map(lambda ring, now: jnp.where(self.count > 0, ring, now), self.values, current)


def mixture(positions: Any, log_weights: Float[Array, " S"], X: Float[Array, "N D"]) -> MixturePredictive:
    """Mixture of the predictive distributions of sampled networks.

    Args:
        positions: S positions as one pytree, with fields `network` and `likelihood`.
        log_weights: Logarithms of their weights, up to a constant.
        X: Rows of inputs.
    """

    def density(position: Any) -> Predictive:
        return predict_outputs(position.network, position.likelihood, X)

    return MixturePredictive(jax.lax.map(density, positions, batch_size=_TOGETHER), log_weights)


_Position = Any
"""A pytree of arrays of one dtype."""


class Adaptation(eqx.Module):
    """Step size and mass matrix from the warm-up of chains."""

    step_size: Float[Array, " *chains"]
    inverse_mass: Float[Array, "*chains P"]
    """The diagonal of the inverse mass matrix."""


class _Transition(eqx.Module):
    """End of a transition, the log densities there and at its start, and true where it diverged."""

    position: _Position
    log_density: Float[Array, " *chains"]
    initial_log_density: Float[Array, " *chains"]
    is_divergent: Bool[Array, " *chains"]


class Sampler(eqx.Module):
    """The no-U-turn sampler with a diagonal mass matrix.

    Attributes:
        log_density: Log density of a position, up to a constant.
        max_doublings: Largest number of doublings: 2^`max_doublings` - 1 leapfrog steps a transition.
        method: Name of the method, for the message about a missing blackjax.
    """

    log_density: Callable[[_Position], Float[Array, ""]]
    max_doublings: int
    method: str

    @jax.named_scope("needs_float64")  # differences of energies decide what is accepted
    def warm_up(self, position: _Position, steps: int, *, key: PRNGKeyArray) -> tuple[_Position, Adaptation]:
        """Adapts step size and mass matrix as Stan does.

        Args:
            position: Initial position.
            steps: Number of transitions.
            key: Random key.

        Returns:
            The position after them, and the adapted quantities.
        """
        library, dtype = blackjax(self.method), _dtype(position)
        settings = {"max_num_doublings": self.max_doublings, "adaptation_info_fn": lambda *_: None}
        adaptation = library.window_adaptation(library.nuts, self._density(dtype), **settings)
        (end, adapted), _ = adaptation.run(key, _cast(position, float), steps)
        result = Adaptation(adapted["step_size"], adapted["inverse_mass_matrix"])
        return _cast((end.position, result), dtype)

    @jax.named_scope("needs_float64")
    def step(self, position: _Position, adaptation: Adaptation, *, key: PRNGKeyArray) -> _Transition:
        """Makes one transition from `position`."""
        nuts, dtype = blackjax(self.method).nuts, _dtype(position)
        density, adapted = self._density(dtype), _cast(adaptation, float)
        start = nuts.init(_cast(position, float), density)
        arguments = (density, adapted.step_size, adapted.inverse_mass, self.max_doublings)
        end, info = nuts.build_kernel()(key, start, *arguments)
        position, after, before = _cast((end.position, end.logdensity, start.logdensity), dtype)
        return _Transition(position, after, before, info.is_divergent)

    def _density(self, dtype: DTypeLike) -> Callable[[_Position], Float[Array, ""]]:
        return lambda position: _cast(self.log_density(_cast(position, dtype)), float)


def _dtype(position: _Position) -> Any:
    return jax.tree.leaves(position)[0].dtype


def _cast(tree: Any, dtype: DTypeLike) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)
