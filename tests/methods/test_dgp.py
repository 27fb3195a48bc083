"""Deep GPs by approximate EP and by sampling: moments, fixed points and the limits where they are other methods."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import KERNEL, KEY, bound_of, inputs, objective_of, predict, regression, train
from references import gp_prediction
from scipy.optimize import minimize

from gpbench.core.gaussians import Normal, residual
from gpbench.core.psi import Moments
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.parts.deep_layers import DeepLayer, LayerPosterior, of_output
from gpbench.methods.parts.deep_moments import Projection, propagate
from gpbench.methods.parts.sparse_layer import SparseLayer
from gpbench.methods.vi import svi
from gpbench.methods.vi.svi import SVI
from gpbench.train.batches import whole

ADAM = optax.adam(0.02)
RANDOM = np.random.default_rng(0)
LAYER = DeepLayer(KERNEL, jnp.asarray(np.log(0.02)), jnp.asarray(RANDOM.normal(size=(2, 5, 2))))
Q = jax.vmap(Normal)(RANDOM.normal(size=(2, 5)), np.tril(RANDOM.normal(size=(2, 5, 5))) + 2 * np.eye(5))
POSTERIOR = jax.jit(LayerPosterior.create)(LAYER, Q)
MEAN = jnp.asarray(RANDOM.normal(size=(3, 2)))
SQUARE = RANDOM.normal(size=(3, 2, 2)) * 0.5
COV = jnp.asarray(SQUARE @ SQUARE.transpose(0, 2, 1) + 0.05 * np.eye(2))


# As in problems.py, what is evaluated here is one program, not one for every operation.
energy_of = jax.jit(DGP.tied_energy)
moments_at = jax.jit(LayerPosterior.moments_at)
update = jax.jit(lambda method, parameters, data: method.update(parameters, None, data)[0])


def dgp(**fields):
    return DGP(name="dgp", **{"inducing": 5, "optimiser": ADAM, **fields})


@pytest.mark.parametrize("full", [False, True])
def test_propagated_moments_are_those_of_samples(full):
    """100,000 inputs a row, within five standard errors; the outputs given an input are independent normals."""
    samples = 100_000
    diagonal = np.diagonal(COV, axis1=1, axis2=2)
    cov = np.asarray(COV) if full else np.einsum("ni,ij->nij", diagonal, np.eye(2))
    h = Moments(MEAN, COV if full else jnp.asarray(diagonal))
    ours = jax.jit(lambda h: propagate(Projection.create(POSTERIOR), h, full=full))(h)
    roots = np.linalg.cholesky(cov)
    for row in range(len(MEAN)):
        x = np.asarray(MEAN)[row] + RANDOM.normal(size=(samples, 2)) @ roots[row].T
        given = moments_at(POSTERIOR, jnp.asarray(x))
        mean, spread = np.asarray(given.mean), np.asarray(given.mean).std(axis=0) / np.sqrt(samples)
        assert np.all(np.abs(np.asarray(ours.mean)[row] - mean.mean(axis=0)) < 5 * spread)
        centred = mean - mean.mean(axis=0)
        products = np.einsum("si,sj->sij", centred, centred) + np.einsum("si,ij->sij", np.asarray(given.cov), np.eye(2))
        expected, error = products.mean(axis=0), products.std(axis=0) / np.sqrt(samples) + 1e-12
        row_cov = np.asarray(ours.cov)[row]
        difference = np.abs((row_cov if full else np.diag(row_cov)) - expected)
        assert np.all((difference < 5 * error)[np.ones((2, 2), bool) if full else np.eye(2, dtype=bool)])


def test_without_hidden_layers_a_stationary_point_has_the_averaged_moments_of_its_tilted_distributions():
    """Section 4.2: F's factor matches the averages over rows, and is thus not FITC, whose factors differ by row."""
    X = inputs(12)
    data = whole(X, jnp.asarray(np.sin(2 * np.asarray(X)[:, 0])))
    method = dgp(hidden=(), inducing=3)
    start = method.init(data, key=KEY).parameters
    flat, unravel = ravel_pytree(start.factors)

    @jax.jit
    def energy(x):
        value = lambda x: -method.tied_energy(eqx.tree_at(lambda p: p.factors, start, unravel(x)), data)
        return jax.value_and_grad(value)(x)

    end = minimize(energy, flat, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    factors = unravel(jnp.asarray(end.x))[0]
    layer = start.layers[0]

    @jax.jit
    def posterior_and_cavity(layer, factors):
        A = layer.whitening()
        return factors.posterior(layer, A)[0], factors.posterior(layer, A, 1 - 1 / 12)[0]

    q, cavity = jax.tree.map(np.asarray, posterior_and_cavity(layer, factors))
    cov = jax.tree.map(np.asarray, jax.jit(lambda layer: layer.unit(layer.Z[0]).covariances(X))(layer))
    L = np.linalg.cholesky(cov.zz + 1e-10 * np.mean(np.diag(cov.zz)) * np.eye(3))
    V = np.linalg.solve(L, cov.zx)
    noise = cov.xx - np.sum(V**2, axis=0) + float(start.likelihood.noise)
    moments = lambda q: (q.mean[0], np.tril(q.root[0]).T @ np.tril(q.root[0]))
    (mean, S), (m, C) = moments(q), moments(cavity)
    means, squares = [], []
    for n in range(12):  # the cavity times N(yₙ | Vₙᵀw, noiseₙ)
        gain = C @ V[:, n] / (V[:, n] @ C @ V[:, n] + noise[n])
        tilted = m + gain * (float(data.y[n]) - V[:, n] @ m)
        means.append(tilted)
        squares.append(C - np.outer(gain, V[:, n] @ C) + np.outer(tilted, tilted))
    np.testing.assert_allclose(np.mean(means, axis=0), mean, atol=1e-6)
    np.testing.assert_allclose(np.mean(squares, axis=0), S + np.outer(mean, mean), atol=1e-6)


def test_the_energy_of_a_small_power_is_the_variational_bound():
    """Without hidden layers; the difference is of the order of the power."""
    data = regression(20)
    parameters = dgp(hidden=(), inducing=4).init(data, key=KEY).parameters

    @jax.jit
    def bound_of(parameters):
        layer, factors, likelihood = parameters.layers[0], parameters.factors[0], parameters.likelihood
        q, _ = factors.posterior(layer, layer.whitening())
        h = LayerPosterior.create(layer, q).moments_at(data.X)
        expected = jnp.sum(likelihood.expected_log_prob(h.mean[:, 0], h.cov[:, 0], data.y))
        return expected - jax.vmap(Normal.kl)(q)[0]

    bound = float(bound_of(parameters))
    energies = [energy_of(dgp(hidden=(), alpha=alpha), parameters, data) for alpha in (1e-2, 1e-3, 1e-4)]
    gaps = np.asarray(energies) - bound
    assert abs(gaps[2]) < 1e-3 * abs(bound)
    np.testing.assert_allclose(np.divide(gaps[:2], gaps[1:]), 10.0, rtol=0.05)


def stochastic_ep(method, data, steps):
    """The parameters after full-batch steps of stochastic EP alone."""
    parameters = method.init(data, key=KEY).parameters
    for _ in range(steps):
        parameters = update(method, parameters, data)
    return parameters


def test_stochastic_ep_without_hidden_layers_has_the_posterior_of_fitc():
    """A row's factor of a Gaussian likelihood does not depend on the cavity: one step reaches their product."""
    data = regression(20)
    parameters = stochastic_ep(dgp(hidden=(), energy="sep", damping=1.0), data, 1)
    layer, factors = parameters.layers[0], parameters.factors[0]

    @jax.jit
    def rows_of(layer):
        cov = layer.unit(layer.Z[0]).covariances(data.X)
        V = layer.whitening()[0] @ cov.zx
        return V, residual(cov, V) + parameters.likelihood.noise

    V, noise = map(np.asarray, rows_of(layer))
    np.testing.assert_allclose(factors.root[0], (V / noise) @ V.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(factors.shift[0], V @ (data.y / noise), rtol=1e-8, atol=1e-8)


def test_one_layer_with_every_row_inducing_is_the_exact_gp():
    """Sections 2 and 3: mean and variance of stochastic EP's posterior, which is FITC's, against dense algebra."""
    data, X = regression(15), inputs(7, seed=5)
    method = dgp(hidden=(), inducing=15, energy="sep", damping=1.0)
    at_rows = eqx.tree_at(lambda s: s.parameters.layers[0].Z, method.init(data, key=KEY), data.X[None])
    parameters = update(method, at_rows.parameters, data)
    kernel, noise = parameters.layers[0].kernel, float(parameters.likelihood.noise)
    K, k = (np.asarray(kernel.cross(data.X, x)) for x in (data.X, X))
    predictive = predict(method, eqx.tree_at(lambda s: s.parameters, at_rows, parameters), X)
    mean, variance = gp_prediction(K + noise * np.eye(15), k, np.asarray(kernel.diag(X)), data.y, noise)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(predictive.var, variance, rtol=1e-5)


def test_tied_factors_are_numbers_of_order_l_m_squared_whatever_the_rows():
    """A shift and a matrix of each unit, where full EP has as many of each row: the same again are Adam's moments."""

    def counts(rows, M, hidden):
        state = dgp(hidden=hidden, inducing=M).init(regression(rows), key=KEY)
        return [sum(leaf.size for leaf in jax.tree.leaves(part)) for part in (state.parameters.factors, state)]

    first = counts(20, 4, (1,))
    assert first == counts(40, 4, (1,)) and first[0] == 2 * 4 * 5 and first[1] < 3 * first[0] + 100
    assert counts(20, 8, (1,))[0] == 2 * 8 * 9 and counts(20, 4, (1, 1, 1))[0] == 4 * 4 * 5


@pytest.mark.parametrize("equal", [True, False])
def test_a_fixed_point_of_stochastic_ep_is_one_of_the_tied_energy_where_all_rows_are_alike(equal):
    """The one averages natural parameters of the rows' factors, the other the moments of the tilted distributions."""
    few = regression(4)
    rows = jnp.zeros(4, int) if equal else jnp.arange(4)
    data = whole(few.X[rows], few.y[rows])
    # with a hidden layer the rows' factors depend on the cavity; without one a step reaches the fixed point
    method = dgp(hidden=(1,) if equal else (), inducing=3, energy="sep", damping=1.0)
    parameters = stochastic_ep(method, data, 300)
    again = update(method, parameters, data)
    np.testing.assert_allclose(again.factors[0].root, parameters.factors[0].root, rtol=1e-6, atol=1e-8)
    energy = lambda factors: method.tied_energy(eqx.tree_at(lambda p: p.factors, parameters, factors), data)
    gradient = jax.jit(jax.grad(energy))(parameters.factors)
    largest = max(np.abs(leaf).max() for leaf in map(np.asarray, jax.tree.leaves(gradient)))
    assert largest < 1e-7 if equal else largest > 1e-4


def test_matched_log_z_is_near_that_of_samples_at_a_trained_state():
    """20,000 paths through the hidden layer for each of 8 rows: mean error below .02 nats and five standard errors."""
    data, method = regression(40), dgp(hidden=(2,))
    state, _ = train(method, data, 300)
    first, last = jax.jit(method.posteriors)(state.parameters)
    likelihood, X, y = state.parameters.likelihood, data.X[:8], data.y[:8]
    matched = predict(method, state, X).log_prob(y)
    h = moments_at(first, X)
    draws = np.asarray(h.mean) + np.sqrt(h.cov) * RANDOM.normal(size=(20_000, 8, 2))
    log_prob = lambda h: likelihood.predictive(*of_output(last.moments_at(h))).log_prob(y)
    densities = np.exp(jax.jit(jax.vmap(log_prob))(draws))
    error = densities.std(axis=0) / densities.mean(axis=0) / np.sqrt(20_000)
    assert np.mean(np.abs(matched - np.log(densities.mean(axis=0)))) < 0.02 + 5 * error.mean()


def test_sampled_predictions_have_the_moments_of_matched_ones_where_paths_hardly_differ():
    data = regression(30)
    state = dgp(hidden=(2,)).init(data, key=KEY)
    matched, sampled = (
        predict(dgp(hidden=(2,), predictive=kind, samples=512), state, data.X[:8]) for kind in ("moments", "sample")
    )
    np.testing.assert_allclose(sampled.mean, matched.mean, atol=0.05)
    np.testing.assert_allclose(sampled.var, matched.var, rtol=0.2)


@pytest.mark.parametrize(("classes", "y"), [(2, [-1.0, 1.0]), (3, [0.0, 1.0, 2.0])])
def test_classes_have_probabilities_that_sum_to_one(classes, y):
    X = inputs(30)
    labels = jnp.asarray(np.array(y)[np.random.default_rng(0).integers(classes, size=30)])
    data, method = whole(X, labels, classes), dgp(hidden=(1,))
    state = method.init(data, key=KEY)
    predictive = predict(method, state, X[:4])
    total = sum(np.exp(predictive.log_prob(jnp.full(4, code))) for code in y)
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)
    assert np.isfinite(objective_of(method, state, data))


@pytest.mark.parametrize("hidden", [(2,), (2, 2)])
def test_stochastic_ep_stays_proper_where_rows_imply_no_factor(hidden):
    """From the start of a deep model some rows' tilted covariances are not positive definite; q's must be."""
    data, method = regression(40), dgp(hidden=hidden, energy="sep", damping=1.0)
    parameters = stochastic_ep(method, data, 20)
    for factors in parameters.factors:
        precisions = np.eye(5) + np.asarray(factors.root)
        assert np.linalg.eigvalsh(precisions).min() > 0.0
    assert np.isfinite(energy_of(method, parameters, data))


def dsdgp(**fields):
    return DSDGP(name="dsdgp", **{"inducing": 5, "optimiser": ADAM, **fields})


def test_without_hidden_layers_the_bound_is_svis():
    data, method = regression(), dsdgp(hidden=())
    state, _ = train(method, data, 30)
    p = state.parameters
    q = jax.tree.map(lambda leaf: leaf[0], p.q[0])
    layer: SparseLayer = p.layers[0].unit(p.layers[0].Z[0])
    ours = -jax.jit(lambda p: method.loss(p, data, key=KEY)[0])(p)
    parameters = svi.VariationalParameters(layer, p.likelihood, q)
    theirs = bound_of(SVI(name="svi", inducing=5, optimiser=ADAM), parameters, data)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_one_set_of_points_for_all_units_is_as_good_as_equal_ones_for_each():
    data, method = regression(20), dsdgp(hidden=(3,))
    state, _ = train(method, data, 30)
    shared = method.posteriors(state.parameters)[0]
    assert shared.layer.Z.shape == (1, 5, 2) and shared.q.mean.shape == (3, 5)
    layer = eqx.tree_at(lambda one: one.Z, shared.layer, jnp.tile(shared.layer.Z, (3, 1, 1)))
    each = LayerPosterior.create(layer, shared.q)
    assert np.ptp(shared.moments_at(data.X).mean, axis=1).max() > 0.01
    of_both = jax.tree.leaves(shared.moments_at(data.X)), jax.tree.leaves(each.moments_at(data.X))
    for one, other in zip(*of_both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_hidden_layers_start_at_their_linear_mean_and_a_narrow_first_one_at_principal_components():
    data, method = regression(20), dsdgp(hidden=(2, 1))
    start = method.init(data, key=KEY).parameters
    np.testing.assert_allclose(start.means[0], np.eye(2))
    state, _ = train(method, data, 5)
    assert eqx.tree_equal(state.parameters.means, start.means)
    assert not eqx.tree_equal(state.parameters.layers, start.layers)
    X = inputs(50) @ jnp.asarray([[3.0, 0.0], [0.0, 0.1]])
    data = eqx.tree_at(lambda b: b.X, regression(50), X)
    (axis,) = dsdgp(hidden=(1,)).init(data, key=KEY).parameters.means
    np.testing.assert_allclose(np.abs(axis[:, 0]), [1.0, 0.0], atol=0.05)


def test_a_layer_has_as_many_units_as_inputs_and_at_most_a_quarter_of_the_paths():
    data = regression(20)
    D = data.X.shape[1]
    for deep in (dsdgp, partial(dgp, predictive="sample")):
        states = [deep(hidden=hidden).init(data, key=KEY) for hidden in (("inputs", 1), (D, 1))]
        assert eqx.tree_equal(*states)
        predicted = [predict(deep(hidden=hidden), states[0], data.X) for hidden in (("inputs", 1), (D, 1))]
        assert eqx.tree_equal(*predicted)
    assert dsdgp(hidden=("inputs",), samples=8).widths(jnp.zeros((3, 9))) == (2,)
