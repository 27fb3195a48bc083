"""`svi` from the hyper-parameters of an exact GP of some rows, and with hyper-parameters that stay fixed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import multivariate_normal
from problems import KEY, binary, objective_of, regression, train

from gpbench.core.greedy import select_rows
from gpbench.core.kernels import LengthscalePrior
from gpbench.errors import ConfigError
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.exact import ExactGP, log_posterior
from gpbench.methods.vi.svi import SVI
from gpbench.train.batches import whole

ROWS = 30
ADAM = {"optimiser": optax.adam(0.02)}
"""Of q and the inducing points, and of the rest where that is learned."""


def of(task, dtype):
    """60 rows in this precision."""
    data = regression(60) if task == "regression" else binary(60)
    return whole(data.X.astype(dtype), data.y.astype(dtype), data.classes)


def started(data, **fields):
    """The kernel and noise that `svi` starts from, as an exact GP."""
    parameters = SVI(name="svi", inducing=6, subset_rows=ROWS, **fields).init(data, key=KEY).parameters
    return ExactGP(parameters.layer.kernel, parameters.likelihood)


@pytest.mark.parametrize("prior", [None, LengthscalePrior(1.0, 1.0)], ids=["no prior", "prior"])
def test_the_start_is_where_the_exact_gps_evidence_is_largest(prior):
    data = of("regression", "float64")
    start = started(data, lengthscale_prior=prior)
    loss = lambda gp: -log_posterior(gp, data.first(ROWS), prior)[0]
    least, gradient = jax.jit(jax.value_and_grad(loss))(start)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 0.0, atol=1e-3)
    gpr = GPR(name="gpr", rows=ROWS, lengthscale_prior=prior)
    best, objective = train(gpr, data, 200)
    assert gpr.converged(best)
    np.testing.assert_allclose(-least, objective[-1], rtol=1e-8)
    np.testing.assert_allclose(ravel_pytree(start)[0], ravel_pytree(best.parameters)[0], atol=1e-5)


def test_a_start_in_float32_is_that_of_float64_to_rounding():
    single, double = (started(of("regression", dtype), noise_floor=1e-3) for dtype in ("float32", "float64"))
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {jnp.dtype("float32")}
    np.testing.assert_allclose(ravel_pytree(single)[0], ravel_pytree(double)[0], atol=0.02)
    assert single.likelihood.floor == 1e-3


def test_the_inducing_points_are_the_same_from_either_start_and_a_few_rows_are_all_there_are():
    data = of("regression", "float64")
    states = [SVI(name="svi", inducing=6, subset_rows=rows).init(data, key=KEY) for rows in (None, 60, 1000)]
    for state in states[1:]:
        np.testing.assert_array_equal(state.parameters.layer.features.Z, states[0].parameters.layer.features.Z)
    same = [ravel_pytree(state.parameters)[0] for state in states[1:]]
    np.testing.assert_array_equal(*same)


def test_greedy_inducing_points_are_those_of_the_kernel_that_training_starts_from():
    data = of("regression", "float64")
    layer = SVI(name="svi", inducing=6, subset_rows=ROWS, start="greedy").init(data, key=KEY).parameters.layer
    np.testing.assert_array_equal(layer.features.Z, data.X[select_rows(layer.kernel, data.X, 6).index])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("regression", {}),
        ("regression", ADAM),
        ("regression", ADAM | {"natural_step": "auto", "subset_rows": ROWS}),
        ("regression", ADAM | {"natural_step": 0.3, "subset_rows": ROWS, "batch_size": 20, "noise_floor": 1e-6}),
        ("regression", {"optimiser": optax.adamw(0.02, weight_decay=0.1)}),
        ("binary", ADAM | {"natural_step": 0.3}),
    ],
    ids=["lbfgs", "adam", "natural", "minibatches", "weight decay", "binary"],
)
def test_fixed_hyper_parameters_keep_every_bit_while_the_bound_rises(task, fields, dtype):
    data, method = of(task, dtype), SVI(name="svi", inducing=6, fixed=True, **fields)
    start = method.init(data, key=KEY)
    state, _ = train(method, data, 60, start)
    hyper = lambda state: (state.parameters.layer.kernel, state.parameters.layer.log_noise, state.parameters.likelihood)
    assert eqx.tree_equal(hyper(state), hyper(start))
    for part in (lambda p: p.layer.features, lambda p: p.q):
        assert not np.allclose(ravel_pytree(part(state.parameters))[0], ravel_pytree(part(start.parameters))[0])
    assert objective_of(method, state, data) > objective_of(method, start, data) + 1.0


def test_classes_have_no_such_start():
    fields = {"name": "svi", "inducing": 6, "batch_size": 20, "natural_step": None}
    starts = [SVI(subset_rows=rows, **ADAM, **fields).init(of("binary", "float64"), key=KEY) for rows in (None, 10)]
    assert eqx.tree_equal(*(start.parameters for start in starts))


def test_learned_hyper_parameters_have_a_higher_bound_than_fixed_ones():
    data, fields = of("regression", "float64"), {"name": "svi", "inducing": 6, "subset_rows": 10}
    fixed, learned = (train(SVI(fixed=flag, **fields), data, 150)[1][-1] for flag in (True, False))
    assert learned > fixed + 1.0


@pytest.mark.parametrize(
    "method, key",
    [(SVI(name="svi", inducing=6, subset_rows=ROWS), "method.subset_rows"), (GPR(name="gpr"), "method.rows")],
    ids=["svi", "gpr"],
)
def test_an_exact_gp_that_memory_cannot_hold_is_refused_before_it_is_trained(method, key, monkeypatch):
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=f"^11 covariance matrices of .* in an exact GP need .* fewer rows .{key}"):
        method.init(of("regression", "float64"), key=KEY)


@pytest.mark.parametrize("prior", [None, LengthscalePrior(1.0, 1.0)], ids=["no prior", "prior"])
def test_the_closed_form_of_the_evidences_gradient_is_its_derivative(prior):
    """Against that of JAX's own Cholesky factor, and against differences of values."""
    X, y = regression(30).X, regression(30).y
    data = whole(X, y)
    gp = GPR(name="gpr").init(data, key=KEY).parameters
    direct = lambda gp: (
        multivariate_normal.logpdf(y, jnp.zeros(30), gp.covariance(X))
        + (0.0 if prior is None else prior.log_prob(gp.kernel, X.shape[1]))
    )
    ours, theirs = (ravel_pytree(jax.grad(f)(gp))[0] for f in (lambda gp: log_posterior(gp, data, prior)[0], direct))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    x, unravel = ravel_pytree(gp)
    value = lambda x: log_posterior(unravel(x), data, prior)[0]
    step = 1e-5 * np.eye(len(x))
    differences = [(value(x + h) - value(x - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(ours, differences, rtol=1e-5, atol=1e-5)
    slope = jax.grad(lambda y: gp.evidence(X, y, data.weight)[0])(y)
    np.testing.assert_allclose(slope, -np.linalg.solve(gp.covariance(X), y), rtol=1e-6, atol=1e-8)
