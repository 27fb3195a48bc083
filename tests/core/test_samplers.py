"""Which states a sampler keeps, in which order, and with which weights they predict."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.samplers import Samples, blackjax, schedule
from gpbench.errors import ConfigError


def kept(steps, **settings):
    """The schedule's size, and the states 1 .. steps in the order in which they are kept, as arrays hold them."""
    plan = schedule(steps, **settings)
    samples = Samples.empty(jnp.asarray(0), plan.size)
    for step in range(1, steps + 1):
        samples = samples.extend(jnp.asarray(step), plan.keeps(jnp.asarray(step)))
    return samples


@pytest.mark.parametrize(
    "settings, states",
    [
        ({"samples": 3, "burn_in": 0.25, "thinning": 2}, [7, 9, 11]),
        ({"samples": 9, "burn_in": 0.25, "thinning": 2}, [5, 7, 9, 11]),
        ({"samples": 3, "burn_in": 0.5}, [8, 10, 12]),
        ({"samples": 5}, [4, 6, 8, 10, 12]),
        ({"samples": 99}, list(range(1, 13))),
    ],
)
def test_the_last_states_after_the_burn_in_are_kept_in_order(settings, states):
    samples = kept(12, **settings)
    np.testing.assert_array_equal(samples.in_order(), states)
    np.testing.assert_array_equal(samples.log_weights(float), np.zeros(len(states)))


def test_slots_without_a_sample_have_no_weight():
    samples = Samples.empty(jnp.asarray(0.0), 3)
    np.testing.assert_array_equal(samples.or_current(jnp.asarray(7.0)), [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(samples.log_weights(float), [0.0, -np.inf, -np.inf])
    samples = samples.extend(jnp.asarray(1.0), jnp.asarray(True)).extend(jnp.asarray(2.0), jnp.asarray(True))
    np.testing.assert_array_equal(samples.or_current(jnp.asarray(7.0)), [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(samples.log_weights(float), [0.0, 0.0, -np.inf])


@pytest.mark.parametrize("settings", [{"burn_in": 1.0}, {"thinning": 13}, {"burn_in": 0.5, "thinning": 7}])
def test_a_schedule_that_keeps_nothing_is_refused(settings):
    with pytest.raises(ConfigError, match=r"no samples: of method.steps=12 the first .* others is kept; take more"):
        schedule(12, 5, **settings)


def test_a_missing_blackjax_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ConfigError, match=r"^method=hmc needs blackjax: pip install .* in the checkout$"):
        blackjax("hmc")
