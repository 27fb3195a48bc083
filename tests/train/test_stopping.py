"""Training that stops where validation rows are likeliest: against paths of single steps, and trainings of so many."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from samples import chosen_state
from scipy.stats import norm
from toys import StopAfter, equal, fitted, job

from gpbench.core.optimisers import decaying_adam
from gpbench.core.predictive import GaussianPredictive
from gpbench.data.splits import Member
from gpbench.errors import ConfigError, Stopped
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.ep.pep import PowerEP
from gpbench.methods.parts.stopping import StopMethod
from gpbench.train.batches import take_step, whole
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.group import Fit, Group, initial
from gpbench.train.programs import Programs, lay_out
from gpbench.train.search import search, validation_split

STOPS = (200, 5, 40, 15)
SPLITS = (0, 1, 3)
"""Splits of which each stops elsewhere."""
ADAM = optax.adam(0.03)


class Line(StopMethod):
    """Least squares with a trained noise, which falls too far where the inputs are nearly as many as the rows."""

    def init_parameters(self, data, *, key):
        return {"w": jnp.zeros(data.X.shape[1]), "log_scale": jnp.asarray(0.0)}

    def loss(self, parameters, batch, *, key):
        rest = batch.y - batch.X @ parameters["w"]
        scale = jnp.exp(parameters["log_scale"])
        return batch.sum(0.5 * (rest / scale) ** 2 + parameters["log_scale"]), None

    def predict(self, state, X, *, key):
        scale = jnp.exp(state.parameters["log_scale"])
        return GaussianPredictive(X @ state.parameters["w"], jnp.full(len(X), scale**2))


def line(**fields):
    return Line(**{"name": "line", "steps": 200, "batch_size": 16, "optimiser": ADAM, **fields})


def members(splits=(0,), n=60, d=12):
    random = [np.random.default_rng([7, k]) for k in splits]
    X = np.stack([r.normal(size=(n + 10, d)) for r in random])
    y = X[..., 0] + 0.5 * np.stack([r.normal(size=n + 10) for r in random])
    keys = jnp.stack([jax.random.key(k) for k in splits])
    arrays = {"X": X[:, :n], "y": y[:, :n], "X_test": X[:, n:], "y_test": y[:, n:]}
    rows = {name: jnp.asarray(part) for name, part in arrays.items()}
    return Group(members=[Member(k) for k in splits], rows=n, **rows, classes=0, init_keys=keys, step_keys=keys)


@jax.jit
def steps(state, X, y, start, end, key):
    return jax.lax.fori_loop(start, end, lambda t, s: take_step(line(), s, whole(X, y), t, key=key)[0], state)


def path(X, y, key):
    """The parameters after each of `STOPS`, of the steps of a method without a stop."""
    state, states, start = line().init(whole(X, y), key=key), {}, 0
    for stop in sorted(STOPS):
        state, start = steps(state, X, y, start, stop, key), stop
        states[stop] = state.parameters
    return [states[stop] for stop in STOPS]


def densities(X, y, key):
    """Mean density of the validation rows after each of `STOPS`."""
    rows, others = validation_split(len(y), key=key)
    outputs = [(X[others] @ p["w"], np.exp(p["log_scale"])) for p in path(X[rows], y[rows], key)]
    return [norm.logpdf(y[others], mean, scale).mean() for mean, scale in outputs]


@cache
def searched():
    return fitted(line(search={"stop_after": STOPS}), members(SPLITS))


def test_training_stops_at_the_candidate_that_makes_validation_rows_likeliest():
    group, run = members(SPLITS), searched()
    rows = list(zip(group.X, group.y, group.init_keys, strict=True))
    best = [int(np.argmax(densities(*row))) for row in rows]
    np.testing.assert_array_equal(run.state.clock.stop_after, [STOPS[k] for k in best])
    assert len({*best}) == 3
    for i, (k, row) in enumerate(zip(best, rows, strict=True)):
        for name, values in path(*row)[k].items():
            np.testing.assert_allclose(run.state.parameters[name][i], values, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        lambda **fields: line(**fields),
        lambda **fields: DGP(name="dgp", inducing=3, steps=12, batch_size=16, optimiser=ADAM, **fields),
        lambda **fields: PowerEP(name="fitc_gp", alpha=1.0, inducing=3, steps=12, **fields),
    ],
    ids=["line", "dgp", "fitc_gp"],
)
def test_one_candidate_trains_as_no_search_does(method):
    group = members(d=2)
    steps = method().steps
    plain, single = fitted(method(), group), fitted(method(search={"stop_after": (steps,)}), group)
    assert plain.state.clock is None and single.state.clock is not None
    assert equal(plain.state.parameters, single.state.parameters) and plain.step == single.step
    assert single.seconds["search"] < single.seconds["train"] + single.seconds["compile"]


def test_one_trial_passes_through_all_candidates_and_without_a_stop_settings_are_what_they_were(monkeypatch):
    group = members()
    data = whole(group.X[0], group.y[0])
    state = line().init(data, key=group.init_keys[0])
    assert state.clock is None and line().settings(state) == {} and line().converged(state) is None
    assert {cls.searchable for cls in (DGP, DSDGP, PowerEP)} == {("stop_after",)}
    data, taken = members(), []
    advance = Programs.advance

    def recorded(self, group, run, steps):
        taken.append((run.step, run.step + steps))
        return advance(self, group, run, steps)

    monkeypatch.setattr(Programs, "advance", recorded)
    batch = whole(data.X[0], data.y[0])
    chosen_state(line(search={"stop_after": (40, 1000, 5, 15, 200)}), batch, key=data.init_keys[0])
    assert taken == [(0, 5), (5, 15), (15, 40), (40, 200)]  # steps=200: 1000 is no other candidate


@pytest.mark.parametrize(
    ("method", "optimum"),
    [(line(stop_after=5), None), (PowerEP(name="fitc_gp", alpha=1.0, inducing=3, steps=12, stop_after=5), False)],
    ids=["line", "fitc_gp"],
)
def test_training_that_stopped_has_not_converged(method, optimum):
    """It is over after the next point of the trace; the optimiser's own criterion, if any, goes into the record."""
    run = fitted(method, members(d=2))
    state = jax.tree.map(lambda leaf: leaf[0], run.state)
    assert run.over and run.converged == [True] and method.converged(state) and state.clock.count == 5
    assert method.optimum(state) is None if optimum is None else bool(method.optimum(state)) is optimum


def test_a_record_has_the_steps_of_its_state_and_not_those_of_the_last_chunk(tmp_path):
    sparse = ["dataset=sinc", "method=svi", "method.inducing=3", "method.batch_size=16", "method.steps=40"]
    (record,) = job(tmp_path, *sparse, "method.stop_after=12")
    assert record.steps == record.settings["stop_after"] == 12


def test_what_is_stopped_after_the_search_ends_as_what_is_not(tmp_path):
    method, group, checkpoint = line(search={"stop_after": STOPS}), members(SPLITS), Checkpoint(tmp_path, "line")
    with pytest.raises(Stopped, match="step 10 of 200"):
        fitted(method, group, checkpoint, stop=StopAfter(0))
    resumed = fitted(method, group, checkpoint)
    assert equal(resumed.state, searched().state)
    np.testing.assert_array_equal(resumed.trace["objective"], searched().trace["objective"])


@pytest.mark.parametrize(
    ("fields", "line_of_text"),
    [
        ({"stop_after": 201}, r"^method\.stop_after=201 must be at most method\.steps=200$"),
        ({"search": {"stop_after": (5, 2.5)}}, r"^method\.search\.stop_after=2\.5: must be a whole number from 1"),
        ({"search": {"stop_after": (5,)}, "stop_after": 5}, r"^method\.stop_after=5 leaves nothing to choose: set it "),
        ({"search": {"stop_after": (5,)}, "halving": True}, r"^method\.halving=true drops candidates before they stop"),
    ],
)
def test_a_wrong_value_is_one_line(fields, line_of_text):
    group = members()
    with pytest.raises(ConfigError, match=line_of_text):
        line(**fields).init(whole(group.X[0], group.y[0]), key=group.init_keys[0])


def test_trials_of_settings_have_the_optimisers_own_rate_and_compile_once():
    """Whatever is in `rates`, the first of which would diverge: they are chosen after the settings."""
    data = members()
    fields = {"search": {"stop_after": (5, 40)}, "optimiser": decaying_adam(rate=0.03), "trial_steps": 9}
    method = line(rates=(1e9, 0.05), **fields)
    rows = whole(data.X[0], data.y[0])
    stops = [chosen_state(m, rows, key=data.init_keys[0]).clock.stop_after for m in (method, line(**fields))]
    assert stops[0] == stops[1]
    programs = Programs(method)
    for shift, compiles in ((0.0, True), (0.5, False)):
        group = replace(data, X=data.X + shift)
        run = Fit(initial(method, group))
        search(programs, group, lay_out(programs.devices, group), run, 9)
        assert (run.seconds["compile"] > 0.0) == compiles
