"""`sep`: limits where it must agree with something else, its gradients, its minibatches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, curved, predict, sep, start_layer, train
from references import dense_ep
from scipy.stats import norm

from gpbench.core.ep import approximate_gradient, marginals
from gpbench.core.features import InducingPoints
from gpbench.core.gaussians import Sites, residual, site_product, unit_factor
from gpbench.core.likelihoods import Probit
from gpbench.core.optimisers import adaptive_rates
from gpbench.errors import ConfigError
from gpbench.methods.base import inducing_count
from gpbench.methods.ep.sep import RunningProducts
from gpbench.train.batches import whole

ADAPTIVE = adaptive_rates(1e-2)


def probability(method, state, X):
    """P(y = +1) at the rows of X."""
    return np.exp(predict(method, state, X).log_positive)


@pytest.fixture(scope="module")
def data():
    """43 rows: by 10, they end in a short batch."""
    return curved(43)


def test_with_every_point_inducing_it_equals_full_ep():
    data = curved(20)
    method = sep(inducing=20, update="outer", tolerance=1e-12, damping=0.8)
    layer = method.init(data, key=KEY).layer
    layer = eqx.tree_at(lambda l: l.features, layer, InducingPoints(data.X))
    state, objective = train(method, data, 1, start_layer(method, data, layer))
    K = np.asarray(layer.kernel.cross(data.X, data.X)) + 1e-10 * np.eye(20)
    log_z, _, _, mu, Sigma = dense_ep(K, np.asarray(data.y), extra=1e-3)
    np.testing.assert_allclose(objective[-1], log_z, rtol=1e-6)

    X_new = jnp.asarray(np.random.default_rng(5).normal(size=(7, 2)))
    k = np.asarray(layer.kernel.cross(data.X, X_new))
    weights = np.linalg.solve(K, k)
    mean = weights.T @ mu
    variance = 1.0 + 1e-3 - np.sum(k * weights, 0) + np.sum(weights * (Sigma @ weights), 0)
    expected = norm.logcdf(mean / np.sqrt(1 + variance))
    np.testing.assert_allclose(predict(method, state, X_new).log_positive, expected, atol=1e-6)


DIRECTIONS = {
    "amplitude": (lambda l: l.kernel.log_amplitude, ()),
    "noise": (lambda l: l.log_noise, ()),
    "l0": (lambda l: l.kernel.log_lengthscale2, 0),
    "z00": (lambda l: l.features.Z, (0, 0)),
    "z31": (lambda l: l.features.Z, (3, 1)),
}
"""Numbers of a layer: the array that each is in, and its place there."""


@pytest.fixture(scope="module", params=[False, True], ids=["noise on x", "noise on x and z"])
def converged(request):
    """Fields, data, EP's fixed point, and finite differences of its energy in every direction."""
    data, step = curved(20), 1e-4
    fields = {"update": "outer", "tolerance": 1e-13, "damping": 0.8, "noise": 0.05, "noise_on_inducing": request.param}
    frozen = sep(inducing=5, **fields)
    state, _ = train(frozen, data, 1)
    run = jax.jit(lambda layer: frozen.step(eqx.tree_at(lambda s: s.layer, state, layer), data, key=KEY)[1].objective)
    at = lambda of, place, d: run(eqx.tree_at(of, state.layer, of(state.layer).at[place].add(d)))
    expected = {name: (at(*where, step) - at(*where, -step)) / (2 * step) for name, where in DIRECTIONS.items()}
    return {"inducing": 5, **fields}, data, state, expected


@pytest.mark.parametrize("gradient", ["approximate", "exact", "scalars"])
def test_every_gradient_is_that_of_the_converged_energy(gradient, converged):
    fields, data, state, expected = converged
    # with rate 1, gradient descent moves the hyper-parameters by exactly the gradient of the energy
    moving = sep(optimiser=optax.sgd(1.0), gradient=gradient, **fields)
    moved, _ = train(moving, data, 1, state)
    step = jax.tree.map(lambda a, b: a - b, moved.layer, state.layer)
    for name, (of, place) in DIRECTIONS.items():
        np.testing.assert_allclose(of(step)[place], expected[name], rtol=2e-4, atol=2e-5, err_msg=name)


def test_equation_4_is_the_gradient_of_dense_eps_log_z_once_it_has_converged_and_not_before():
    """With every point inducing, where only the prior depends on the amplitude and the lengthscale: eqs. 33 to 35."""
    data = curved(6)
    X, y = np.asarray(data.X), np.asarray(data.y)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    K = lambda p: np.exp(p[0] - 0.5 * squares * np.exp(-2 * p[1])) + 1e-6 * np.eye(6)
    at, h = np.array([0.4, -0.2]), 1e-4
    for sweeps, agrees in ((15, True), (1, False)):
        *_, mu, Sigma = dense_ep(K(at), y, sweeps=sweeps)
        inverse = np.linalg.inv(K(at))
        M = inverse - inverse @ (Sigma + np.outer(mu, mu)) @ inverse
        for e in np.eye(2):
            slope = -0.5 * np.sum(M * (K(at + h * e) - K(at - h * e))) / (2 * h)
            total = [dense_ep(K(at + s * h * e), y, sweeps=sweeps)[0] for s in (1, -1)]
            assert (abs(slope - (total[0] - total[1]) / (2 * h)) < 1e-5) == agrees


def test_closed_form_of_the_approximate_gradient_equals_autodiff_of_equation_4():
    """Away from convergence, and with weights: the surrogate written out with stopped gradients."""
    n = 12
    data = curved(n)
    state, _ = train(sep(noise=0.1, inducing=5), data, 3)
    cov = jax.jit(lambda layer: layer.covariances(data.X))(state.layer)
    sites, weight, A = state.sites, jnp.linspace(0.5, 2.0, n), state.approximation.A

    @jax.jit
    def ours(cov):
        V = A @ cov.zx
        q = site_product(V, sites).posterior()
        at = marginals(q, V, V, sites)
        return q, approximate_gradient(Probit(), data.y, residual(cov, V), A, V, q, at, sites, weight)

    @jax.jit
    def literal(cov, q):
        L = jnp.linalg.inv(A)
        Sigma, mean = L @ q.root.T @ q.root @ L.T, L @ q.mean
        v = jnp.linalg.solve(cov.zz, cov.zx)
        K_inverse = jnp.linalg.inv(cov.zz)
        prior = K_inverse - K_inverse @ Sigma @ K_inverse - jnp.outer(K_inverse @ mean, K_inverse @ mean)
        # cavity of every point in the space of u, to be held fixed
        precision, shift = jnp.linalg.inv(Sigma), jnp.linalg.solve(Sigma, mean)
        spreads = jax.vmap(lambda nu, v: jnp.linalg.inv(precision - nu * jnp.outer(v, v)))(sites.nu, v.T)
        means = jax.vmap(lambda C, tau, v: C @ (shift - tau * v))(spreads, sites.tau, v.T)

        def surrogate(cov):
            v = jnp.linalg.solve(cov.zz, cov.zx)
            along = jnp.sum(v * means.T, axis=0)
            variance = cov.xx - jnp.sum(cov.zx * v, axis=0) + jnp.einsum("mn,nmk,kn->n", v, spreads, v)
            return -0.5 * jnp.sum(prior * cov.zz) + jnp.sum(weight * Probit().log_normaliser(along, variance, data.y))

        return jax.grad(surrogate)(cov)

    q, closed = ours(cov)
    expected = literal(cov, q)
    np.testing.assert_allclose(closed.xx, expected.xx, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(closed.zx, expected.zx, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(closed.zz, 0.5 * (expected.zz + expected.zz.T), rtol=1e-4, atol=1e-5)


def test_inner_updates_reach_the_energy_of_outer_updates():
    """Figure 1, left: what is left between the two is less than 15 % of what training gained."""
    data = curved(60)
    inner, outer = (train(sep(update=update, optimiser=ADAPTIVE), data, 500)[1] for update in ("inner", "outer"))
    assert outer[-1] - outer[0] > 5.0
    assert abs(outer[-1] - inner[-1]) < 0.15 * (outer[-1] - outer[0])


def test_shuffled_rows_give_the_same_posterior(data):
    order = np.random.default_rng(1).permutation(43)
    shuffled = whole(data.X[order], data.y[order], 2)
    method = sep(optimiser=ADAPTIVE)
    start = method.init(data, key=KEY)
    ours, other = (train(method, rows, 30, start)[0] for rows in (data, shuffled))
    X = jnp.asarray(np.random.default_rng(2).normal(size=(5, 2)))
    log_positive = [predict(method, state, X).log_positive for state in (ours, other)]
    np.testing.assert_allclose(*log_positive, atol=1e-7)
    np.testing.assert_allclose(ours.layer.features.Z, other.layer.features.Z, atol=1e-6)


def test_each_lengthscale_moves_by_its_own_gradient_and_an_isotropic_kernel_has_one(data):
    state, _ = train(sep(optimiser=ADAPTIVE), data, 30)
    assert float(jnp.ptp(state.layer.kernel.log_lengthscale2)) > 0.01
    state, _ = train(sep(optimiser=ADAPTIVE, kernel={"squared_exponential": {"isotropic": True}}), data, 30)
    assert state.layer.kernel.log_lengthscale2.shape == (1,)


def as_minibatch(method, data, state):
    """The state of a run on minibatches, so that a batch of all rows takes the minibatch's path."""
    m, n = len(state.layer.features.Z), len(data.y)
    flat = unit_factor(m, data.X.dtype)
    directions = jnp.zeros((n, m)) if method.memory == "factors" else None
    return eqx.tree_at(
        lambda s: s.running, state, RunningProducts(flat, flat, directions, jnp.zeros(())), is_leaf=lambda x: x is None
    )


@pytest.mark.parametrize("memory", ["factors", "scalars"])
def test_a_minibatch_of_all_rows_equals_batch_training(memory, data):
    method = sep(memory=memory)
    state = method.init(data, key=KEY)
    batch, energies = train(method, data, 6, state)
    mini, mini_energies = train(method, data, 6, as_minibatch(method, data, state))
    np.testing.assert_allclose(mini_energies, energies, rtol=1e-9)
    np.testing.assert_allclose(mini.sites.nu, batch.sites.nu, rtol=1e-8)
    np.testing.assert_allclose(mini.approximation.q.mean, batch.approximation.q.mean, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("memory, inducing, of_a_row", [("factors", 8, 10), ("factors", 3, 5), ("scalars", 8, 2)])
def test_minibatches_keep_the_direction_of_every_factor_or_two_numbers_of_a_row(memory, inducing, of_a_row):
    """n m numbers, as the paper does, or none of them: of the state, what is as long as the rows."""
    method = sep(memory=memory, batch_size=10, inducing=inducing)

    few, many = (jax.tree.leaves(method.init(curved(n), key=KEY)) for n in (30, 50))
    assert sum(leaf.size for leaf in many) - sum(leaf.size for leaf in few) == 20 * of_a_row


def epochs(method, data, count):
    """The state after `count` epochs of minibatches."""
    return train(method, data, count * -(-len(data.y) // method.batch_size))[0]


def test_minibatches_with_frozen_hyper_parameters_reach_the_fixed_point_of_batch_ep(data):
    mini = epochs(sep(batch_size=10, damping=0.99), data, 60)
    batch, _ = train(sep(update="outer", tolerance=1e-12), data, 1)
    np.testing.assert_allclose(mini.sites.nu, batch.sites.nu, rtol=1e-6)
    np.testing.assert_allclose(mini.approximation.q.mean, batch.approximation.q.mean, rtol=1e-6, atol=1e-9)


def test_with_two_numbers_per_site_they_end_an_epoch_near_that_fixed_point():
    """The share of the last epoch's product that a batch replaces is not quite the batch's own: sampling noise."""
    data = curved(403)
    mini = epochs(sep(memory="scalars", batch_size=20, damping=0.99), data, 30)
    batch, _ = train(sep(update="outer", tolerance=1e-12), data, 1)
    ours, theirs = (probability(sep(), state, data.X) for state in (mini, batch))
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_with_two_numbers_per_site_the_posterior_stays_positive_definite_however_far_the_hyper_parameters_jump():
    data = curved(200)
    method = sep(memory="scalars", batch_size=20, damping=0.99)
    state = epochs(method, data, 2)
    moved = eqx.tree_at(lambda s: s.layer.features.Z, state, 1.5 * state.layer.features.Z[::-1] + 0.3)
    moved = eqx.tree_at(lambda s: s.layer.kernel.log_lengthscale2, moved, state.layer.kernel.log_lengthscale2 - 2.0)
    moved, objective = train(method, data, 20, moved)
    assert np.isfinite(objective).all() and moved.caution == 1.0


def test_the_running_product_is_the_product_over_the_stored_factors(data):
    state = epochs(sep(batch_size=10, optimiser=ADAPTIVE), data, 5)
    expected = site_product(state.running.directions.T, state.sites)
    np.testing.assert_allclose(state.running.product.precision, expected.precision, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.running.product.shift, expected.shift, rtol=1e-8, atol=1e-10)


def test_a_step_that_loses_the_energy_is_taken_back_and_the_next_are_half_as_bold():
    data = curved(20)
    method = sep(optimiser=ADAPTIVE)
    state, _ = train(method, data, 3)
    broken = eqx.tree_at(lambda d: d.y, data, data.y.at[0].set(jnp.nan))
    after, objective = train(method, broken, 1, state)
    assert np.isnan(objective[0])
    assert float(after.caution) == 0.5
    np.testing.assert_array_equal(after.sites.nu, state.sites.nu)
    np.testing.assert_array_equal(after.layer.features.Z, state.approximation.layer.features.Z)


def test_the_number_of_inducing_points_is_a_fraction_or_up_to_n_and_flat_sites_leave_the_prior():
    assert inducing_count(0.15, 691) == 104
    assert inducing_count(1.0, 20) == 20
    assert inducing_count(0.15, 36_000) == 1000 and inducing_count(5400, 36_000) == 5400  # more than 1,000 by number
    assert inducing_count(7, 20) == 7
    sizes = {20: 20, 199: 199, 201: 200, 1333: 200, 1400: 210, 36_000: 1000}  # all rows, the least, the share, the most
    assert {n: inducing_count("15%, at least 200", n) for n in sizes} == sizes
    assert inducing_count(1, 100) == 1 and inducing_count(1.0, 100) == 100
    for wrong, message in (
        (21, "training rows"),
        (0.01, "training rows"),
        (1.5, "a whole number from 1, or a"),
        ("0%, at least 2", "must be"),
    ):
        with pytest.raises(ConfigError, match=message):
            inducing_count(wrong, 20)
    data = curved(20)
    method = sep()
    state = method.init(data, key=KEY)
    np.testing.assert_allclose(probability(method, state, data.X), 0.5, atol=1e-12)
    assert isinstance(state.sites, Sites)
