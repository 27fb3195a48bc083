"""The no-U-turn sampler (Hoffman and Gelman, JMLR 2014) of blackjax."""

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core.samplers.library import LogDensity, Position, blackjax, cast, dtype_of, in_precision


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
    """The no-U-turn sampler with a diagonal mass matrix.

    Attributes:
        log_density: Log density of a position, up to a constant.
        max_doublings: Largest number of doublings: 2^`max_doublings` - 1 leapfrog steps a transition.
        method: Name of the method, for the message about a missing blackjax.
    """

    log_density: LogDensity
    max_doublings: int
    method: str

    @jax.named_scope("needs_float64")  # differences of energies decide what is accepted
    def warm_up(self, position: Position, steps: int, *, key: PRNGKeyArray) -> tuple[Position, Adaptation]:
        """Adapts step size and mass matrix as Stan does.

        Args:
            position: Initial position.
            steps: Number of transitions.
            key: Random key.

        Returns:
            The position after them, and the adapted quantities.
        """
        library, dtype = blackjax(self.method), dtype_of(position)
        settings = {"max_num_doublings": self.max_doublings, "adaptation_info_fn": lambda *_: None}
        adaptation = library.window_adaptation(library.nuts, in_precision(self.log_density, dtype), **settings)
        (end, adapted), _ = adaptation.run(key, cast(position, float), steps)
        result = Adaptation(adapted["step_size"], adapted["inverse_mass_matrix"])
        return cast((end.position, result), dtype)

    @jax.named_scope("needs_float64")
    def step(self, position: Position, adaptation: Adaptation, *, key: PRNGKeyArray) -> _Transition:
        """Makes one transition from `position`."""
        nuts, dtype = blackjax(self.method).nuts, dtype_of(position)
        density, adapted = in_precision(self.log_density, dtype), cast(adaptation, float)
        start = nuts.init(cast(position, float), density)
        arguments = (density, adapted.step_size, adapted.inverse_mass, self.max_doublings)
        end, info = nuts.build_kernel()(key, start, *arguments)
        position, after, before = cast((end.position, end.logdensity, start.logdensity), dtype)
        return _Transition(position, after, before, info.is_divergent)
