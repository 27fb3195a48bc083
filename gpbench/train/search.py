"""Settings that a run chooses for itself: a step size by its objective, others by validation rows.  After trials
training starts again with the choice; after successive halving (Jamieson and Talwalkar, AISTATS 2016) it goes on from
the winner's state, which, with its optimiser and its random keys, is that of it trained alone, to the bit."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from gpbench.core.memory import require_memory
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Batch, Method
from gpbench.methods.protocols import STOP, HasConvergence, HasRates, HasSearch, State
from gpbench.train import batches
from gpbench.train.batches import prediction_key, take_step
from gpbench.train.devices import fill
from gpbench.train.faults import predictive
from gpbench.train.group import Fit, Group, initial
from gpbench.train.programs import Programs, lay_out

_VALIDATION = 0.2  # the part of the training rows on which settings are compared
_FEWEST = 5  # validation rows that a comparison needs

_Advance = Callable[[Fit, int], tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], Float[np.ndarray, " S"]]]
"""Function that trains a candidate to a number of steps: its criterion there, its last objective, and the mean of its
objectives on the way, each for every member."""

_Point = tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], int]
"""The last objective of each member, the mean of its objectives so far, and the number of its training rows."""


def by_trials(method: Method, state: State, data: Batch, *, key: PRNGKeyArray) -> State:
    """The initial state of a member with the settings and the step size that trials of `trial_steps` steps choose."""
    if isinstance(method, HasSearch) and method.search:
        state = method.with_settings(state, best_settings(method, data.first(data.total), key=key))
    if isinstance(method, HasRates) and method.rates:
        state = method.with_rate(state, best_rate(method, state, data, key=key))
    return state


def best_settings(method: Method, data: Batch, *, key: PRNGKeyArray) -> dict[str, float]:
    """The combination of `method.search` with the largest mean log density of a random fifth of the rows, after
    `trial_steps` steps on the others.  Those that differ only in `stop_after` are points of one trial, which is as long
    as the largest of them."""
    parts = validation_split(data.total, key=key)
    whole = partial(batches.whole, classes=data.classes, unit=data.unit)
    weight_of = lambda rows: data.weight[rows] if data.is_weighted else None
    fit, validation = (whole(data.X[rows], data.y[rows], weight=weight_of(rows)) for rows in parts)
    # steps after which a combination is judged
    end_of = lambda choice: min(int(choice[STOP]), method.steps) if STOP in choice else method.trial_steps
    ends = sorted({end_of({STOP: stop}) for stop in dict(method.search).get(STOP, ())} or {method.trial_steps})
    trial = dataclasses.replace(method, steps=ends[-1])  # a sampler's burn-in is a part of all steps
    assert isinstance(trial, HasSearch)
    start = trial.init(fit, key=key)
    if len(choices := _combinations(trial, start)) == 1:
        return choices[0]
    others_of = lambda choice: tuple((name, value) for name, value in choice.items() if name != STOP)
    scores = {}
    for others in dict.fromkeys(map(others_of, choices)):
        state, t = trial.with_settings(start, dict(others)), 0
        for end in ends:
            state, score = _validated(trial, state, fit, validation, jnp.asarray(t), jnp.asarray(end), key)
            scores[others, end], t = float(score), end
    return choices[_order(np.array([scores[others_of(choice), end_of(choice)] for choice in choices]))[0]]


@eqx.filter_jit
def _validated(
    method: Method, state: State, fit: Batch, validation: Batch, t: Int[Array, ""], end: Int[Array, ""], key: Array
) -> tuple[State, Float[Array, ""]]:
    """The state of step `t` after `end` steps, or fewer where the method converges, and the mean log density of the
    validation rows there."""

    def unfinished(carry):
        t, state = carry
        converged = method.converged(state) if isinstance(method, HasConvergence) else None
        return (t < end) & ~(jnp.asarray(False) if converged is None else converged)

    def advance(carry):
        t, state = carry
        return t + 1, take_step(method, state, fit, t, key=key)[0]

    _, state = jax.lax.while_loop(unfinished, advance, (t, state))
    log_prob = predictive(method, state, validation.X, key=prediction_key(key)).log_prob(validation.y)
    return state, jnp.average(log_prob, weights=validation.weight)


def best_rate(method: Method, state: State, data: Batch, *, key: PRNGKeyArray) -> float:
    """The one of `method.rates` with the largest objective, a minibatch's, averaged over the last fifth of the steps of
    a trial (paper `svdgp`, section 4)."""
    assert isinstance(method, HasRates)
    jax.eval_shape(partial(predictive, method, key=key), state, data.X[:1])  # wrong predictions are said before trials
    scores = [float(_trial(method, method.with_rate(state, rate), data, key)) for rate in method.rates]
    return method.rates[_order(np.array(scores))[0]]


@eqx.filter_jit
def _trial(method: Method, state: State, data: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
    def one_step(state, t):
        state, info = take_step(method, state, data, t, key=key)
        return state, info.objective

    _, objectives = jax.lax.scan(one_step, state, jnp.arange(method.trial_steps))
    return jnp.mean(objectives[-max(1, method.trial_steps // 5) :])


def _order(scores: Float[np.ndarray, "C ..."]) -> Int[np.ndarray, "C ..."]:
    """The candidates from the best to the worst, of equal ones the first before others; one that diverged is last."""
    return np.argsort(np.where(np.isfinite(scores), -scores, np.inf), axis=0, kind="stable")


def validation_split(rows: int, *, key: Key[Array, ""]) -> tuple[Int[np.ndarray, " F"], Int[np.ndarray, " V"]]:
    """The index of the training rows that train in a choice of settings, and of the random fifth that is held back."""
    n = round(_VALIDATION * rows)
    fault = f"needs {_FEWEST} validation rows, a fifth of the training rows, and there are {rows} training rows"
    require(n >= _FEWEST, f"method.search {fault}: set method.search=null", ConfigError)
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, batches.VALIDATION), rows))
    return order[n:], order[:n]


def _combinations(method: Method, state: State) -> list[dict[str, float]]:
    """The combinations of `method.search`.  Raises ConfigError: the state has no setting of such a name."""
    assert isinstance(method, HasSearch)
    names, values = zip(*method.search)
    if unknown := set(names) - (known := method.settings(state).keys()):
        choice = f"can choose {' and '.join(known)}, not {min(unknown)}" if known else "has no settings to choose"
        raise ConfigError(f"method.search: {method.name} {choice}")
    return [dict(zip(names, choice)) for choice in itertools.product(*values)]


def by_halving(programs: Programs, group: Group, laid: Group, run: Fit, steps: int) -> _Point | None:
    """The point of the trace where training goes on from the winner's state, which is put into the run; None where it
    starts at its first step with the settings chosen: where the method does not carry the state of a search over to all
    rows, and where the winner has converged on fewer."""
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
    """The step size with the largest objective, averaged over the last fifth of the steps so far."""

    def advance(fit: Fit, end: int) -> Any:
        late = min(max(1, end // 5), end - fit.step)
        early = end - fit.step - late
        before = programs.advance(group, fit, early)[1] * early if early else 0.0
        last, average = programs.advance(group, fit, late)
        return average, last, (before + average * late) / (early + late)

    states = _candidates([partial(method.with_rate, rate=rate) for rate in method.rates], run.state)
    return _halve(programs, group, states, advance, run, trial_steps)[1:]


def _settings(method: Any, programs: Programs, group: Group, run: Fit, trial_steps: int) -> tuple[Fit, _Point] | None:
    """The settings with the largest mean log density of the validation rows."""
    fewer, weight = _without_validation(programs, group)
    state = programs.devices.by_rows(initial(method, fewer), rows=fewer.X.shape[1])
    choices = _combinations(method, jax.tree.map(itemgetter(0), state))
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
    """The group with its validation rows as test rows, which its training rows lack, and the weights of these rows."""
    count = group.X.shape[1] if group.rows is None else group.rows  # of rows that are streamed a sample
    orders = [validation_split(count, key=key) for key in group.init_keys]
    take = lambda a, half: np.stack([np.asarray(rows)[order[half]] for rows, order in zip(a, orders, strict=True)])
    padded = lambda a: np.stack([fill(rows, programs.devices.padded(a.shape[1])) for rows in a])
    train, test = ({name: take(getattr(group, name), half) for name in ("X", "y")} for half in (0, 1))
    arrays = {"rows": train["X"].shape[1], "X_test": test["X"], "y_test": test["y"]}
    arrays |= {name: padded(array) for name, array in train.items()}
    weights = [None if group.weight is None else take(group.weight, half) for half in (0, 1)]
    weight = None if weights[0] is None else padded(weights[0])
    return dataclasses.replace(group, **arrays, weight=weight, stream=None), weights[1]


def _rungs(candidates: int, trial_steps: int, steps: int) -> list[int]:
    """Rising numbers of steps after which the worse half of the candidates is dropped."""
    rounds = (candidates - 1).bit_length()
    return sorted({max(1, min(trial_steps >> k, steps // 2)) for k in range(rounds)})


def _halve(
    programs: Programs, group: Group, states: Sequence[State], advance: _Advance, run: Fit, trial_steps: int
) -> tuple[Int[np.ndarray, " S"], Fit, _Point]:
    """Each member's choice among candidates that start in these states, and the winner.  One candidate's share of the
    seconds is the run's training; those of the others, and of all evaluation, are its search."""
    method, devices = programs.method, programs.devices
    choice = np.tile(np.arange(len(states))[:, None], group.size)
    step, objective, total, converged = 0, *np.zeros((2, len(states), group.size)), None
    for end in (ends := _rungs(len(states), trial_steps, method.steps)):
        report = lambda name: run.on_part("compile" if name == "compile" else "search")
        fits = [Fit(devices.by_rows(state, rows=group.X.shape[1]), step, on_part=report) for state in states]
        scores, objective, average = (np.stack(a) for a in zip(*(advance(fit, end) for fit in fits), strict=True))
        total = total + average * (end - step)
        order = _order(scores)[: 1 if end == ends[-1] else -(-len(states) // 2)]
        spent = {name: sum(fit.seconds[name] for fit in fits) for name in run.seconds}
        run.seconds["compile"] += spent["compile"]
        run.seconds["train"] += spent["train"] / len(fits)
        run.seconds["search"] += spent["train"] * (1.0 - 1.0 / len(fits)) + spent["evaluate"]
        choice, objective, total = (np.take_along_axis(a, order, axis=0) for a in (choice, objective, total))
        states = [_gather([fit.state for fit in fits], members) for members in order]
        flags = [fit.converged for fit in fits if fit.converged is not None]
        converged = [flags[i][k] for k, i in enumerate(order[0])] if flags else None
        run.step_memory, run.step_operations, step = fits[0].step_memory, fits[0].step_operations, end
    winner = Fit(devices.by_rows(states[0], rows=group.X.shape[1]), step, converged=converged)
    return choice[0], winner, (objective[0], total[0] / max(step, 1), group.total)


def _candidates(functions: Sequence[Callable[[State], State]], state: State) -> list[State]:
    """The states of all members that each function of one member's state makes, in memory of their own."""
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
