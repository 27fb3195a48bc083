"""The states that a run keeps, the mixture of their predictions, and how far chains agree: R-hat and sample sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from gpbench.core.networks import Network
from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.core.samplers.chains import blackjax
from gpbench.errors import ConfigError, require

_TOGETHER = 100  # number of samples that predict side by side; memory is in proportion to it
_PROBES = 5  # number of rows whose outputs are followed


class Schedule(NamedTuple):
    """States that a run keeps: one of every `thinning` after `burn_in` steps, and of these the last `size`."""

    burn_in: int
    thinning: int
    size: int

    def keeps(self, step: Int[Array, ""]) -> Bool[Array, ""]:
        """True where the state after `step` steps is kept."""
        return (step > self.burn_in) & ((step - self.burn_in) % self.thinning == 0)


def schedule(steps: int, samples: int, *, burn_in: float = 0.0, thinning: int | None = None) -> Schedule:
    """The schedule of at most `samples` states from a run of `steps` steps; a ConfigError where it would keep none.
    `burn_in` is the fraction of the steps before the first of them; `thinning` None spreads them evenly."""
    first = round(burn_in * steps)
    thinning = thinning or max(1, (steps - first) // samples)
    count = (steps - first) // thinning
    fault = f"of method.steps={steps} the first {first} are burn-in and one of every {thinning} others is kept"
    require(count > 0, f"no samples: {fault}; take more steps, or less burn-in or thinning", ConfigError)
    return Schedule(first, thinning, min(samples, count))


class Samples(eqx.Module):
    """Ring of the last S kept values: a pytree with a leading axis, and the number of values kept so far.  Slots that
    are not filled yet hold the initial value."""

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


def mixture(density: Callable[[Any], Predictive], positions: Any, log_weights: Float[Array, " S"]) -> MixturePredictive:
    """Mixture of the predictive distributions `density` of S sampled positions, with these weights up to a factor."""
    return MixturePredictive(jax.lax.map(density, positions, batch_size=_TOGETHER), log_weights)


def followed(networks: Network, log_joints: Float[Array, " C"], X: Float[Array, "N D"]) -> Float[Array, "C Q"]:
    """Quantities of every chain: its log joint, and its network's outputs at the first rows of X."""
    outputs = jax.vmap(lambda network: network(X[:_PROBES]).ravel())(networks)
    return jnp.concatenate([log_joints[:, None], outputs], axis=1)


@partial(jax.jit, static_argnames="method")
def agreement(samples: Samples, method: str) -> dict[str, Array]:
    """The largest `rhat` and the smallest `ess` of the quantities (C, Q) that `followed` gives.  R-hat and bulk
    effective sample size (Vehtari et al. 2021); `rhat_outputs` and `ess_outputs` are those of the outputs alone, which
    can agree where weights do not, as layers can exchange factors.  They need 4 samples of each chain and a full ring,
    and are NaN otherwise."""
    library, quantities = blackjax(method).diagnostics, samples.in_order()  # (S, C, Q)
    nan = jnp.full(quantities.shape[2], jnp.nan, quantities.dtype)
    rhat, ess = nan, nan
    if samples.size >= 4:
        full = samples.count >= samples.size
        rhat = jnp.where(full, library.rhat(quantities, chain_axis=1, sample_axis=0), nan)
        ess = jnp.where(full, library.ess_bulk(quantities, chain_axis=1, sample_axis=0), nan)
    every = {"rhat": jnp.max(rhat), "ess": jnp.min(ess)}
    return every | {"rhat_outputs": jnp.max(rhat[1:]), "ess_outputs": jnp.min(ess[1:])}
