"""Searches that throw no training away: successive halving, after which training goes on from the winner's state.
Jamieson and Talwalkar (AISTATS 2016).  All candidates start together, and the worse half is dropped after stated
numbers of steps.  The winner's state, with its optimiser and its random keys, is that of it trained alone, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from gpbench.core.memory import require_memory
from gpbench.methods.protocols import HasRates, HasSearch, State
from gpbench.train.devices import fill
from gpbench.train.group import Fit, Group, initial
from gpbench.train.programs import Programs, lay_out
from gpbench.train.trials import combinations, validation_split

_Advance = Callable[[Fit, int], tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], Float[np.ndarray, " S"]]]
"""Function that trains a candidate to a number of steps: its criterion there, its last objective, and the mean of its
objectives on the way, each for every member."""


_Point = tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], int]
"""The last objective of each member, the mean of its objectives so far, and the number of its training rows."""


def _rungs(candidates: int, trial_steps: int, steps: int) -> list[int]:
    """Rising numbers of steps after which the worse half of the candidates is dropped, as [50, 100] for three
    candidates and 100 steps; none for a single candidate."""
    rounds = (candidates - 1).bit_length()
    return sorted({max(1, min(trial_steps >> k, steps // 2)) for k in range(rounds)})


def search(programs: Programs, group: Group, laid: Group, run: Fit, steps: int) -> _Point | None:
    """Chooses among `method.search` and `method.rates` by trials of so many steps, and puts the choice into the run.
    The result is the point of the trace where training goes on; None where it starts at its first step with the
    settings chosen: where the method does not carry the state of a search over to all rows, and where the winner has
    converged on fewer."""
    method, winner = programs.method, None
    if isinstance(method, HasSearch) and method.search:
        winner = _settings(method, programs, group, run, steps)
    if isinstance(method, HasRates) and len(method.rates) > 1:
        winner = _rate(method, programs, laid, run, steps)
    if winner is None:
        return None
    fit, point = winner
    run.state, run.step, run.converged = fit.state, fit.step, fit.converged
    return point


def _rate(method: Any, programs: Programs, group: Group, run: Fit, trial_steps: int) -> tuple[Fit, _Point]:
    """The step size with the largest objective, a minibatch's, averaged over the last fifth of the steps so far."""

    def advance(fit: Fit, end: int) -> Any:
        late = min(max(1, end // 5), end - fit.step)
        early = end - fit.step - late
        before = programs.advance(group, fit, early)[1] * early if early else 0.0
        last, average = programs.advance(group, fit, late)
        return average, last, (before + average * late) / (early + late)

    states = _candidates([partial(method.with_rate, rate=rate) for rate in method.rates], run.state)
    return _halve(programs, group, states, advance, run, trial_steps)[1:]


def _settings(method: Any, programs: Programs, group: Group, run: Fit, trial_steps: int) -> tuple[Fit, _Point] | None:
    """The settings with the largest mean log density of a random fifth of the training rows, which are held back."""
    fewer, weight = _without_validation(programs, group)
    state = programs.devices.by_rows(initial(method, fewer), rows=fewer.X.shape[1])
    choices = combinations(method, jax.tree.map(itemgetter(0), state))
    fewer = lay_out(programs.devices, fewer)

    def advance(fit: Fit, end: int) -> Any:
        last, average = programs.advance(fewer, fit, end - fit.step)
        programs.predict(fewer, fit)
        return np.average(fit.predictions["log_prob"], axis=1, weights=weight), last, average

    settings = [partial(method.with_settings, settings=choice) for choice in choices]
    choice, fit, point = _halve(programs, fewer, _candidates(settings, state), advance, run, trial_steps)
    run.state = _gather(_candidates(settings, run.state), choice)
    goes_on = method.carries_over and fit.step > 0 and not any(fit.converged or [])
    return (fit, point) if goes_on else None


def _without_validation(programs: Programs, group: Group) -> tuple[Group, Float[np.ndarray, "S T"] | None]:
    """The group with its validation rows as test rows, which its training rows lack; as `trials.best_settings`.  Beside
    it the weights of these rows; None for 1."""
    count = group.X.shape[1] if group.rows is None else group.rows  # of rows that are streamed a sample
    orders = [validation_split(count, key=key) for key in group.init_keys]
    take = lambda a, half: np.stack([np.asarray(rows)[order[half]] for rows, order in zip(a, orders, strict=True)])
    X, y, X_test, y_test = (take(a, half) for half in (0, 1) for a in (group.X, group.y))
    size, padded = X.shape[1], programs.devices.padded(X.shape[1])
    X, y = (np.stack([fill(rows, padded) for rows in a]) for a in (X, y))
    weights = [None if group.weight is None else take(group.weight, half) for half in (0, 1)]
    weight = None if weights[0] is None else np.stack([fill(rows, padded) for rows in weights[0]])
    return replace(group, X=X, y=y, weight=weight, X_test=X_test, y_test=y_test, rows=size, stream=None), weights[1]


def _halve(
    programs: Programs, group: Group, states: Sequence[State], advance: _Advance, run: Fit, trial_steps: int
) -> tuple[Int[np.ndarray, " S"], Fit, _Point]:
    """Each member's choice among candidates that start in these states, and the winner; one that diverges wins only
    where all do."""
    method, devices = programs.method, programs.devices
    choice = np.tile(np.arange(len(states))[:, None], group.size)
    step, objective, total, converged = 0, *np.zeros((2, len(states), group.size)), None
    for end in (ends := _rungs(len(states), trial_steps, method.steps)):
        report = lambda name: run.on_part("compile" if name == "compile" else "search")
        fits = [Fit(devices.by_rows(state, rows=group.X.shape[1]), step, on_part=report) for state in states]
        scores, objective, average = (np.stack(a) for a in zip(*(advance(fit, end) for fit in fits), strict=True))
        total = total + average * (end - step)
        keep = 1 if end == ends[-1] else -(-len(states) // 2)
        order = np.argsort(np.where(np.isfinite(scores), -scores, np.inf), axis=0, kind="stable")[:keep]
        _share_seconds(run, fits)
        choice, objective, total = (np.take_along_axis(a, order, axis=0) for a in (choice, objective, total))
        states = [_gather([fit.state for fit in fits], members) for members in order]
        flags = [fit.converged for fit in fits if fit.converged is not None]
        converged = [flags[i][k] for k, i in enumerate(order[0])] if flags else None
        run.step_memory, run.step_operations, step = fits[0].step_memory, fits[0].step_operations, end
    winner = Fit(devices.by_rows(states[0], rows=group.X.shape[1]), step, converged=converged)
    return choice[0], winner, (objective[0], total[0] / max(step, 1), group.total)


def _share_seconds(run: Fit, fits: Sequence[Fit]) -> None:
    """Adds the seconds of candidates to the run's: one's share is training, the others' and all evaluation search."""
    spent = {name: sum(fit.seconds[name] for fit in fits) for name in run.seconds}
    run.seconds["compile"] += spent["compile"]
    run.seconds["train"] += spent["train"] / len(fits)
    run.seconds["search"] += spent["train"] * (1.0 - 1.0 / len(fits)) + spent["evaluate"]


def _candidates(functions: Sequence[Callable[[State], State]], state: State) -> list[State]:
    """The states of all members that each of these functions of one member's state makes, in memory of their own, since
    steps overwrite it."""
    leaves, structure = jax.tree.flatten(state)
    size = sum(leaf.nbytes for leaf in leaves) * len(functions)
    require_memory(size, f"the states of {len(functions)} candidates", "candidates")
    members = [jax.tree.unflatten(structure, [leaf[k] for leaf in leaves]) for k in range(len(leaves[0]))]
    stack = lambda *leaves: jnp.stack(leaves)
    return [jax.tree.map(stack, *(function(member) for member in members)) for function in functions]


def _gather(states: Sequence[State], members: Int[np.ndarray, " S"]) -> State:
    """The state whose k-th member is that of the state `members[k]`."""
    if len(members) == 1:
        return states[members[0]]
    return jax.tree.map(lambda *leaves: jnp.stack([leaves[i][k] for k, i in enumerate(members)]), *states)
