"""Choices of a run by rows that it does not train on.  Settings: a step size by its objective, others by validation
rows.  After trials training starts again with the choice; after successive halving (Jamieson and Talwalkar, AISTATS
2016) it goes on from the winner's state, that of it trained alone, to the bit.  And recalibration of predictions."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from gpbench.core.memory import require_memory
from gpbench.core.predictive.recalibrated import Recalibration, middle_and_half
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Method
from gpbench.methods.protocols import STOP, HasSearch, State
from gpbench.train import batches
from gpbench.train.devices import fill
from gpbench.train.group import Fit, Group, Predictions, initial
from gpbench.train.programs import Programs, lay_out

_VALIDATION = 0.2  # the part of the training rows on which settings are compared
_FEWEST = 5  # validation rows that a comparison needs

_Advance = Callable[[Fit, int], tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], Float[np.ndarray, " S"]]]
"""Function that trains a candidate to a number of steps: every member's criterion, last objective, and their mean."""

Point = tuple[Float[np.ndarray, " S"], Float[np.ndarray, " S"], int]
"""The last objective of each member, the mean of its objectives so far, and the number of its training rows."""


def search(programs: Programs, on_host: Group, group: Group, run: Fit, steps: int) -> Point | None:
    """Chooses settings and step size of every member by trials of so many steps, and puts them into the run.  The point
    of the trace where training goes on from the winner's state; None where it starts at its first step."""
    method, winner = programs.method, None
    if not method.halving:  # trials draw from the rows that `init` saw, by its keys
        on_host = replace(on_host, stream=None, step_keys=on_host.init_keys)
        group = lay_out(programs.devices, on_host) if group.stream else replace(group, step_keys=group.init_keys)
    if method.search:
        winner = _settings(programs, on_host, run, steps)
    if len(method.rates) > 1:
        winner = _rate(programs, group, run, steps)
    if winner is None:
        return None
    fit, point = winner
    run.state, run.step, run.converged = fit.state, fit.step, fit.converged
    return point


def _rate(programs: Programs, group: Group, run: Fit, steps: int) -> tuple[Fit, Point] | None:
    """The step size with the largest objective, averaged over the last fifth of the steps (`svdgp`, section 4)."""
    method: Any = programs.method

    def advance(fit: Fit, end: int) -> Any:
        late = min(max(1, end // 5), end - fit.step)
        early = end - fit.step - late
        before = programs.advance(group, fit, early)[1] * early if early else 0.0
        last, average = programs.advance(group, fit, late)
        return average, last, (before + average * late) / (early + late)

    rates = [partial(method.with_rate, rate=rate) for rate in method.rates]
    if method.halving:
        return _halve(programs, group, _candidates(rates, run.state), advance, run, steps)[1:]
    states = (_candidates([rate], run.state)[0] for rate in rates)
    choice = _order(_trials(programs, group, states, advance, run, [steps])[:, 0])[0]
    run.state = programs.devices.by_rows(_choose(rates, run.state, choice), rows=group.X.shape[1])
    return None


def _settings(programs: Programs, group: Group, run: Fit, steps: int) -> tuple[Fit, Point] | None:
    """The settings with the largest mean log density of the validation rows.  Of trials those that differ in their stop
    alone are points of one, which is as long as the largest of them."""
    method: Any = programs.method
    end_of = lambda stop: min(int(stop), method.steps)
    ends = sorted({end_of(stop) for stop in dict(method.search).get(STOP, ())} or {steps})
    # a sampler's burn-in is a part of all steps; trials have the optimiser's own rate
    judged = programs if method.halving else programs.of_trials(replace(method, steps=ends[-1], rates=()))
    with run.timed("search"):
        fewer, weight = _without_validation(programs, group)
        state = programs.devices.by_rows(initial(judged.method, fewer), rows=fewer.X.shape[1])
        choices = _combinations(method, jax.tree.map(itemgetter(0), state))
        fewer = lay_out(programs.devices, fewer)

    def advance(fit: Fit, end: int) -> Any:
        last, average = judged.advance(fewer, fit, end - fit.step)
        judged.predict(fewer, fit)
        return np.average(fit.predictions["log_prob"], axis=1, weights=weight), last, average

    with_each = lambda choices: [partial(method.with_settings, settings=dict(choice)) for choice in choices]
    settings, choice, winner = with_each(choices), np.zeros(group.size, int), None
    if len(choices) > 1 and method.halving:
        choice, fit, point = _halve(judged, fewer, _candidates(settings, state), advance, run, steps)
        goes_on = method.carries_over and fit.step > 0 and not any(fit.converged or [])
        winner = (fit, point) if goes_on else None
    elif len(choices) > 1:
        others = [tuple((name, value) for name, value in each.items() if name != STOP) for each in choices]
        trials = [*dict.fromkeys(others)]
        states = (_candidates([each], state)[0] for each in with_each(trials))
        scores = _trials(judged, fewer, states, advance, run, ends)
        stops = [ends.index(end_of(each[STOP])) if STOP in each else 0 for each in choices]
        choice = _order(scores[[trials.index(each) for each in others], stops])[0]
    run.state = programs.devices.by_rows(_choose(settings, run.state, choice), rows=group.X.shape[1])
    return winner


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
    changes = replace(group.changes, warp=None)
    return replace(group, **arrays, weight=weight, stream=None, changes=changes), weights[1]


def _rungs(candidates: int, trial_steps: int, steps: int) -> list[int]:
    """Rising numbers of steps after which the worse half of the candidates is dropped."""
    rounds = (candidates - 1).bit_length()
    return sorted({max(1, min(trial_steps >> k, steps // 2)) for k in range(rounds)})


def _halve(
    programs: Programs, group: Group, states: Sequence[State], advance: _Advance, run: Fit, trial_steps: int
) -> tuple[Int[np.ndarray, " S"], Fit, Point]:
    """Each member's choice among candidates that start in these states, and the winner."""
    choice = np.tile(np.arange(len(states))[:, None], group.size)
    step, objective, total, converged = 0, *np.zeros((2, len(states), group.size)), None
    for end in (ends := _rungs(len(states), trial_steps, programs.method.steps)):
        fits = [_candidate(programs, group, state, run, step) for state in states]
        scores, objective, average = (np.stack(a) for a in zip(*(advance(fit, end) for fit in fits), strict=True))
        total = total + average * (end - step)
        order = _order(scores)[: 1 if end == ends[-1] else -(-len(states) // 2)]
        _add_seconds(run, fits, 1.0 / len(fits))
        choice, objective, total = (np.take_along_axis(a, order, axis=0) for a in (choice, objective, total))
        states = [_gather([fit.state for fit in fits], members) for members in order]
        flags = [fit.converged for fit in fits if fit.converged is not None]
        converged = [flags[i][k] for k, i in enumerate(order[0])] if flags else None
        run.step_memory, run.step_operations, step = fits[0].step_memory, fits[0].step_operations, end
    winner = replace(_candidate(programs, group, states[0], run, step), converged=converged)
    return choice[0], winner, (objective[0], total[0] / max(step, 1), group.total)


def _trials(
    programs: Programs, group: Group, states: Iterable[State], advance: _Advance, run: Fit, ends: Sequence[int]
) -> Float[np.ndarray, "C E S"]:
    """Criterion of each candidate after each of these numbers of steps, one candidate after another."""
    scores = []
    for state in states:
        fit = _candidate(programs, group, state, run)
        scores.append([advance(fit, end)[0] for end in ends])
        _add_seconds(run, [fit], 0.0)
    return np.array(scores)


def _candidate(programs: Programs, group: Group, state: State, run: Fit, step: int = 0) -> Fit:
    """A candidate of a run in this state; its steps are reported as the run's search."""
    report = lambda name: run.on_part("compile" if name == "compile" else "search")
    return Fit(programs.devices.by_rows(state, rows=group.X.shape[1]), step, on_part=report)


def _add_seconds(run: Fit, fits: Sequence[Fit], share: float) -> None:
    """Adds the seconds of candidates: this share of their steps is the run's training, all else its search."""
    spent = {name: sum(fit.seconds[name] for fit in fits) for name in run.seconds}
    run.cpu_seconds += sum(fit.cpu_seconds for fit in fits)
    run.seconds["compile"] += spent["compile"]
    run.seconds["train"] += spent["train"] * share
    run.seconds["search"] += spent["train"] * (1.0 - share) + spent["evaluate"]


def _candidates(functions: Sequence[Callable[[State], State]], state: State) -> list[State]:
    """The states of all members that each function of one member's state makes, in memory of their own."""
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state)) * len(functions)
    require_memory(size, f"the states of {len(functions)} candidates", "candidates")
    members, stack = _members(state), lambda *leaves: jnp.stack(leaves)
    return [jax.tree.map(stack, *(function(member) for member in members)) for function in functions]


def _choose(functions: Sequence[Callable[[State], State]], state: State, choice: Int[np.ndarray, " S"]) -> State:
    """The state in which every member has its choice among the candidates."""
    states = [functions[i](member) for i, member in zip(choice, _members(state), strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def _members(state: State) -> list[State]:
    leaves, structure = jax.tree.flatten(state)
    return [jax.tree.unflatten(structure, [leaf[k] for leaf in leaves]) for k in range(len(leaves[0]))]


def _gather(states: Sequence[State], members: Int[np.ndarray, " S"]) -> State:
    """The state whose k-th member is that of the state `members[k]`."""
    if len(members) == 1:
        return states[members[0]]
    return jax.tree.map(lambda *leaves: jnp.stack([leaves[i][k] for k, i in enumerate(members)]), *states)


_RANGE, _ROUNDS = (0.05, 20.0), 30  # of a factor, and of golden sections, which leave 4e-6 of its logarithm
_GOLDEN = 0.5 * (3.0 - 5.0**0.5)
_MISSED = 0.05  # the part of new rows that may be outside their intervals

_Factors = Float[np.ndarray, " S"]
_Predict = Callable[[_Factors], Predictions]  # of the rows that were kept out, with a factor for each member


def recalibrated(programs: Programs, group: Group, fit: Fit) -> tuple[Group, Predictions]:
    """The group with each member's factor, whose predictions the trained run has from here on, and those before."""
    before, change = fit.predictions, group.changes.recalibration
    if change is None or group.kept_out is None:
        return group, before
    everywhere = programs.devices.everywhere
    (X, z), step_keys = everywhere((group.kept_out, group.step_keys))
    # predictions of what methods train on: a transform adds the same to a log density for all factors
    changes = replace(group.changes, warp=None, threshold=None)
    judged = replace(group, X_test=X, y_test=z, step_keys=step_keys, changes=changes)

    def with_factor(group: Group, factor: _Factors) -> Group:
        own = Recalibration(jnp.asarray(factor, group.X.dtype), change.name)
        return replace(group, changes=everywhere(replace(group.changes, recalibration=own)))

    def predict(by: Programs, factor: _Factors) -> Predictions:
        by.predict(with_factor(judged, factor), fit)
        return fit.predictions

    if change.name == "conformal":
        factor = _conformal(partial(predict, programs), group.kept_out[1])
    else:
        factor = _best(partial(predict, programs.of_trials(programs.method)), group.size)
    X_test, y_test = everywhere((group.X_test, group.y_test))
    group = replace(with_factor(group, factor), X_test=X_test, y_test=y_test, step_keys=step_keys)
    programs.predict(group, fit)
    return group, before


def _best(predict: _Predict, size: int) -> _Factors:
    """The factors with the largest mean log density, by golden sections."""
    score = lambda logs: np.nan_to_num(predict(np.exp(logs))["log_prob"].mean(axis=1), nan=-np.inf)
    low, high = (np.full(size, np.log(end)) for end in _RANGE)
    lower, upper = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
    of_lower, of_upper = score(lower), score(upper)
    for _ in range(_ROUNDS):
        is_lower = of_lower >= of_upper
        low, high = np.where(is_lower, low, lower), np.where(is_lower, upper, high)
        new = np.where(is_lower, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        lower, upper = np.where(is_lower, new, upper), np.where(is_lower, lower, new)
        of_new = score(new)
        of_lower, of_upper = np.where(is_lower, of_new, of_upper), np.where(is_lower, of_lower, of_new)
    return np.exp(0.5 * (low + high))


def _conformal(predict: _Predict, z: Float[np.ndarray, "S n"]) -> _Factors:
    """The factors of split-conformal intervals (Lei et al. 2018), which cover at least 95 % of exchangeable rows."""
    middle, half = middle_and_half(predict(np.ones(len(z))))
    scores = np.sort(np.abs(z - middle) / half, axis=1)
    return scores[:, int(np.ceil((scores.shape[1] + 1) * (1.0 - _MISSED))) - 1]
