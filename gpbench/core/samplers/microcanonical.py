"""Microcanonical Langevin Monte Carlo (Robnik and Seljak, 2023, arXiv:2303.18221) of blackjax.

The momentum u is a unit vector: a position moves by `step_size` a step, whatever the slope of its log density, which
alone turns u.  Before and after a step u is partly drawn anew, so that it is forgotten over the distance `length`.
Nothing is rejected: the samples have a bias, which falls with the step size as the variance of the energy error does.
"""

from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core.samplers.library import LogDensity, Position, blackjax, cast, dtype_of, in_precision

_PHASES = (0.8, 0.1, 0.1)
"""Shares of the steps of tuning that find the step size, the size of the posterior, and the autocorrelation."""
_STEP_SIZE = 1e-3
"""First step size of the tuner: small, so that it does not lose the position that a chain starts from."""
_MEMORY = 100
"""Number of steps, roughly, over which the tuner averages energy errors."""


class Chain(eqx.Module):
    """Position of a chain, its momentum as a vector, and the log density and its gradient there."""

    position: Position
    momentum: Float[Array, "*chains P"]
    log_density: Float[Array, " *chains"]
    gradient: Float[Array, "*chains P"]


class Scales(eqx.Module):
    """Step size, and the distance `length` over which the momentum is forgotten: L, which may be infinite."""

    step_size: Float[Array, " *chains"]
    length: Float[Array, " *chains"]


class _Move(eqx.Module):
    """End of a step, its energy error, and true where it had no finite end: then the chain stays where it was."""

    chain: Chain
    energy_error: Float[Array, " *chains"]
    is_divergent: Bool[Array, " *chains"]


class Microcanonical(eqx.Module):
    """Microcanonical Langevin dynamics in steps of two gradients, without preconditioning.

    Attributes:
        log_density: Log density of a position of two numbers or more, up to a constant.
        method: Name of the method, for the message about a missing blackjax.
    """

    log_density: LogDensity
    method: str

    @jax.named_scope("needs_float64")  # differences of energies are compared with small numbers
    def start(self, position: Position, *, key: PRNGKeyArray) -> Chain:
        """A chain at the position, with a random momentum."""
        space = _Space(self.log_density, position)
        return space.chain(blackjax(self.method).mcmc.mclmc.init(space.vector, space.log_density, key))

    @jax.named_scope("needs_float64")
    def tune(self, chain: Chain, steps: int, energy_variance: float, *, key: PRNGKeyArray) -> tuple[Chain, Scales]:
        """Finds the scales: the step size by the energy error, the length by the autocorrelation.

        Args:
            chain: Start of the chain.
            steps: Number of steps.
            energy_variance: Variance of a step's energy error to reach, for each dimension.
            key: Random key.

        Returns:
            The chain after them, and the scales.
        """
        library, space = blackjax(self.method), _Space(self.log_density, chain.position)
        first = library.adaptation.mclmc_adaptation.MCLMCAdaptationState(
            jnp.sqrt(float(len(space.vector))), jnp.asarray(_STEP_SIZE, float), 1.0
        )
        end, tuned, _ = library.mclmc_find_L_and_step_size(
            library.mcmc.mclmc.build_kernel(),
            steps,
            space.state(chain, library),
            key,
            space.log_density,
            *_PHASES,
            desired_energy_var=energy_variance,
            num_effective_samples=_MEMORY,
            diagonal_preconditioning=False,
            params=first,
        )
        return space.chain(end), cast(Scales(tuned.step_size, tuned.L), space.dtype)

    @jax.named_scope("needs_float64")
    def step(self, chain: Chain, scales: Scales, *, key: PRNGKeyArray) -> _Move:
        """Makes one step."""
        library, space, wide = blackjax(self.method), _Space(self.log_density, chain.position), cast(scales, float)
        arguments = (space.state(chain, library), space.log_density, 1.0, wide.length, wide.step_size)
        end, info = library.mcmc.mclmc.build_kernel()(key, *arguments)
        return _Move(space.chain(end), cast(info.energy_change, space.dtype), ~info.nonans)


class _Space:
    """Positions as vectors in blackjax's precision; small networks move twice as fast so as by pytrees."""

    def __init__(self, log_density: LogDensity, position: Position) -> None:
        self.dtype = dtype_of(position)
        self.vector, self._unravel = ravel_pytree(cast(position, float))
        self.log_density = lambda vector: in_precision(log_density, self.dtype)(self._unravel(vector))

    def state(self, chain: Chain, library: ModuleType) -> Any:
        """blackjax's state of a chain at this position."""
        others = cast((chain.momentum, chain.log_density, chain.gradient), float)
        return library.mcmc.integrators.IntegratorState(self.vector, *others)

    def chain(self, state: Any) -> Chain:
        """The chain of blackjax's state."""
        others = (state.momentum, state.logdensity, state.logdensity_grad)
        return cast(Chain(self._unravel(state.position), *others), self.dtype)
