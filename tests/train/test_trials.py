"""Settings that a run chooses by validation rows of its own training rows."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import chosen_state

from gpbench.core.predictive import GaussianPredictive
from gpbench.errors import ConfigError
from gpbench.methods.base import Info, Method
from gpbench.schema import setting
from gpbench.train import search
from gpbench.train.batches import whole

KEY = jax.random.key(0)


class State(eqx.Module):
    mean: jax.Array
    width: jax.Array


class Width(Method):
    """Predicts the mean of the targets, with a standard deviation that is a setting."""

    damping: float = setting(0.5, "fraction", "Damping, which it has no use for.")

    def init(self, data, *, key):
        return State(jnp.mean(data.y), jnp.asarray(1.0))

    def step(self, state, batch, *, key):
        return state, Info(-jnp.sum((batch.y - state.mean) ** 2))

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state.mean), jnp.full(len(X), state.width**2))

    def with_settings(self, state, settings):
        return eqx.tree_at(lambda s: s.width, state, jnp.asarray(settings["width"]))

    def settings(self, state):
        return {"width": state.width}


class Plain(Width):
    """One that no run can choose anything of."""

    def settings(self, state):
        return {}


def data(n=200):
    rng = np.random.default_rng(0)
    return whole(jnp.asarray(rng.normal(size=(n, 1))), jnp.asarray(rng.normal(2.0, 0.3, size=n)))


def test_the_setting_with_the_largest_density_of_validation_rows_is_chosen_and_one_that_diverges_never():
    method = Width(name="width", search={"width": [float(np.float64(1e200)), 1.0, 0.3, 0.1]}, trial_steps=2)
    assert chosen_state(method, data(), key=KEY).width == 0.3


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


def test_null_chooses_nothing_and_for_a_name_leaves_it_out():
    assert Width(name="width", search=None).search == ()
    assert Width(name="width", search={"width": [1.0], "other": None}).search == (("width", (1.0,)),)


def test_a_row_of_weight_two_counts_twice_in_the_choice():
    """The targets of the rows with large weights scatter more, and so the chosen standard deviation is larger."""
    rng = np.random.default_rng(0)
    X, is_wide = jnp.zeros((400, 1)), jnp.arange(400) % 2 == 0
    y = jnp.where(is_wide, 1.0, 0.1) * rng.normal(size=400)
    method = Width(name="width", search={"width": [0.3, 1.0]}, trial_steps=2)
    choices = [
        chosen_state(method, whole(X, y, weight=jnp.where(is_wide, weight, 1.0)), key=KEY).width
        for weight in (1e-3, 1e3)
    ]
    assert choices == [0.3, 1.0]


def test_what_is_not_finite_is_chosen_only_where_all_is():
    assert search._order(np.array([0.1, math.inf, math.nan]))[0] == 0
    assert search._order(np.array([math.nan, -math.inf]))[0] == 0
