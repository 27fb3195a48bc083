"""Successive halving: the winner is that of a full search; settings that a run chooses by validation rows."""

import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import chosen_state
from toys import StopAfter, equal, fitted, group

from gpbench.core.optimisers import decaying_adam
from gpbench.core.predictive import BernoulliPredictive, GaussianPredictive
from gpbench.errors import ConfigError, Stopped
from gpbench.methods.base import Info, Method
from gpbench.methods.vi.svi import SVI
from gpbench.schema import setting
from gpbench.train import search
from gpbench.train.batches import whole
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.group import PARTS, initial
from gpbench.train.loop import Cadence, fit
from gpbench.train.programs import Programs
from gpbench.train.search import _rungs


class Race(Method):
    """Logistic regression by noisy gradient ascent, whose step size is in the state."""

    def init(self, data, *, key):
        return {"w": 0.1 * jax.random.normal(key, data.X.shape[1:]), "rate": jnp.asarray(0.5)}

    def with_rate(self, state, rate):
        return {**state, "rate": jnp.full_like(state["rate"], rate)}

    def step(self, state, batch, *, key):
        def log_likelihood(w):
            return batch.sum(jax.nn.log_sigmoid(batch.y * (batch.X @ w)))

        value, slope = jax.value_and_grad(log_likelihood)(state["w"])
        noise = jax.random.normal(key, slope.shape)
        return {**state, "w": state["w"] + state["rate"] * (slope / batch.total + 0.1 * noise)}, Info(value)

    def predict(self, state, X, *, key):
        logits = X @ state["w"]
        return BernoulliPredictive(jax.nn.log_sigmoid(-logits), jax.nn.log_sigmoid(logits))


RATES = (1e-6, 0.3, 1e-4, 0.01)


def race(**fields):
    return Race(**{"name": "race", "steps": 40, "batch_size": 7, "trial_steps": 16, "halving": True, **fields})


@cache
def trained(splits, **fields):
    """A training of `race` without a stop, once for all tests."""
    return fitted(race(**fields), group(splits))


@pytest.mark.parametrize(
    ("candidates", "trial", "steps", "ends"),
    [(1, 100, 500, []), (2, 100, 500, [100]), (3, 100, 500, [50, 100]), (20, 2000, 9999, [125, 250, 500, 1000, 2000]),
     (8, 2, 500, [1, 2]), (3, 100, 60, [30])],
)  # fmt: skip
def test_rungs_are_halves_of_the_trial(candidates, trial, steps, ends):
    assert _rungs(candidates, trial, steps) == ends


@pytest.mark.parametrize("splits", [(0,), (0, 1, 2)], ids=["alone", "together"])
def test_the_best_rate_of_a_monotone_world_wins_and_its_training_is_that_of_it_alone(splits):
    """The step sizes are so small that a larger one is ahead after any number of steps."""
    found, alone = trained(splits, rates=RATES), trained(splits, rates=(0.3,))
    np.testing.assert_array_equal(found.state["rate"], np.full(len(splits), 0.3))
    assert equal(found.state, alone.state)
    assert list(found.trace["step"]) == [16, 26, 36, 40]
    np.testing.assert_array_equal(found.trace["objective"][-1], alone.trace["objective"][-1])


def test_the_trace_of_a_search_has_the_mean_of_all_objectives_and_a_rate_that_diverges_never_wins():
    found, alone = trained((0,), rates=RATES), trained((0,), rates=(0.3,), steps=16)
    steps = np.diff([0, *alone.trace["step"]])
    whole = np.sum(alone.trace["objective_mean"][:, 0] * steps) / 16
    np.testing.assert_allclose(found.trace["objective_mean"][0], whole)
    run = fitted(race(rates=(float("1e300"), 0.3)), group((0,)))
    assert np.isfinite(run.state["w"]).all() and run.state["rate"] == 0.3
    assert all(run.seconds[part] > 0.0 for part in PARTS)


class Tail(Method):
    """Predicts the mean of the targets with a variance that is a setting; carries what its rows were."""

    carries_over = True

    def init(self, data, *, key):
        return {"mean": jnp.mean(data.y), "width": jnp.asarray(1.0), "steps": jnp.asarray(0.0)}

    def step(self, state, batch, *, key):
        return {**state, "steps": state["steps"] + batch.total}, Info(-jnp.sum((batch.y - state["mean"]) ** 2))

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state["mean"]), jnp.full(len(X), state["width"] ** 2))

    def settings(self, state):
        return {"width": state["width"]}

    def with_settings(self, state, settings):
        return {**state, "width": jnp.full_like(state["width"], settings["width"])}


class Settled(Tail):
    """One whose state is made from its rows."""

    carries_over = False


def tail(cls, **fields):
    search = {"width": [1e200, 30.0, 3.0, 1.0, 0.01]}
    return cls(**{"name": "tail", "steps": 16, "trial_steps": 8, "search": search, "halving": True, **fields})


def test_settings_are_those_of_a_full_search_and_validation_rows_join_or_training_starts_again():
    members = replace(group((0, 1)), classes=0)
    run = fitted(tail(Tail), members)
    data = [whole(members.X[k], members.y[k], members.classes) for k in range(members.size)]
    by_trials = tail(Tail, halving=False)
    widths = [chosen_state(by_trials, rows, key=key)["width"] for rows, key in zip(data, members.init_keys)]
    np.testing.assert_array_equal(run.state["width"], widths)
    np.testing.assert_array_equal(run.state["steps"], 8 * 32.0 + 8 * 40.0)
    np.testing.assert_array_equal(run.trace["rows"], [32, 40])
    assert list(run.trace["step"]) == [8, 16]
    run = fitted(tail(Settled), members)
    np.testing.assert_array_equal(run.state["width"], fitted(tail(Tail), members).state["width"])
    np.testing.assert_array_equal(run.state["steps"], 16 * 40.0)
    np.testing.assert_array_equal(run.state["mean"], initial(tail(Settled), members)["mean"])
    assert list(run.trace["step"]) == [10, 16] and list(run.trace["rows"]) == [40, 40]
    run = fitted(race(rates=RATES, halving=False), group((0,)))
    assert list(run.trace["step"]) == [10, 20, 30, 40] and "rows" not in run.trace


def test_what_is_stopped_after_or_in_a_search_ends_as_what_is_not(tmp_path):
    """A stop waits for the end of the search; a search that was killed has left nothing, and starts again."""
    members, method, whole = group((0,)), race(rates=RATES), trained((0,), rates=RATES)
    checkpoint = Checkpoint(tmp_path, "race")
    with pytest.raises(Stopped, match="step 16 of 40"):
        fitted(method, members, checkpoint, stop=StopAfter(0))
    resumed = fitted(method, members, checkpoint)
    assert equal(resumed.state, whole.state)
    np.testing.assert_array_equal(resumed.trace["objective"], whole.trace["objective"])
    checkpoint.delete()

    class Killed(Programs):
        def advance(self, group, run, steps):
            if run.step == 7:  # of the 8 of the first round
                raise KeyboardInterrupt
            return super().advance(group, run, steps)

    with pytest.raises(KeyboardInterrupt):
        fit(Killed(method), members, cadence=Cadence(10, 0.0), checkpoint=checkpoint)
    assert not checkpoint.path.exists()
    assert equal(fitted(method, members, checkpoint).state, whole.state)


def test_a_method_of_the_package_goes_on_from_its_winner():
    optimiser = {"optimiser": decaying_adam(), "natural_step": 0.1, "batch_size": 16}
    fields = {"name": "svi", "inducing": 5, "steps": 12, "trial_steps": 8, "halving": True, **optimiser}
    members = group((0,))
    found = fitted(SVI(rates=(0.1, 1e-3, 1e-6), **fields), members)
    rate = float(found.state.optimiser.rate[0])
    assert equal(found.state, fitted(SVI(rates=(rate,), **fields), members).state)


KEY = jax.random.key(0)


class Width(Tail):
    """The same, with a setting of another kind."""

    damping: float = setting(0.5, "fraction", "Damping, which it has no use for.")


class Plain(Width):
    """One that no run can choose anything of."""

    def settings(self, state):
        return {}


def data(n=200):
    rng = np.random.default_rng(0)
    return whole(jnp.asarray(rng.normal(size=(n, 1))), jnp.asarray(rng.normal(2.0, 0.3, size=n)))


def test_the_setting_with_the_largest_density_of_validation_rows_is_chosen_one_not_finite_never_and_null_nothing():
    method = Width(name="width", search={"width": [float(np.float64(1e200)), 1.0, 0.3, 0.1]}, trial_steps=2)
    assert chosen_state(method, data(), key=KEY)["width"] == 0.3
    assert Width(name="width", search=None).search == ()
    assert Width(name="width", search={"width": [1.0], "other": None}).search == (("width", (1.0,)),)
    assert search._order(np.array([0.1, math.inf, math.nan]))[0] == 0
    assert search._order(np.array([math.nan, -math.inf]))[0] == 0


@pytest.mark.parametrize(
    ("cls", "search", "message"),
    [
        (Width, {"width": [1.0]}, r"needs 5 validation rows, .* there are 20 training rows: set"),
        (Width, {"width": [1.0], "height": [2.0]}, r"^method\.search: width can choose width, not height$"),
        (Plain, {"width": [1.0]}, r"^method\.search: width has no settings to choose$"),
        (Width, {"damping": [0.5, 2.0]}, r"method.search.damping=2.0: must be a number above 0 and up to 1"),
        *((Width, search, ".") for search in (3, {"width": []}, {"width": 1.0}, {"width": ["a"]})),
    ],
)
def test_a_search_that_cannot_be_made_is_one_line(cls, search, message):
    with pytest.raises((ConfigError, TypeError, AttributeError), match=message):
        chosen_state(cls(name="width", search=search), data(20 if "validation" in message else 200), key=KEY)


def test_a_row_of_weight_two_counts_twice_in_the_choice():
    """The targets of the rows with large weights scatter more, and so the chosen standard deviation is larger."""
    rng = np.random.default_rng(0)
    X, is_wide = jnp.zeros((400, 1)), jnp.arange(400) % 2 == 0
    y = jnp.where(is_wide, 1.0, 0.1) * rng.normal(size=400)
    method = Width(name="width", search={"width": [0.3, 1.0]}, trial_steps=2)
    choices = [
        chosen_state(method, whole(X, y, weight=jnp.where(is_wide, weight, 1.0)), key=KEY)["width"]
        for weight in (1e-3, 1e3)
    ]
    assert choices == [0.3, 1.0]
