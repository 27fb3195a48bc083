"""The no-U-turn sampler (Hoffman and Gelman, JMLR 2014) of blackjax, for one chain, in the precision of the data.

blackjax 1.7 samples in JAX's default precision alone, so positions are in that precision here and densities are not.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core.samplers import blackjax

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
