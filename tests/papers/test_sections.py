"""What sections of the papers aep_dgp, gam and svdgp state without a number of their tables."""

import numpy as np
import pytest

from gpbench.core.quadrature import gauss_hermite

NODES, WEIGHTS = gauss_hermite(101)


def log_mean_bias(samples, *, mean=0.5, deviation=1.5, trials=4_000):
    """E log of the average of logistic likelihoods at this many samples of f, less log E, and its standard error."""
    f = mean + deviation * np.random.default_rng(0).normal(size=(trials, samples))
    ratio = np.mean(1 / (1 + np.exp(-f)), axis=1) / (WEIGHTS @ (1 / (1 + np.exp(-mean - deviation * NODES))))
    logs = np.log(ratio) - (ratio - 1)  # the ratio's mean is 1: this has the same mean, and less variance
    return logs.mean(), logs.std() / np.sqrt(trials)


def test_sampled_normalisers_have_a_bias_below_zero_that_falls_as_one_over_the_samples():
    """Appendix F: -Var p / (2 S Z²) to first order, for a likelihood without a closed form."""
    p = 1 / (1 + np.exp(-0.5 - 1.5 * NODES))
    first_order = -0.5 * (WEIGHTS @ p**2 / (WEIGHTS @ p) ** 2 - 1)
    for samples in (10, 40, 160):
        bias, error = log_mean_bias(samples)
        assert bias + 5 * error < 0
        assert bias == pytest.approx(first_order / samples, rel=0.2)
        assert abs(bias) < 0.02


def gram(a, b):
    return np.exp(-0.5 * np.subtract.outer(a, b) ** 2)


def matching_loss(deviation, seed):
    """KL from the exact to the matched density of y in nats, with h ~ N(0, deviation²) below a random layer.

    The layer has lengthscale and amplitude 1, posterior standard deviations of 0.1, and noise variance 0.05.
    """
    rng = np.random.default_rng(seed)
    Z = np.linspace(-4, 4, 12)
    u = np.linalg.cholesky(gram(Z, Z) + 1e-8 * np.eye(12)) @ rng.normal(size=12)
    h = deviation * NODES
    weights = np.linalg.solve(gram(Z, Z) + 1e-8 * np.eye(12), gram(Z, h))
    mean = weights.T @ u
    variance = 0.05 + np.maximum(1 - np.sum(gram(Z, h) * weights, axis=0), 0) + 0.01 * np.sum(weights**2, axis=0)
    centre = WEIGHTS @ mean
    spread = WEIGHTS @ (variance + mean**2) - centre**2
    y = np.linspace(centre - 8 * np.sqrt(spread), centre + 8 * np.sqrt(spread), 801)
    normal = lambda m, v: np.exp(-((y[:, None] - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
    exact, matched = normal(mean, variance) @ WEIGHTS, normal(np.array([centre]), spread)[:, 0]
    return np.sum(np.where(exact > 0, exact * np.log(np.maximum(exact, 1e-300) / matched), 0)) * (y[1] - y[0])


def test_a_matched_gaussian_is_accurate_where_a_layer_is_nearly_linear_over_its_uncertain_inputs():
    """Sections 5 and 7: below .02 nats for inputs as sure as a fifth of the lengthscale, above .1 for unsure ones."""
    losses = {deviation: [matching_loss(deviation, seed) for seed in range(10)] for deviation in (0.1, 0.2, 1.0, 2.0)}
    mean = [np.mean(loss) for loss in losses.values()]
    assert np.all(np.diff(mean) > 0)
    assert max(losses[0.1]) < 0.01 and mean[1] < 0.02
    assert max(losses[1.0]) > 0.1


RNG = np.random.default_rng(0)
C, N, M, NOISE = 2, 6, 3, 0.4
"""Components, rows, inducing points of each, noise variance."""


def gram_of_scale(a, b, scale):
    return np.exp(-0.5 * (a[:, None] - b[None]) ** 2 / scale**2)


def divergence(P, Q):
    """KL divergence of normal distributions of one mean, from their precisions."""
    ratio = np.linalg.solve(P, Q)
    return 0.5 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(ratio))


def test_equation_7_keeps_the_largest_directions_of_equation_6():
    """What M columns leave out costs ½ Σ (λ - log(1 + λ)), and no other M columns cost less; N columns are exact."""
    z, scales = np.linspace(0, 1, M), (0.3, 0.6)
    Kuu = np.zeros((C * M, C * M))
    for c, scale in enumerate(scales):
        Kuu[c * M : (c + 1) * M, c * M : (c + 1) * M] = gram_of_scale(z, z, scale)
    Kuf = np.concatenate([gram_of_scale(z, RNG.uniform(size=N), scale) for scale in scales])
    prior = np.linalg.inv(Kuu)
    half = prior @ Kuf / np.sqrt(NOISE)
    root = np.linalg.cholesky(Kuu)
    values, vectors = np.linalg.eigh(root.T @ half @ half.T @ root)
    B = np.linalg.inv(root).T @ vectors * np.sqrt(np.maximum(values, 0))
    of = lambda B: divergence(prior + B @ B.T, prior + half @ half.T)
    left, best = values[:-M], B[:, -M:]
    assert of(best) == pytest.approx(0.5 * np.sum(left - np.log1p(left)), rel=1e-6)
    assert all(of(best * (1 + 0.05 * RNG.normal(size=best.shape))) > of(best) > 1e-3 for _ in range(40))
    assert of(B[:, -N:]) == pytest.approx(0, abs=1e-6)


VARIANCE = 0.2


def gram_of_rows(a, b):
    return np.exp(-0.5 * np.sum((a[:, None] - b[None]) ** 2, axis=-1))


def reduction(X, Z, B):
    """Prior less posterior covariance at X by equation 8: k_β (B⁻¹ + K_β)⁻¹ k_βᵀ, written so that B may be singular."""
    return gram_of_rows(X, Z) @ B @ np.linalg.solve(np.eye(len(Z)) + gram_of_rows(Z, Z) @ B, gram_of_rows(Z, X))


@pytest.mark.parametrize("seed", range(5))
def test_b_makes_the_posterior_surer_than_the_prior_strictly_so_where_it_is_positive_definite(seed):
    """Section 3.3; B ⪰ 0 as printed allows B = 0, whose posterior has the prior's covariance."""
    rng = np.random.default_rng(seed)
    X, Z, root = (rng.normal(size=shape) for shape in ((30, 2), (6, 2), (6, 6)))
    for B in (root @ root.T, root[:, :2] @ root[:, :2].T):
        less = reduction(X, Z, B)
        assert np.linalg.eigvalsh(less + less.T)[0] > -1e-12
        assert np.linalg.eigvalsh(gram_of_rows(X, X) - less).min() > -1e-9  # still a covariance
    assert np.diag(reduction(X, Z, root @ root.T)).min() > 0
    K = gram_of_rows(Z, Z)
    unseen = np.linalg.svd(root[:, :2].T @ K)[2][-1]  # a combination of features that a singular B does not touch
    assert abs(unseen @ reduction(Z, Z, root[:, :2] @ root[:, :2].T) @ unseen) < 1e-12
    np.testing.assert_array_equal(reduction(X, Z, np.zeros((6, 6))), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_with_the_rows_as_features_it_is_the_exact_posterior_and_without_any_the_objective_is_ridge_regressions(seed):
    """Sections 3.3 and 3.4, with Gaussian noise.  B = I/σ²; and the bound in a is -(|y - Ka|² + σ² aᵀKa)/2σ² + c."""
    rng = np.random.default_rng(seed)
    X, new, y = (rng.normal(size=shape) for shape in ((12, 2), (7, 2), 12))
    K, k = gram_of_rows(X, X), gram_of_rows(new, X)
    exact = k @ np.linalg.solve(K + VARIANCE * np.eye(12), k.T)
    np.testing.assert_allclose(reduction(new, X, np.eye(12) / VARIANCE), exact, atol=1e-10)

    def bound(a):
        """E log p(y|f) - KL for f of mean Ka and the prior's covariance: the divergence is of the means alone."""
        expected = -0.5 * (np.sum((y - K @ a) ** 2) + np.trace(K)) / VARIANCE - 6 * np.log(2 * np.pi * VARIANCE)
        return expected - 0.5 * a @ K @ a

    ridge = lambda a: np.sum((y - K @ a) ** 2) + VARIANCE * a @ K @ a
    a, b = rng.normal(size=(2, 12))
    np.testing.assert_allclose(bound(a) - bound(b), (ridge(b) - ridge(a)) / (2 * VARIANCE), rtol=1e-9)
    best = np.linalg.solve(K + VARIANCE * np.eye(12), y)
    assert all(bound(best) > bound(best + 0.01 * rng.normal(size=12)) for _ in range(10))
