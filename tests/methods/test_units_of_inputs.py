"""Hyper-parameters that users give are in the units of the file, whatever the scaling: of each kernel and method."""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.core.kernels import Periodic, kernel_spec
from gpbench.estimators import Regressor
from gpbench.methods.protocols import learned
from gpbench.records import identity
from gpbench.records.plan import RunPlan
from gpbench.train.batches import whole
from gpbench.train.context import Context, load

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RNG = np.random.default_rng(0)
DAYS = np.sort(RNG.choice(700, 160, replace=False)).astype(float)
YIELD = np.exp(np.sin(2 * np.pi * DAYS / 7)) + 0.05 * RNG.normal(size=160)
ROWS = np.c_[DAYS, RNG.normal(5.0, 20.0, 160)]
WEEK = {"period": 7.0}


def rmse(options):
    train = RNG.permutation(160) < 140
    model = Regressor("gpr", options={"method.steps": 60, **options}).fit(DAYS[train, None], YIELD[train])
    return np.sqrt(np.mean((model.predict(DAYS[~train, None]) - YIELD[~train]) ** 2))


@pytest.mark.parametrize("scaler", ["standardise", "unit_interval", "none"])
def test_a_period_is_in_days_under_every_scaling(scaler):
    """As the table of yields by day, whose own exact GP with a period of a week has an RMSE near the noise."""
    week = {"method.kernel": {"periodic": WEEK}, "protocol.inputs": scaler}
    assert rmse(week) < 0.1 < 0.3 < rmse({**week, "method.kernel": {"periodic": {"period": 0.05}}})


def periods(tree):
    """The periods of all periodic kernels, in units of training."""
    return np.exp(np.concatenate([np.ravel(kernel.log_period) for kernel in learned(tree, Periodic)]))


SPECS = {
    "alone": {"periodic": WEEK},
    "of one input": {"periodic": {**WEEK, "inputs": [1]}},
    "one lengthscale": {"periodic": {**WEEK, "isotropic": True}},
    "sum": {"sum": ["linear", {"periodic": WEEK}]},
    "product": {"product": [{"periodic": WEEK}, {"squared_exponential": {"inputs": [0]}}]},
    "nested": {"sum": [{"product": ["matern32", {"periodic": {**WEEK, "inputs": [1]}}]}, "constant"]},
    "anova": {"anova": {"base": {"periodic": WEEK}}},
}


@pytest.mark.parametrize("value", SPECS.values(), ids=SPECS)
def test_every_kernel_divides_a_period_by_the_unit_of_its_input(value):
    unit = np.array([200.0, 20.0])
    kernel = kernel_spec(value).initial(jnp.asarray(ROWS / unit), start="median", unit=unit)
    plain = kernel_spec(value).initial(jnp.asarray(ROWS / unit), start="median")
    of_input = unit[[1]] if "inputs': [1]" in str(value) else unit
    np.testing.assert_allclose(periods(kernel), 7.0 / of_input, rtol=1e-12)
    np.testing.assert_allclose(periods(plain), 7.0, rtol=1e-12)


def test_without_a_period_training_starts_from_one_unit_of_its_inputs():
    X, unit = jnp.asarray(ROWS), np.array([200.0, 20.0])
    for value, count in (("periodic", 2), ({"periodic": {"isotropic": True}}, 1)):
        kernel = kernel_spec(value).initial(X, start="median", unit=unit)
        np.testing.assert_array_equal(periods(kernel), np.ones(count))


METHODS = {"svi": ["method.inducing=5"], "vsgpr": ["method.inducing=5"], "gpr": [], "sep": ["method.inducing=5"]}
METHODS |= {"gfitc": ["method.inducing=5"], "pep": ["method.inducing=5"], "cagp": ["method.actions=5"]}
METHODS |= {"vif": ["method.inducing=5", "method.neighbours=3"], "sgpr_greedy": ["method.inducing=5"]}
METHODS |= {"gam": ["method.inducing=5"], "dsdgp": ["method.inducing=5", "method.hidden=[1]"]}
METHODS |= {"svgp": ["method.inducing=5", "method.subset_rows=null"]}
METHODS |= {
    "qsgp": ["method.features=inducing", "method.basis=null", "method.optimiser=null", "method.subset_rows=null"]
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_starts_from_a_period_in_the_units_of_the_file(name):
    """gam scales inputs once more, to [0, 1]; later layers of a deep GP have no unit."""
    method = build_method(
        compose([f"method={name}", "method.kernel={periodic: {period: 7.0}}", *METHODS[name]])["method"]
    )
    is_binary, unit = method.tasks == {"binary"}, ROWS.std(axis=0)
    y = np.sign(YIELD - np.median(YIELD) + 1e-9) if is_binary else YIELD - YIELD.mean()
    data = whole(jnp.asarray(ROWS / unit), jnp.asarray(y), 2 * is_binary, unit=jnp.asarray(unit))
    started = periods(method.init(data, key=jax.random.key(0)))
    np.testing.assert_allclose(started[:2], 7.0 / (np.ptp(ROWS, axis=0) if name == "gam" else unit), rtol=1e-6)


def test_a_kernel_of_ones_own_is_told_the_unit(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    unit = np.array([200.0, 20.0])
    value = {"_target_": "cosine.Cosine", "period": 6.0}
    kernel = kernel_spec(value).initial(jnp.asarray(ROWS), start="median", unit=unit)
    np.testing.assert_allclose(np.exp(kernel.log_period), 6.0 / unit)
    assert "cosine" in sys.modules


def test_each_split_has_units_of_its_own(tmp_path):
    words = ["dataset=sinc", "method=gpr", "split=[0,1]", f"run.results={tmp_path}"]
    context = Context(plan := RunPlan.from_config(compose(words)))
    group, prepared = load(context, plan.runs)
    np.testing.assert_array_equal(group.unit, [part.X_scale for part in prepared])
    assert group.unit[0] != group.unit[1]


def test_a_period_makes_another_run_than_one_in_scaled_units_did_and_nothing_else_does():
    def ids(kernel):
        cfg = compose(["dataset=sinc", "method=gpr", f"method.kernel={kernel}"])
        return identity.identify(cfg, "checksum")

    assert "units" not in ids("periodic") and "units" not in ids("{periodic: {period: null}}")
    assert ids("{periodic: {period: 7}}")["units"] == "original"
    assert ids("{sum: [linear, {periodic: {period: 7}}]}")["units"] == "original"


@pytest.mark.parametrize("value", ["periodic", "matern52", "orthogonal", "linear"])
def test_descriptions_of_kernels_say_what_their_units_are(value):
    kernel = kernel_spec(value).initial(jnp.asarray(ROWS), start="median")
    assert re.search(r"of scaled inputs\)$", kernel.describe())
