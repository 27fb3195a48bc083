"""What samplers share: the library that they come from, and the samples that a run keeps."""

from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from gpbench.core.predictive import Mixture, Predictive
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


def mixture(positions: Any, log_weights: Float[Array, " S"], X: Float[Array, "N D"]) -> Mixture:
    """The predictive distributions at X of S positions, each a `network` with a `likelihood`, as one mixture."""

    def density(position) -> Predictive:
        outputs = position.network(X)
        return position.likelihood.predictive(outputs, jnp.zeros_like(outputs))

    return Mixture(jax.lax.map(density, positions, batch_size=_TOGETHER), log_weights)
