"""docs/reference/errata.md, paper `gam`: what is printed and what holds, on a Gaussian likelihood."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from gpbench.core.quadrature import gauss_hermite

RNG = np.random.default_rng(0)
C, N, M, NOISE = 2, 6, 3, 0.4
"""Components, rows, inducing points of each, noise variance (λ² = 1/NOISE is not 1, so that λ and λ² differ)."""


def gram(a, b, scale):
    return np.exp(-0.5 * (a[:, None] - b[None]) ** 2 / scale**2)


X, Z = RNG.uniform(size=(C, N)), np.stack([np.linspace(0, 1, M)] * C)
SCALES = (0.3, 0.6)
Y = RNG.normal(size=N)
K = [gram(x, x, s) + 1e-9 * np.eye(N) for x, s in zip(X, SCALES)]
KUU = [gram(z, z, s) + 1e-9 * np.eye(M) for z, s in zip(Z, SCALES)]
KFU = [gram(x, z, s) for x, z, s in zip(X, Z, SCALES)]


def blocks(matrices):
    rows, columns = matrices[0].shape
    out = np.zeros((C * rows, C * columns))
    for c, matrix in enumerate(matrices):
        out[c * rows : (c + 1) * rows, c * columns : (c + 1) * columns] = matrix
    return out


def inv(matrix):
    return np.linalg.inv(matrix)


def logdet(matrix):
    return np.linalg.slogdet(matrix)[1]


KFF, ONES = blocks(K), np.kron(np.ones((C, 1)), np.eye(N))
LAMBDA = np.eye(N) / np.sqrt(NOISE)
EXACT = inv(inv(KFF) + ONES @ ONES.T / NOISE)
"""The exact posterior covariance of all components at all rows (CN, CN)."""
MEAN = EXACT @ ONES @ Y / NOISE


def expected_log_likelihood(mean, cov):
    rho, variance = ONES.T @ mean, np.diag(ONES.T @ cov @ ONES)
    return np.sum(-0.5 * np.log(2 * np.pi * NOISE) - 0.5 * ((Y - rho) ** 2 + variance) / NOISE)


def slopes_in_covariance(mean, cov, h=1e-5):
    """∇_Σ V by finite differences (CN, CN)."""
    out = np.zeros_like(cov)
    for index in np.ndindex(*cov.shape):
        step = np.zeros_like(cov)
        step[index] = h
        above, below = expected_log_likelihood(mean, cov + step), expected_log_likelihood(mean, cov - step)
        out[index] = (above - below) / (2 * h)
    return out


def test_equation_2_subtracts_the_divergence_and_has_the_priors_determinant():
    evidence = multivariate_normal(np.zeros(N), sum(K) + NOISE * np.eye(N)).logpdf(Y)
    inner = np.trace(inv(KFF) @ EXACT) + MEAN @ inv(KFF) @ MEAN - logdet(EXACT) - N * C
    fit = expected_log_likelihood(MEAN, EXACT)
    assert fit - 0.5 * (inner + logdet(KFF)) == pytest.approx(evidence, rel=1e-5)  # tight at the exact posterior
    assert abs(fit + 0.5 * inner - evidence) > 1 and abs(fit - 0.5 * inner - evidence) > 1


def test_section_3_takes_twice_the_gradient_from_the_precision():
    gradient = slopes_in_covariance(MEAN, EXACT)
    assert np.allclose(gradient, -ONES @ ONES.T / (2 * NOISE), atol=1e-6)
    assert np.allclose(inv(inv(KFF) - 2 * gradient), EXACT, atol=1e-6)
    printed = inv(KFF) + gradient
    assert not np.allclose(inv(printed), EXACT, atol=1e-2) and np.linalg.eigvalsh(printed).min() < 0  # no precision


def test_equation_6_has_lambda_squared():
    half = blocks([inv(k) for k in KUU]) @ np.concatenate([k.T for k in KFU])  # K_UU⁻¹ Σ_c K_U,fc, (CM, N)
    # the best Gaussian q(U) under a Gaussian likelihood: that of y = Σ_c K_fc,Uc Kc⁻¹ U_c + noise (Titsias 2009)
    best = inv(blocks(KUU)) + half @ half.T / NOISE
    assert np.allclose(inv(blocks(KUU)) + half @ LAMBDA**2 @ half.T, best)
    assert not np.allclose(inv(blocks(KUU)) + half @ LAMBDA @ half.T, best, rtol=0.1)


def test_appendix_b1_whitens_by_the_factor_itself_and_sums_without_a_transposition():
    A = np.eye(N) + sum(LAMBDA @ k @ LAMBDA for k in K)
    L = np.linalg.cholesky(A)
    marginal = ONES.T @ EXACT @ ONES
    with pytest.raises(ValueError):
        ONES.T @ EXACT @ ONES.T  # printed
    S = LAMBDA @ sum(K)
    assert np.allclose(sum(K) - (inv(L) @ S).T @ (inv(L) @ S), marginal)
    printed = sum(K) - (inv(L).T @ S).T @ (inv(L).T @ S)
    assert np.abs(printed - marginal).max() > 0.01


def test_appendix_c_needs_k_of_the_inducing_points_in_a():
    B = [RNG.normal(size=(M, M)) for _ in range(C)]
    tall = np.concatenate(B)
    cov = inv(inv(blocks(KUU)) + tall @ tall.T)
    A = np.eye(M) + tall.T @ blocks(KUU) @ tall
    assert np.allclose(A, np.eye(M) + sum(b.T @ k @ b for b, k in zip(B, KUU)))
    assert logdet(inv(blocks(KUU)) @ cov) == pytest.approx(-logdet(A))
    with pytest.raises(ValueError):
        tall.T @ KFF @ tall  # printed: (M, CM) times (CN, CN)


def test_appendix_c1_pairs_every_component_with_its_own_rows():
    B = [RNG.normal(size=(M, M)) for _ in range(C)]
    tall = np.concatenate(B)
    L = np.linalg.cholesky(np.eye(M) + tall.T @ blocks(KUU) @ tall)
    inner = blocks(KFU) @ inv(blocks(KUU))
    full = KFF - inner @ (blocks(KUU) - inv(inv(blocks(KUU)) + tall @ tall.T)) @ inner.T
    left = {(c, d): inv(L) @ B[c].T @ gram(Z[c], X[d], SCALES[c]) for c in range(C) for d in range(C)}
    pairs = [(c, d) for c in range(C) for d in range(C)]
    corrected = sum(K) - sum(left[c, c].T @ left[d, d] for c, d in pairs)
    printed = sum(K) - sum(left[c, d].T @ left[d, d] for c, d in pairs)  # K_{U_c, f_c'} in the first factor
    assert np.allclose(corrected, ONES.T @ full @ ONES, atol=1e-6)
    assert np.abs(printed - corrected).max() > 0.01


def test_section_4_has_a_cholesky_factor_of_half_as_many_values():
    for c, m in ((1, 16), (2, 16), (2, 5), (7, 16)):
        values = np.count_nonzero(np.tril(np.ones((c * m, c * m))))
        assert values == c * m * (c * m + 1) // 2 and abs(values / (m * c) ** 2 - 0.5) < 0.11  # printed: M² C²
        # B has M² C: fewer for several components, but of two only by their 2M/2 diagonal values
        assert (c > 1) == (m**2 * c < values) and (c != 2 or values - m**2 * c == m)


SIGNS = np.sign(Y)
NODES, WEIGHTS = gauss_hermite(40)


def predictors(mean, cov):
    """The sum of the components at the rows, with label, at the nodes of its distribution (N, nodes)."""
    deviation = np.sqrt(np.diag(ONES.T @ cov @ ONES))
    return SIGNS[:, None] * ((ONES.T @ mean)[:, None] + deviation[:, None] * NODES)


def logistic_bound(mean, cov):
    """Equation 2, corrected, for labels and the logistic likelihood."""
    inner = np.trace(np.linalg.solve(KFF, cov)) + mean @ np.linalg.solve(KFF, mean) - N * C
    expected = -np.logaddexp(0, -predictors(mean, cov)) @ WEIGHTS
    return expected.sum() - 0.5 * (inner + logdet(KFF) - logdet(cov))


def best_two_n_values():
    """Mean K 1 ν and covariance of equation 4 where ν = E ∂ log p and λ² = -E ∂² log p, from iterations."""
    nu, squares = np.zeros(N), np.zeros(N)
    for _ in range(200):
        left = KFF @ ONES * np.sqrt(squares)
        A = np.eye(N) + np.sqrt(squares)[:, None] * sum(K) * np.sqrt(squares)
        mean, cov = KFF @ ONES @ nu, KFF - left @ np.linalg.solve(A, left.T)
        p = expit(-predictors(mean, cov))
        nu, squares = 0.5 * (nu + SIGNS * (p @ WEIGHTS)), 0.5 * (squares + (p * (1 - p)) @ WEIGHTS)
    return mean, cov


def test_section_3_has_the_optimum_in_2n_values_and_is_over_parameterised_from_half_the_printed_rows_on():
    """No direction of mean or covariance raises the bound of the best 2N values; (M C)(M C + 3)/2 are all there are."""
    mean, cov = best_two_n_values()
    best, root = logistic_bound(mean, cov), np.linalg.cholesky(cov)
    for _ in range(40):
        step, S = RNG.normal(size=C * N), RNG.normal(size=(C * N, C * N))
        moved = lambda h, step=step, S=S: logistic_bound(
            mean + h * root @ step, root @ (np.eye(C * N) + h * (S + S.T)) @ root.T
        )
        assert abs(moved(1e-4) - moved(-1e-4)) / 2e-4 < 1e-4 and max(moved(0.02), moved(-0.02)) < best
    for size in (4, 112):  # M C, of a symmetric covariance and a mean
        values = size + np.count_nonzero(np.tril(np.ones((size, size))))
        assert values == size * (size + 3) // 2
        first = values // 2 + 1  # rows N with 2N > values
        assert first < 0.9 * (size**2 / 2 + 1)  # printed: N > M² C² / 2
    assert 2 * 5_000 > 112 * 115 // 2 and 5_000 < 112**2 / 2  # section 7: 7 components of 16 points, 5,000 rows
