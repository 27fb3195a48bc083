"""Two samplers of the optional library blackjax: the no-U-turn sampler, and microcanonical Langevin Monte Carlo.
blackjax 1.7 samples in JAX's default precision alone, so positions are in that precision there and densities are not.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.errors import ConfigError

Position = Any
"""A pytree of arrays of one dtype."""

_LogDensity = Callable[[Position], Float[Array, ""]]
"""Log density of a position, up to a constant."""


def blackjax(method: str) -> ModuleType:
    """The optional library blackjax; where it is not installed a ConfigError, with the method that needs it."""
    try:
        import blackjax
    except ImportError as error:
        install = "pip install -c constraints.txt -e '.[samplers]' in the checkout"
        raise ConfigError(f"method={method} needs blackjax: {install}") from error
    return blackjax


def _dtype_of(position: Position) -> Any:
    """Precision of a position."""
    return jax.tree.leaves(position)[0].dtype


def _cast(tree: Any, dtype: DTypeLike) -> Any:
    """The pytree with all of its leaves in a precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def _in_precision(log_density: _LogDensity, dtype: DTypeLike) -> _LogDensity:
    """The log density of a position in JAX's default precision, evaluated in that of the data."""
    return lambda position: _cast(log_density(_cast(position, dtype)), float)


class Adaptation(eqx.Module):
    """Step size and mass matrix from the warm-up of chains."""

    step_size: Float[Array, " *chains"]
    inverse_mass: Float[Array, "*chains P"]
    """The diagonal of the inverse mass matrix."""


class _Transition(eqx.Module):
    """End of a transition, the log densities there and at its start, and true where it diverged."""

    position: Position
    log_density: Float[Array, " *chains"]
    initial_log_density: Float[Array, " *chains"]
    is_divergent: Bool[Array, " *chains"]


class NoUTurn(eqx.Module):
    """The no-U-turn sampler (Hoffman and Gelman, JMLR 2014) with a diagonal mass matrix.  A transition has
    2^`max_doublings` - 1 leapfrog steps at most."""

    log_density: _LogDensity
    max_doublings: int
    method: str

    @jax.named_scope("needs_float64")  # differences of energies decide what is accepted
    def warm_up(self, position: Position, steps: int, *, key: PRNGKeyArray) -> tuple[Position, Adaptation]:
        """The position after `steps` transitions that adapt step size and mass matrix as Stan does, and these."""
        library, dtype = blackjax(self.method), _dtype_of(position)
        settings = {"max_num_doublings": self.max_doublings, "adaptation_info_fn": lambda *_: None}
        adaptation = library.window_adaptation(library.nuts, _in_precision(self.log_density, dtype), **settings)
        (end, adapted), _ = adaptation.run(key, _cast(position, float), steps)
        result = Adaptation(adapted["step_size"], adapted["inverse_mass_matrix"])
        return _cast((end.position, result), dtype)

    @jax.named_scope("needs_float64")
    def step(self, position: Position, adaptation: Adaptation, *, key: PRNGKeyArray) -> _Transition:
        """Makes one transition from `position`."""
        nuts, dtype = blackjax(self.method).nuts, _dtype_of(position)
        density, adapted = _in_precision(self.log_density, dtype), _cast(adaptation, float)
        start = nuts.init(_cast(position, float), density)
        arguments = (density, adapted.step_size, adapted.inverse_mass, self.max_doublings)
        end, info = nuts.build_kernel()(key, start, *arguments)
        position, after, before = _cast((end.position, end.logdensity, start.logdensity), dtype)
        return _Transition(position, after, before, info.is_divergent)


_PHASES = (0.8, 0.1, 0.1)
"""Shares of the steps of tuning that find the step size, the size of the posterior, and the autocorrelation."""
_STEP_SIZE = 1e-3  # first step size of the tuner: small, so that it does not lose the position that a chain starts from
_MEMORY = 100  # number of steps, roughly, over which the tuner averages energy errors


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
    """Microcanonical Langevin Monte Carlo (Robnik and Seljak, 2023, arXiv:2303.18221) of two numbers or more.  The
    momentum u is a unit vector: a position moves by `step_size` a step of two gradients, whatever the slope of its log
    density, which alone turns u.  Before and after a step u is partly drawn anew, so that it is forgotten over the
    distance `length`.  There is no preconditioning.  Nothing is rejected: the samples have a bias, which falls with the
    step size as the variance of the energy error does."""

    log_density: _LogDensity
    method: str

    @jax.named_scope("needs_float64")  # differences of energies are compared with small numbers
    def start(self, position: Position, *, key: PRNGKeyArray) -> Chain:
        """A chain at the position, with a random momentum."""
        space = _Space(self.log_density, position)
        return space.chain(blackjax(self.method).mcmc.mclmc.init(space.vector, space.log_density, key))

    @jax.named_scope("needs_float64")
    def tune(self, chain: Chain, steps: int, energy_variance: float, *, key: PRNGKeyArray) -> tuple[Chain, Scales]:
        """The chain after steps that find its scales, and these: by the energy error, and by the autocorrelation.  A
        step's energy error is to have the variance `energy_variance` for each dimension."""
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
        return space.chain(end), _cast(Scales(tuned.step_size, tuned.L), space.dtype)

    @jax.named_scope("needs_float64")
    def step(self, chain: Chain, scales: Scales, *, key: PRNGKeyArray) -> _Move:
        """Makes one step."""
        library, space, wide = blackjax(self.method), _Space(self.log_density, chain.position), _cast(scales, float)
        arguments = (space.state(chain, library), space.log_density, 1.0, wide.length, wide.step_size)
        end, info = library.mcmc.mclmc.build_kernel()(key, *arguments)
        return _Move(space.chain(end), _cast(info.energy_change, space.dtype), ~info.nonans)


class _Space:
    """Positions as vectors in blackjax's precision; small networks move twice as fast so as by pytrees."""

    def __init__(self, log_density: _LogDensity, position: Position) -> None:
        self.dtype = _dtype_of(position)
        self.vector, self._unravel = ravel_pytree(_cast(position, float))
        self.log_density = lambda vector: _in_precision(log_density, self.dtype)(self._unravel(vector))

    def state(self, chain: Chain, library: ModuleType) -> Any:
        """blackjax's state of a chain at this position."""
        others = _cast((chain.momentum, chain.log_density, chain.gradient), float)
        return library.mcmc.integrators.IntegratorState(self.vector, *others)

    def chain(self, state: Any) -> Chain:
        """The chain of blackjax's state."""
        others = (state.momentum, state.logdensity, state.logdensity_grad)
        return _cast(Chain(self._unravel(state.position), *others), self.dtype)
