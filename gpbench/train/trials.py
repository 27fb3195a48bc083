"""Settings that a run chooses for itself: a step size by its objective, others by validation rows."""

import dataclasses
import itertools
import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Method
from gpbench.methods.protocols import STOP, HasConvergence, HasRates, HasSearch, State
from gpbench.train import batches
from gpbench.train.batches import prediction_key, take_step, validation_key
from gpbench.train.faults import predictive

_VALIDATION = 0.2  # the part of the training rows on which settings are compared
_FEWEST = 5  # validation rows that a comparison needs


def best_settings(method: Method, data: Batch, *, key: PRNGKeyArray) -> dict[str, float]:
    """The combination of `method.search` with the largest mean log density of validation rows.

    A random fifth of the training rows is held out; with each combination the method takes `trial_steps` steps on the
    others, from the same start.  Combinations that differ only in `stop_after` are points of one trial, which is as
    long as the largest of them.  All trials share one program.  A combination that diverges is chosen only where all
    do, and of equal ones the first is.  Raises ConfigError for too few rows, and for a setting that the method does not
    have among its `settings`.
    """
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
    if len(choices := combinations(trial, start)) == 1:
        return choices[0]
    others_of = lambda choice: tuple((name, value) for name, value in choice.items() if name != STOP)
    scores = {}
    for others in dict.fromkeys(map(others_of, choices)):
        state, t = trial.with_settings(start, dict(others)), 0
        for end in ends:
            state, score = _validated(trial, state, fit, validation, jnp.asarray(t), jnp.asarray(end), key)
            scores[others, end], t = float(score), end
    return choices[_best([scores[others_of(choice), end_of(choice)] for choice in choices])]


def validation_split(rows: int, *, key: PRNGKeyArray) -> tuple[Int[np.ndarray, " F"], Int[np.ndarray, " V"]]:
    """The index of the training rows of a run that train in a choice of settings, and of the random fifth of all that
    is held back.  Raises ConfigError: there are too few rows."""
    n = round(_VALIDATION * rows)
    if n < _FEWEST:
        raise ConfigError(
            f"method.search needs {_FEWEST} validation rows, a fifth of the training rows, and there are"
            f" {rows} training rows: set method.search=null"
        )
    order = np.asarray(jax.random.permutation(validation_key(key), rows))
    return order[n:], order[:n]


def combinations(method: Method, state: State) -> list[dict[str, float]]:
    """The combinations of `method.search`.  Raises ConfigError: the state has no setting of such a name."""
    assert isinstance(method, HasSearch)
    names, values = zip(*method.search)
    if unknown := set(names) - (known := method.settings(state).keys()):
        choice = f"can choose {' and '.join(known)}, not {min(unknown)}" if known else "has no settings to choose"
        raise ConfigError(f"method.search: {method.name} {choice}")
    return [dict(zip(names, choice)) for choice in itertools.product(*values)]


def _best(scores: list[float]) -> int:
    """The number of the largest score; what is not finite has diverged, and counts as the smallest."""
    return max(range(len(scores)), key=lambda k: scores[k] if math.isfinite(scores[k]) else -math.inf)


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
    """The one of `method.rates` with the largest objective after `trial_steps` steps (paper `svdgp`, section 4).  The
    objective, a minibatch's, is averaged over the last fifth of the steps.  A rate that diverges is chosen only where
    all do."""
    assert isinstance(method, HasRates)
    jax.eval_shape(partial(predictive, method, key=key), state, data.X[:1])  # wrong predictions are said before trials
    return method.rates[_best([float(_trial(method, method.with_rate(state, r), data, key)) for r in method.rates])]


@eqx.filter_jit
def _trial(method: Method, state: State, data: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
    def one_step(state, t):
        state, info = take_step(method, state, data, t, key=key)
        return state, info.objective

    _, objectives = jax.lax.scan(one_step, state, jnp.arange(method.trial_steps))
    return jnp.mean(objectives[-max(1, method.trial_steps // 5) :])
