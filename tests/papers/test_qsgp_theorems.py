"""Theorems 1 to 3 and propositions 1 to 3 of paper `qsgp`, as printed, in NumPy: by enumerating every draw."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multinomial, multivariate_normal

from gpbench.core.quadrature import gauss_hermite

N, M, ROWS, FUNCTIONS, NOISE = 3, 4, 2, 2, 0.3
"""n, m, ñ, m̃ and σ²."""


def draws(size, count, replacement):
    """How often each index is in every draw of this many, (draws, size); all draws are equally likely."""
    tuples = itertools.product(range(size), repeat=count) if replacement else itertools.permutations(range(size), count)
    return np.array([np.bincount(draw, minlength=size) for draw in tuples], float)


class Problem:
    """A linear model with any Φ (n, m), S and y, and any q(w) = N(μ, CCᵀ)."""

    def __init__(self, seed, n=N, m=M):
        rng = np.random.default_rng(seed)
        self.Phi, root, self.y, self.mu = (rng.normal(size=shape) for shape in ((n, m), (m, m), n, m))
        self.S, self.C = root @ root.T + np.eye(m), np.tril(rng.normal(size=(m, m)))
        np.fill_diagonal(self.C, np.exp(np.diag(self.C)))

    def of_mean(self):
        f = self.Phi @ self.mu
        return (-2 * self.y @ f + f @ f) / NOISE + self.mu @ self.S @ self.mu

    def of_covariance(self, C):
        return ((self.Phi @ C) ** 2).sum() / NOISE + np.trace(self.S @ C @ C.T) - 2 * np.log(np.diag(C)).sum()

    def constant(self):
        n, m = self.Phi.shape
        log_det = -np.linalg.slogdet(self.S)[1]
        return log_det - m + n * np.log(2 * np.pi * NOISE) + self.y @ self.y / NOISE

    def quadratic(self, rows, i, j, left, right):
        """n m²/(σ²ñm̃²) leftⱼᵀ Φₗⱼᵀ Φₗᵢ rightᵢ + m²/m̃² leftⱼᵀ Sⱼᵢ rightᵢ for all draws, (rows, j, i)."""
        scale = (M / FUNCTIONS) ** 2
        at = [(c * w) @ self.Phi.T for c, w in ((j, left), (i, right))]  # (draws, n)
        errors = scale * N / (NOISE * ROWS) * np.einsum("ln,jn,in->lji", rows, *at)
        return errors + scale * (j * left) @ self.S @ (i * right).T

    def gradient(self, w):
        """The gradient of wᵀ(ΦᵀΦ/σ² + S)w/2."""
        return self.Phi.T @ (self.Phi @ w) / NOISE + self.S @ w


def all_draws(replacement):
    rows = draws(N, ROWS, replacement)
    return rows, *[draws(M, FUNCTIONS, replacement)] * 2


def test_equation_2_is_the_log_evidence_less_the_divergence_from_the_exact_posterior():
    for seed in range(5):
        p = Problem(seed)
        post = np.linalg.inv(p.Phi.T @ p.Phi / NOISE + p.S)
        away, ratio = p.mu - post @ p.Phi.T @ p.y / NOISE, np.linalg.solve(post, p.C @ p.C.T)
        kl = 0.5 * (np.trace(ratio) + away @ np.linalg.solve(post, away) - M - np.linalg.slogdet(ratio)[1])
        prior = p.Phi @ np.linalg.solve(p.S, p.Phi.T) + NOISE * np.eye(N)
        evidence = multivariate_normal(np.zeros(N), prior).logpdf(p.y)
        bound = -0.5 * (p.of_mean() + p.of_covariance(p.C) + p.constant())
        assert bound == pytest.approx(evidence - kl, rel=1e-10)


@pytest.mark.parametrize("replacement", [True, False])
def test_theorems_1_and_2_and_proposition_2_have_no_bias_nor_have_their_gradients(replacement):
    rows, i, j = all_draws(replacement)
    for seed in range(5):
        p = Problem(seed)
        fit = -2 * N * M / (NOISE * ROWS * FUNCTIONS) * np.einsum("ln,n,in->li", rows, p.y, (i * p.mu) @ p.Phi.T)
        quadratic = p.quadratic(rows, i, j, p.mu, p.mu)
        assert (fit[:, None] + quadratic).mean() == pytest.approx(p.of_mean(), rel=1e-10)
        unit = np.eye(M)
        slopes = [
            -2 * N * M / (NOISE * ROWS * FUNCTIONS) * np.einsum("ln,n,in->li", rows, p.y, (i * e) @ p.Phi.T).mean()
            + p.quadratic(rows, i, j, e, p.mu).mean()
            + p.quadratic(rows, i, j, p.mu, e).mean()
            for e in unit
        ]
        np.testing.assert_allclose(slopes, 2 * (p.gradient(p.mu) - p.Phi.T @ p.y / NOISE), rtol=1e-9)

        columns = [p.quadratic(rows, i, j, c, c) - 2 * np.log(c[r]) for r, c in enumerate(p.C.T)]
        third = draws(M, FUNCTIONS, replacement)  # a draw of the columns themselves
        estimates = M / FUNCTIONS * np.einsum("kr,rlji->klji", third, np.array(columns))
        assert estimates.mean() == pytest.approx(p.of_covariance(p.C), rel=1e-10)
        for c in p.C.T:
            slope = [sum(p.quadratic(rows, i, j, *pair).mean() for pair in ((e, c), (c, e))) for e in unit]
            np.testing.assert_allclose(slope, 2 * p.gradient(c), rtol=1e-9)

        p.S = np.diag(np.diag(p.S))
        logs = -M / FUNCTIONS * (i @ np.log(np.diag(p.S)))
        targets = N / (NOISE * ROWS) * (rows @ p.y**2)
        estimate = logs.mean() + targets.mean() - M + N * np.log(2 * np.pi * NOISE)
        assert estimate == pytest.approx(p.constant(), rel=1e-10)


def test_theorem_1_is_biased_where_one_draw_serves_as_both():
    rows, i, _ = all_draws(True)
    p = Problem(0)
    both = np.diagonal(p.quadratic(rows, i, i, p.mu, p.mu), axis1=1, axis2=2).mean()
    assert both > 1.1 * p.mu @ p.gradient(p.mu)


def test_proposition_1_is_the_best_diagonal_entry():
    for seed in range(5):
        p = Problem(seed, n=7, m=5)
        for r in range(5):

            def loss(log_c, p=p, r=r):
                C = p.C.copy()
                C[:, r] = np.exp(log_c) * np.eye(5)[r]
                return p.of_covariance(C)

            best = minimize_scalar(loss, bounds=(-6, 3), method="bounded", options={"xatol": 1e-10}).x
            printed = np.sqrt(NOISE / (p.Phi[:, r] @ p.Phi[:, r] + NOISE * p.S[r, r]))
            assert np.exp(best) == pytest.approx(printed, rel=1e-6)


@pytest.mark.parametrize("replacement", [True, False])
def test_control_variates_have_mean_zero_and_sparse_gradients_of_their_means_no_bias(replacement):
    """Equation 3, proposition 3, and appendix F: that of the prior's term, and that of yᵀΦμ."""
    _, i, j = all_draws(replacement)
    union = np.maximum(i[:, None] > 0, j[None] > 0)  # (i, j, m)
    for seed in range(5):
        p, rng = Problem(seed), np.random.default_rng(100 + seed)
        A = p.Phi[:2]  # the support's rows
        kernel = p.S[:, :2] @ np.linalg.solve(p.S[:2, :2], p.S[:2])  # Nyström's approximation of S
        for low_rank in (N / (2 * NOISE) * A.T @ A, kernel):
            drawn = (M / FUNCTIONS) ** 2 * (j * p.mu) @ low_rank @ (i * p.mu).T
            assert drawn.mean() == pytest.approx(p.mu @ low_rank @ p.mu, rel=1e-10)
            dense = 2 * low_rank @ p.mu
            sparse = (M / union.sum(-1))[..., None] * union * dense
            np.testing.assert_allclose(sparse.mean((0, 1)), dense, rtol=1e-10)
        b = p.Phi.T @ p.y
        assert (M / FUNCTIONS * (i * p.mu) @ b).mean() == pytest.approx(p.mu @ b, rel=1e-10)
        running, mean = A @ p.mu, p.mu.copy()  # proposition 3: a(t) from the entries that a step changes
        for _ in range(20):
            changed = rng.permutation(M)[:FUNCTIONS]
            step = rng.normal(size=FUNCTIONS)
            mean[changed] += step
            running = running + A[:, changed] @ step
        np.testing.assert_allclose(running, A @ mean, rtol=1e-10, atol=1e-12)


def test_stochastic_gradients_of_theorem_1_reach_the_exact_posterior_mean():
    """Exactly: the mean square distance over all draws of all steps, whose sizes η have Σ η = ∞ and Σ η² < ∞.

    A step takes one row, i and j of two functions each, and half the gradient, Aμ - b.  With e = μ - μ* the second
    moments of (1, e) move linearly, by E T⊗T with T = [[1, 0], [η(b - Aμ*), I - ηA]].
    """
    n, unit = 12, np.eye(M)
    for seed in range(2):
        p = Problem(seed, n=n)
        H = p.Phi.T @ p.Phi / NOISE + p.S
        exact = np.linalg.solve(H, p.Phi.T @ p.y / NOISE)
        assert np.linalg.eigvalsh(H)[0] > 0  # strictly convex: one minimum
        drawn, scale = [np.diag(d) for d in draws(M, FUNCTIONS, False)], M / FUNCTIONS
        moving = []
        for phi, y in zip(p.Phi, p.y):
            Q = scale**2 * (n / NOISE * np.outer(phi, phi) + p.S)
            for i, j in itertools.product(drawn, repeat=2):
                A = 0.5 * (i @ Q @ j + j @ Q @ i)
                T = np.zeros((1 + M, 1 + M))
                T[1:, 0], T[1:, 1:] = n * scale / NOISE * y * (i @ phi) - A @ exact, -A
                moving.append(T)
        still, moving = np.eye(1 + M), np.array(moving)
        mean, size = moving.mean(0), (1 + M) ** 2
        np.testing.assert_allclose(mean[1:], np.c_[0 * exact, -H], atol=1e-9)
        square = np.einsum("tij,tkl->ikjl", moving, moving).reshape(size, size) / len(moving)
        start = np.concatenate([[1.0], 3 * unit[seed]])
        moments, distances = np.kron(start, start), []
        eta, length = 1 / np.linalg.eigvalsh(np.einsum("tji,tjk->ik", moving, moving)[1:, 1:] / len(moving))[-1], 4_000
        for _ in range(24):  # η halves while the number of steps doubles
            step = np.kron(still, still) + eta * (np.kron(still, mean) + np.kron(mean, still)) + eta**2 * square
            moments = np.linalg.matrix_power(step, length) @ moments
            distances.append(np.trace(moments.reshape(1 + M, 1 + M)[1:, 1:]) / (exact @ exact))
            eta, length = eta / 2, 2 * length
        np.testing.assert_allclose(np.divide(distances[-5:], distances[-6:-1]), 0.5, rtol=0.05)  # as one over the steps
        assert distances[-1] < 1e-4


def expected_log_site(name, mean, variance):
    """E log g over N(mean, variance): of y = -1, or of y = 0.3 with scale or variance NOISE."""
    if name == "gaussian":
        return -0.5 * np.log(2 * np.pi * NOISE) - ((mean - 0.3) ** 2 + variance) / (2 * NOISE)
    z, w = gauss_hermite(101)
    f = np.asarray(mean)[..., None] + np.sqrt(variance)[..., None] * z
    return (-np.logaddexp(0, f) if name == "logistic" else -np.log(2 * NOISE) - np.abs(f - 0.3) / NOISE) @ w


def bound_of_draws(name, p, count, replacement):
    """Theorem 3's corrected right side for a row: its mean over all draws of functions and of columns, and z."""
    m = len(p.mu)
    if replacement:
        counts = np.array([c for c in itertools.product(range(count + 1), repeat=m) if sum(c) == count], float)
        weight = multinomial(count, np.full(m, 1 / m)).pmf(counts)
    else:
        counts = np.array([np.isin(range(m), c) for c in itertools.combinations(range(m), count)], float)
        weight = np.full(len(counts), 1 / len(counts))
    scale, phi = m / count, p.Phi[0]
    mean = scale * (counts * phi) @ p.mu
    deviations = scale**2 * (counts * phi) @ p.C  # (draws of functions, columns)
    variance = np.einsum("ir,kr->ik", deviations**2, counts**2)
    return weight @ expected_log_site(name, mean[:, None] + 0 * variance, variance) @ weight


@pytest.mark.parametrize("name", ["logistic", "laplace", "gaussian"])
def test_the_bias_of_the_corrected_theorem_3_falls_with_the_draws_and_is_gone_with_all_functions_alone(name):
    """Exactly, over all draws.  With replacement, as in the paper's proof, it falls too, but never to zero."""
    for seed in range(3):
        p = Problem(seed)
        p.C *= 0.3
        f, variance = p.Phi[0] @ p.mu, ((p.Phi[0] @ p.C) ** 2).sum()
        exact = expected_log_site(name, f, np.asarray(variance))
        for replacement in (False, True):
            gaps = [exact - bound_of_draws(name, p, count, replacement) for count in range(1, M + 1)]
            assert np.all(np.diff(gaps) < 0)
            assert gaps[-1] > 1e-3 if replacement else abs(gaps[-1]) < 1e-12


@pytest.mark.parametrize("noise", [0.0025, 0.01, 0.04, 0.1])
@pytest.mark.parametrize("lengthscale", [0.5, 1.0, 2.0])
def test_a_dense_factor_is_nearer_to_the_exact_gp_where_the_data_end_and_nearest_with_augmentation(lengthscale, noise):
    """Appendix G on figure 2's 20 inputs, with Φ = S = K: predictive standard deviations, which no target changes."""
    rows = np.linspace(-3, 3, 20)
    grid = np.linspace(-3 - 6 * lengthscale, 3 + 6 * lengthscale, 241)
    gram = lambda a, b: np.exp(-0.5 * np.subtract.outer(a, b) ** 2 / lengthscale**2)
    K, k = gram(rows, rows), gram(grid, rows)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 1e-12)
    diagonal = k**2 @ (noise / ((K**2).sum(0) + noise))  # proposition 1
    dense = (k @ vectors) ** 2 @ (1 / (values**2 / noise + values))  # (KK/σ² + K)⁻¹
    augmentation = noise / ((k**2).sum(1) + noise)  # proposition 4
    exact = 1 - np.sum(k * np.linalg.solve(K + noise * np.eye(20), k.T).T, axis=1)
    off = lambda variance: np.abs(np.sqrt(variance + noise) - np.sqrt(exact + noise))
    end = np.argmin(np.abs(grid - 3 - lengthscale))  # a lengthscale from the last row
    assert off(dense)[end] < min(off(diagonal)[end], off(diagonal + augmentation)[end])
    assert max(dense[-1], diagonal[-1]) < 1e-6  # both shrink far away
    others = (diagonal, diagonal + augmentation, dense)
    assert off(dense + augmentation).max() < 0.9 * min(off(variance).max() for variance in others)
