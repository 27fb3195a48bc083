"""Training that stops after a number of steps: a setting, or what a run chooses on validation rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from gpbench.errors import refuse
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.gradient import GradientMethod, GradientState
from gpbench.methods.protocols import STOP
from gpbench.schema import setting


class _Clock(eqx.Module):
    """Number of steps taken, and the number after which training stops: arrays, so that one program serves all."""

    count: Int[Array, ""]
    stop_after: Int[Array, ""]

    @property
    def over(self) -> Bool[Array, ""]:
        """True where training has stopped."""
        return self.count >= self.stop_after


class StopMethod(GradientMethod):
    """A gradient method whose training can stop before `steps`, after a number of steps that `search` can choose."""

    searchable: ClassVar[tuple[str, ...]] = (STOP,)

    stop_after: int | None = setting(
        None,
        "count or null",
        "Number of steps after which training stops; null: `steps`.  Candidates of `search` above `steps` are `steps`.",
    )

    @property
    def _chooses(self) -> bool:
        """Whether the run chooses when training stops."""
        return STOP in dict(self.search)

    def init(self, data: Batch, *, key: PRNGKeyArray) -> GradientState[Any]:
        stop, chooses = self.stop_after or 0, self._chooses
        nothing = "leaves nothing to choose: set it to null, or set method.search=null"
        refuse(
            "method.",
            (stop > self.steps, f"stop_after={stop} must be at most method.steps={self.steps}"),
            (stop and chooses, f"stop_after={stop} {nothing}"),
            (
                self.halving and chooses,
                "halving=true drops candidates before they stop: set it to false to choose stop_after",
            ),
        )
        state = super().init(data, key=key)
        if not (self.stop_after or self._chooses):
            return state
        return replace(state, clock=_Clock(jnp.asarray(0, int), jnp.asarray(self.stop_after or self.steps, int)))

    def step(self, state: GradientState[Any], batch: Batch, *, key: PRNGKeyArray) -> tuple[GradientState[Any], Info]:
        """One step, as of `GradientMethod`; none once training has stopped."""
        moved, info = super().step(state, batch, key=key)
        if (clock := state.clock) is None:
            return moved, info
        moved = replace(moved, clock=_Clock(clock.count + 1, clock.stop_after))
        return jax.tree.map(partial(jnp.where, clock.over), state, moved), info

    def converged(self, state: GradientState[Any]) -> Bool[Array, ""] | None:
        """True where training has stopped, or has converged as `GradientMethod` says; None without either."""
        optimum = self.optimum(state)
        if state.clock is None:
            return optimum
        return state.clock.over if optimum is None else state.clock.over | optimum

    def optimum(self, state: GradientState[Any]) -> Bool[Array, ""] | None:
        """The criterion of `GradientMethod`, whether or not training has stopped."""
        return super().converged(state)

    def with_settings(self, state: GradientState[Any], settings: Mapping[str, float]) -> GradientState[Any]:
        """An initial state with another `stop_after`."""
        if STOP not in settings:
            return state
        return replace(state, clock=_Clock(state.clock.count, jnp.asarray(min(settings[STOP], self.steps), int)))

    def settings(self, state: GradientState[Any]) -> dict[str, Array]:
        return {} if state.clock is None else {STOP: state.clock.stop_after}
