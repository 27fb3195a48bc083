"""`sep`: limits where it must agree with something else, its gradients, its minibatches, real data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gpbench.methods.sep_energy import Sums, approximate_gradient, marginals, posterior, site_sums
from gpbench.methods.sparse import covariances, residual
from problems import classification, sep, trained
from scipy.stats import norm

from gpbench.core.likelihoods import probit_log_normaliser
from gpbench.core.optimisers import adaptive_rates
from gpbench.core.sites import Sites
from gpbench.errors import ConfigError
from gpbench.methods.base import inducing_count
from gpbench.methods.ep.sep import Running
from gpbench.train import batches


def dense_ep(K, y, extra, sweeps=300):
    """Full EP for GP classification, Φ(y f / √(1 + extra)), dense and sequential (Rasmussen & Williams, chapter 3)."""
    n = len(y)
    nu, tau = np.zeros(n), np.zeros(n)
    Sigma, mu = K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            precision, shift = 1 / Sigma[i, i] - nu[i], mu[i] / Sigma[i, i] - tau[i]
            s, m = 1 / precision, shift / precision
            b = 1 + extra + s
            z = y[i] * m / np.sqrt(b)
            ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
            slope = y[i] * ratio / np.sqrt(b)
            curvature = slope**2 + slope * m / b
            nu[i] = curvature / (1 - curvature * s)
            tau[i] = slope + (m + slope * s) * nu[i]
            Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(nu))
            mu = Sigma @ tau
    v = np.diag(Sigma)
    s = 1 / (1 / v - nu)
    m = s * (mu / v - tau)
    log_z = norm.logcdf(y * m / np.sqrt(1 + extra + s)).sum()
    # Σ log Z_i + log of the sites' scales, and the Gaussian integral, term by term
    cavity_terms = 0.5 * np.log1p(nu * s) + 0.5 * (m - tau / nu) ** 2 / (s + 1 / nu)
    B = K + np.diag(1 / nu)
    gaussian = -0.5 * np.linalg.slogdet(B)[1] - 0.5 * (tau / nu) @ np.linalg.solve(B, tau / nu)
    return log_z + cavity_terms.sum() + gaussian - 0.5 * np.log(nu).sum(), mu, Sigma


def test_with_every_point_inducing_it_equals_full_ep():
    data = classification(30)
    method = sep(inducing=30, update="outer", tolerance=1e-12, damping=0.8)
    state = method.init(data, key=jax.random.key(0))
    hyper = eqx.tree_at(lambda h: h.Z, state.hyper, data.X)
    state = eqx.tree_at(lambda s: s.hyper, state, hyper)
    state, objective = trained(method, data, 1, state)
    K = np.asarray(hyper.kernel.gram(data.X, data.X)) + 1e-10 * np.eye(30)
    log_z, mu, Sigma = dense_ep(K, np.asarray(data.y), extra=1e-3)
    np.testing.assert_allclose(objective[-1], log_z, rtol=1e-6)

    X_new = jnp.asarray(np.random.default_rng(5).normal(size=(7, 2)))
    k = np.asarray(hyper.kernel.gram(data.X, X_new))
    weights = np.linalg.solve(K, k)
    mean = weights.T @ mu
    variance = 1.0 + 1e-3 - np.sum(k * weights, 0) + np.sum(weights * (Sigma @ weights), 0)
    expected = norm.logcdf(mean / np.sqrt(1 + variance))
    np.testing.assert_allclose(method.predict(state, X_new).log_positive, expected, atol=1e-6)


def finite_differences(method, data, state, step=1e-4):
    """Of the converged log Zq in log amplitude, log noise, the lengthscales and two coordinates of Z."""

    def at(change):
        moved = eqx.tree_at(lambda s: s.hyper, state, change(state.hyper))
        return float(trained(method, data, 1, moved)[1][-1])

    paths = {
        "amplitude": lambda h, d: eqx.tree_at(lambda h: h.kernel.log_amplitude, h, h.kernel.log_amplitude + d),
        "noise": lambda h, d: eqx.tree_at(lambda h: h.log_noise, h, h.log_noise + d),
        "l0": lambda h, d: eqx.tree_at(lambda h: h.kernel.log_lengthscale2, h, h.kernel.log_lengthscale2.at[0].add(d)),
        "z00": lambda h, d: eqx.tree_at(lambda h: h.Z, h, h.Z.at[0, 0].add(d)),
        "z31": lambda h, d: eqx.tree_at(lambda h: h.Z, h, h.Z.at[3, 1].add(d)),
    }
    return {
        name: (at(lambda h, path=path: path(h, step)) - at(lambda h, path=path: path(h, -step))) / (2 * step)
        for name, path in paths.items()
    }


@pytest.mark.parametrize("gradient", ["approximate", "exact", "scalars"])
@pytest.mark.parametrize("noise_on_inducing", [False, True])
def test_every_gradient_is_that_of_the_converged_energy(gradient, noise_on_inducing):
    data = classification(30)
    converging = {"update": "outer", "tolerance": 1e-13, "damping": 0.8}
    fields = {**converging, "noise": 0.05, "noise_on_inducing": noise_on_inducing}
    frozen = sep(**fields)
    state, _ = trained(frozen, data, 1)
    expected = finite_differences(frozen, data, state)
    # with rate 1, gradient descent moves the hyper-parameters by exactly the gradient of the energy
    moving = sep(optimiser=optax.sgd(1.0), gradient=gradient, lengthscales="free", **fields)
    moved, _ = trained(moving, data, 1, state)
    step = jax.tree.map(lambda a, b: a - b, moved.hyper, state.hyper)
    got = {"amplitude": step.kernel.log_amplitude, "noise": step.log_noise, "l0": step.kernel.log_lengthscale2[0],
           "z00": step.Z[0, 0], "z31": step.Z[3, 1]}  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=2e-5, err_msg=name)


def test_closed_form_of_the_approximate_gradient_equals_autodiff_of_equation_4():
    """Away from convergence, and with weights: the surrogate written out with stopped gradients."""
    data = classification(20)
    method = sep(noise=0.1)
    state, _ = trained(method, data, 3)
    cov = covariances(state.hyper, data.X, False)
    sites, weight = state.sites, jnp.linspace(0.5, 2.0, 20)

    q = posterior(state.q.A, site_sums(state.q.A @ cov.zx, sites))
    V = q.A @ cov.zx
    at = marginals(q, V, V, sites)
    closed = approximate_gradient(data.y, residual(cov, V), V, q, at, sites, weight)

    L = jnp.linalg.inv(q.A)
    Sigma, mean = L @ q.R.T @ q.R @ L.T, L @ q.mu
    v = jnp.linalg.solve(cov.zz, cov.zx)
    K_inverse = jnp.linalg.inv(cov.zz)
    prior = K_inverse - K_inverse @ Sigma @ K_inverse - jnp.outer(K_inverse @ mean, K_inverse @ mean)
    # cavity of every point in the space of u, to be held fixed
    precision, shift = jnp.linalg.inv(Sigma), jnp.linalg.solve(Sigma, mean)
    cavity_covariance = [jnp.linalg.inv(precision - sites.nu[n] * jnp.outer(v[:, n], v[:, n])) for n in range(20)]
    cavity_mean = [C @ (shift - sites.tau[n] * v[:, n]) for n, C in enumerate(cavity_covariance)]

    def surrogate(cov):
        v = jnp.linalg.solve(cov.zz, cov.zx)
        a = jnp.stack([v[:, n] @ cavity_mean[n] for n in range(20)])
        spread = jnp.stack([v[:, n] @ cavity_covariance[n] @ v[:, n] for n in range(20)])
        variance = cov.xx - jnp.sum(cov.zx * v, axis=0) + spread
        return -0.5 * jnp.sum(prior * cov.zz) + jnp.sum(weight * probit_log_normaliser(data.y, a, variance))

    literal = jax.grad(surrogate)(cov)
    np.testing.assert_allclose(closed.xx, literal.xx, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(closed.zx, literal.zx, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(closed.zz, 0.5 * (literal.zz + literal.zz.T), rtol=1e-4, atol=1e-5)


def test_inner_updates_reach_the_energy_of_outer_updates():
    """Figure 1, left: what is left between the two is under a tenth of what training gained."""
    data = classification(60)
    ways = [sep(update=update, optimiser=adaptive_rates(1e-2)) for update in ("inner", "outer")]
    inner, outer = (trained(method, data, 300)[1] for method in ways)
    assert outer[-1] - outer[0] > 5.0
    assert abs(outer[-1] - inner[-1]) < 0.1 * (outer[-1] - outer[0])


def test_shuffled_rows_give_the_same_posterior():
    data = classification(40)
    order = np.random.default_rng(1).permutation(40)
    shuffled = batches.whole(data.X[order], data.y[order], 2)
    method = sep(optimiser=adaptive_rates(1e-2))
    start = method.init(data, key=jax.random.key(0))
    one, _ = trained(method, data, 30, start)
    other, _ = trained(method, shuffled, 30, start)
    X = jnp.asarray(np.random.default_rng(2).normal(size=(5, 2)))
    np.testing.assert_allclose(method.predict(one, X).log_positive, method.predict(other, X).log_positive, atol=1e-7)
    np.testing.assert_allclose(one.hyper.Z, other.hyper.Z, atol=1e-6)


def as_minibatch(method, data, state):
    """The state of a run on minibatches, so that a batch of all rows takes the minibatch's path."""
    m, n = len(state.hyper.Z), len(data.y)
    nothing = Sums(jnp.zeros((m, m)), jnp.zeros(m))
    directions = jnp.zeros((n, m)) if method.memory == "factors" else None
    return eqx.tree_at(lambda s: s.running, state, Running(nothing, nothing, directions, jnp.zeros(())),
                       is_leaf=lambda x: x is None)  # fmt: skip


@pytest.mark.parametrize("memory", ["factors", "scalars"])
def test_a_minibatch_of_all_rows_equals_batch_training(memory):
    data = classification(40)
    method = sep(memory=memory)
    state = method.init(data, key=jax.random.key(0))
    batch, energies = trained(method, data, 6, state)
    mini, mini_energies = trained(method, data, 6, as_minibatch(method, data, state))
    np.testing.assert_allclose(mini_energies, energies, rtol=1e-9)
    np.testing.assert_allclose(mini.sites.nu, batch.sites.nu, rtol=1e-8)
    np.testing.assert_allclose(mini.q.mu, batch.q.mu, rtol=1e-6, atol=1e-7)


def epochs(method, data, count, key=0):
    """The state after `count` epochs of minibatches."""
    steps = count * -(-len(data.y) // method.batch_size)

    @jax.jit
    def run(state):
        def one(t, state):
            batch = batches.at_step(data, method.batch_size, t, key=jax.random.key(key))
            return method.step(state, batch, key=jax.random.key(0))[0]

        return jax.lax.fori_loop(0, steps, one, state)

    return run(method.init(data, key=jax.random.key(0)))


def test_minibatches_with_frozen_hyper_parameters_find_the_fixed_point_of_batch_ep():
    data = classification(43)  # 43 rows by 10: a short last batch
    mini = epochs(sep(batch_size=10, damping=0.99), data, 60)
    batch, _ = trained(sep(update="outer", tolerance=1e-12), data, 1)
    np.testing.assert_allclose(mini.sites.nu, batch.sites.nu, rtol=1e-6)
    np.testing.assert_allclose(mini.q.mu, batch.q.mu, rtol=1e-6, atol=1e-9)


def test_with_two_numbers_per_site_they_end_an_epoch_near_that_fixed_point():
    """The share of the last epoch's sums that makes place for a batch is not quite the batch's own: sampling noise."""
    data = classification(403)
    mini = epochs(sep(memory="scalars", batch_size=20, damping=0.99), data, 30)
    batch, _ = trained(sep(update="outer", tolerance=1e-12), data, 1)
    ours, theirs = (np.exp(sep().predict(state, data.X).log_positive) for state in (mini, batch))
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_with_two_numbers_per_site_the_posterior_is_sound_however_far_the_hyper_parameters_jump():
    data = classification(200)
    method = sep(memory="scalars", batch_size=20, damping=0.99)
    state = epochs(method, data, 2)
    moved = eqx.tree_at(lambda s: s.hyper.Z, state, 1.5 * state.hyper.Z[::-1] + 0.3)
    moved = eqx.tree_at(lambda s: s.hyper.kernel.log_lengthscale2, moved, state.hyper.kernel.log_lengthscale2 - 2.0)
    for t in range(20, 30):
        batch = batches.at_step(data, 20, jnp.asarray(t), key=jax.random.key(0))
        moved, info = method.step(moved, batch, key=jax.random.key(0))
        assert np.isfinite(info.objective) and moved.caution == 1.0


def test_running_sums_are_the_sums_over_the_stored_factors():
    data = classification(43)
    state = epochs(sep(batch_size=10, optimiser=adaptive_rates(1e-2)), data, 5)
    expected = site_sums(state.running.directions.T, state.sites)
    np.testing.assert_allclose(state.running.sums.precision, expected.precision, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.running.sums.shift, expected.shift, rtol=1e-8, atol=1e-10)


def test_what_two_numbers_per_site_lose_against_stored_factors_is_little():
    """Measured: with moving hyper-parameters the two energies differ by less than 2 % after 40 epochs."""
    data = classification(120)
    energy = {}
    for memory in ("factors", "scalars"):
        method = sep(memory=memory, batch_size=20, damping=0.99, optimiser=adaptive_rates(1e-3))
        energy[memory] = float(method.objective(epochs(method, data, 40), data))
    assert energy["factors"] > 120 * np.log(0.5)  # better than a coin
    np.testing.assert_allclose(energy["scalars"], energy["factors"], rtol=0.02)


def test_a_step_that_loses_the_energy_is_taken_back_and_the_next_are_half_as_bold():
    data = classification(20)
    method = sep(optimiser=adaptive_rates(1e-2))
    state, _ = trained(method, data, 3)
    broken = eqx.tree_at(lambda d: d.y, data, data.y.at[0].set(jnp.nan))
    after, info = method.step(state, broken, key=jax.random.key(0))
    assert np.isnan(info.objective)
    assert float(after.caution) == 0.5
    np.testing.assert_array_equal(after.sites.nu, state.sites.nu)
    np.testing.assert_array_equal(after.hyper.Z, state.at.Z)


def test_lengthscales_together_stay_equal_and_free_ones_do_not():
    data = classification(40)
    spread = {
        choice: float(jnp.ptp(trained(sep(optimiser=adaptive_rates(1e-2), lengthscales=choice), data, 30)[0]
                              .hyper.kernel.log_lengthscale2))
        for choice in ("together", "free")
    }  # fmt: skip
    assert spread["together"] == 0.0
    assert spread["free"] > 0.01


def test_the_number_of_inducing_points_is_a_fraction_or_a_number_up_to_n():
    assert inducing_count(0.15, 691) == 104
    assert inducing_count(1.0, 20) == 20
    assert inducing_count(7, 20) == 7
    for wrong in (21, 0, 0.0):
        with pytest.raises(ConfigError, match="training rows"):
            inducing_count(wrong, 20)


def test_scalars_on_minibatches_is_refused_in_one_line():
    with pytest.raises(ConfigError, match="scalars needs all rows"):
        sep(gradient="scalars", batch_size=5).init(classification(20), key=jax.random.key(0))


def test_flat_sites_leave_the_prior():
    data = classification(20)
    method = sep()
    state = method.init(data, key=jax.random.key(0))
    np.testing.assert_allclose(np.exp(method.predict(state, data.X).log_positive), 0.5, atol=1e-12)
    assert isinstance(state.sites, Sites)
