"""A prior on the lengthscales, a floor of the noise, and hyper-parameters that users give in the units of the file."""

import re
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose
from problems import KEY, binary, objective_of, regression, train
from scipy.stats import norm

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.core.kernels import LengthscalePrior, Periodic, kernel_spec, lengthscale_prior
from gpbench.core.optimisers import adaptive_rates
from gpbench.errors import ConfigError
from gpbench.estimators import Regressor
from gpbench.methods.additive.gam import GAM
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.sep import SEP
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.protocols import learned
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vsgpr import VSGPR
from gpbench.records import identity
from gpbench.records.plan import RunPlan
from gpbench.train.batches import whole
from gpbench.train.context import Context, load

NARROW = {"median": 2.0, "spread": 1e-3}


def test_the_density_is_that_of_the_logarithms_and_its_median_grows_with_the_root_of_the_inputs():
    X = jnp.asarray(np.random.default_rng(0).normal(size=(9, 4)))
    spec = kernel_spec({"sum": ["matern32", {"squared_exponential": {"isotropic": True}}, "linear"]})
    kernel = spec.initial(X, start="median")
    lengthscales = [kernel.parts[0].lengthscales, kernel.parts[1].lengthscales]
    expected = sum(norm(np.log(2.0 * np.sqrt(4)), 0.7).logpdf(np.log(part)).sum() for part in lengthscales)
    assert_allclose(LengthscalePrior(2.0, 0.7).log_prob(kernel, 4), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "make, data",
    [
        (lambda **p: SEP(inducing=6, optimiser=adaptive_rates(), **p), binary(25)),
        (lambda **p: GFITC(inducing=6, tolerance=1e-11, **p), binary(25)),
        (lambda **p: SVI(inducing=6, **p), regression(25)),
        (lambda **p: VSGPR(inducing=6, **p), regression(25)),
        (lambda **p: GPR(**p), regression(25)),
    ],
    ids=["sep", "gfitc", "svi", "vsgpr", "gpr"],
)
def test_the_objective_includes_the_prior(make, data):
    free, held = make(), make(lengthscale_prior=NARROW)
    state = free.init(data, key=KEY)
    kernel = state.parameters if hasattr(state, "parameters") else state
    kernel = getattr(kernel, "layer", kernel).kernel
    prior = LengthscalePrior(**NARROW).log_prob(kernel, 2)
    reported = [train(method, data, 1)[1][0] for method in (free, held)]
    assert_allclose(reported[1] - reported[0], prior, rtol=1e-8)
    difference = objective_of(held, held.init(data, key=KEY), data) - objective_of(free, state, data)
    assert_allclose(difference, prior, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["matern32", "periodic"])
def test_lengthscales_of_gam_have_the_prior_in_units_of_the_inputs(kernel):
    """They are trained in units of the training rows' range, and lengths on a circle without a unit; a component of two
    inputs has the median of two."""

    make = lambda **fields: GAM(kernel=kernel, **fields).init_parameters(regression(25), key=KEY).layer
    layer = make(pairs=[[0, 1]], lengthscale_prior={"median": 2.0, "spread": 0.7})
    widths, expected = np.ptp(regression(25).X, axis=0) if kernel == "matern32" else np.ones(2), 0.0
    for stack in layer.stacks:
        scales = np.exp(0.5 * stack.kernel.bases.kernel.log_lengthscale2)[:, :, 0] * widths[np.array(stack.inputs)]
        expected += norm(np.log(2.0 * np.sqrt(scales.shape[1])), 0.7).logpdf(np.log(scales)).sum()
    assert_allclose(layer.log_prior(), expected, rtol=1e-12)
    assert make().log_prior() == 0.0


@pytest.mark.parametrize("deep", [DGP, DSDGP], ids=["dgp", "dsdgp"])
def test_the_loss_of_deep_models_includes_the_prior_of_every_layer(deep):
    fields = {"inducing": 4, "hidden": [3], "start": "rows", "optimiser": optax.adam(0.01)}
    data, free, held = regression(10), deep(**fields), deep(**fields, lengthscale_prior=NARROW)
    parameters = free.init_parameters(data, key=KEY)
    losses = [jax.jit(method.loss)(parameters, data, key=KEY)[0] for method in (free, held)]
    prior = LengthscalePrior(**NARROW)
    expected = sum(prior.log_prob(layer.kernel, inputs) for layer, inputs in zip(parameters.layers, (2, 3)))
    assert_allclose(losses[0] - losses[1], expected, rtol=1e-8)


@pytest.mark.parametrize("method", [GPR(noise_floor=0.01), VSGPR(inducing=12, noise_floor=0.01)])
def test_the_noise_of_targets_without_any_ends_at_its_floor(method):
    data = regression(25)
    data = eqx.tree_at(lambda data: data.y, data, jnp.sin(data.X[:, 0]))
    state, _ = train(method, data, 60)
    assert 0.01 <= float(state.parameters.likelihood.noise) < 0.0101


@pytest.mark.parametrize("value", [3, {"median": 1.0}, {"median": 0.0, "spread": 1.0}, {"median": 1.0, "spread": "x"}])
def test_what_is_no_prior_is_one_line(value):
    with pytest.raises(ConfigError, match=r"method\.lengthscale_prior=.*: must be null, or "):
        lengthscale_prior(value)
    assert lengthscale_prior(None) is None


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
METHODS["qsgp"] = ["method.features=inducing", "method.basis=null", "method.optimiser=null", "method.subset_rows=null"]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_starts_from_a_period_in_the_units_of_the_file(name):
    """gam scales inputs once more, to [0, 1]; later layers of a deep GP have no unit."""
    cfg = compose([f"method={name}", "method.kernel={periodic: {period: 7.0}}", *METHODS[name]])
    method = build_method(cfg["method"])
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
