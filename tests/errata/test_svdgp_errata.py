"""docs/reference/errata.md, paper `svdgp`: what is printed and what holds, in finite dimensions."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
DIMENSIONS, M = 7, 3


def spd(n):
    root = RNG.normal(size=(n, n))
    return root @ root.T / n + 0.3 * np.eye(n)


def logdet(matrix):
    return np.linalg.slogdet(matrix)[1]


def kl(mean, cov, prior_mean, prior_cov):
    """KL[N(mean, cov) || N(prior_mean, prior_cov)] as everywhere (the paper's proposition 1)."""
    gap, inverse = mean - prior_mean, np.linalg.inv(prior_cov)
    return 0.5 * (np.trace(inverse @ cov) + gap @ inverse @ gap + logdet(prior_cov) - logdet(cov) - len(mean))


PSI_ALPHA, PSI_BETA, A = RNG.normal(size=(DIMENSIONS, 5)), RNG.normal(size=(DIMENSIONS, M)), RNG.normal(size=5)
K_ALPHA, K_BETA = PSI_ALPHA.T @ PSI_ALPHA, PSI_BETA.T @ PSI_BETA


def terms(B):
    """Quadratic, logarithm and trace of equation 9."""
    R = np.linalg.inv(np.linalg.inv(B) + K_BETA)
    return 0.5 * A @ K_ALPHA @ A, 0.5 * logdet(np.eye(M) + K_BETA @ B), -0.5 * np.trace(K_BETA @ R)


def of_measures(B):
    """KL between the measures of equation 7 and the standard normal, in DIMENSIONS dimensions."""
    cov = np.linalg.inv(np.eye(DIMENSIONS) + PSI_BETA @ B @ PSI_BETA.T)
    return kl(PSI_ALPHA @ A, cov, np.zeros(DIMENSIONS), np.eye(DIMENSIONS))


def hybrid():
    """S̃ and the B that appendix A.3 gives for it."""
    S = np.linalg.inv(np.linalg.inv(K_BETA) + spd(M))
    B_inverse = -(K_BETA + K_BETA @ np.linalg.inv(S - K_BETA) @ K_BETA)
    return S, np.linalg.inv(B_inverse)


def test_equation_9_holds_as_printed():
    B = spd(M)
    assert sum(terms(B)) == pytest.approx(of_measures(B))


def test_appendix_a3_lacks_a_half_before_its_log_determinant():
    S, B = hybrid()
    ratio = logdet(np.linalg.solve(K_BETA, S))
    assert terms(B)[1] == pytest.approx(-0.5 * ratio)
    assert abs(terms(B)[1] + ratio) > 0.5  # printed


def test_equation_14_needs_the_same_half_and_its_other_terms_hold():
    S, B = hybrid()
    rest = 0.5 * np.trace(S @ np.linalg.inv(K_BETA)) - M / 2
    assert terms(B)[2] == pytest.approx(rest)
    assert terms(B)[0] + rest - 0.5 * logdet(np.linalg.solve(K_BETA, S)) == pytest.approx(of_measures(B))
    printed = terms(B)[0] + rest - logdet(np.linalg.solve(K_BETA, S))
    assert abs(printed - of_measures(B)) > 0.5


def test_appendix_b12_leaves_out_the_constant_of_theorem_1():
    B, prior_B, prior_a = spd(M), spd(2), RNG.normal(size=4)
    prior_alpha, prior_beta = RNG.normal(size=(DIMENSIONS, 4)), RNG.normal(size=(DIMENSIONS, 2))
    inner = np.eye(DIMENSIONS) + prior_beta @ prior_B @ prior_beta.T
    G = lambda left, right: left.T @ inner @ right
    R = np.linalg.inv(np.linalg.inv(B) + K_BETA)
    printed = -0.5 * np.trace(G(PSI_BETA, PSI_BETA) @ R) + 0.5 * logdet(np.eye(M) + K_BETA @ B)
    printed += 0.5 * A @ G(PSI_ALPHA, PSI_ALPHA) @ A - A @ G(PSI_ALPHA, prior_alpha) @ prior_a
    gram = prior_beta.T @ prior_beta @ prior_B
    C = 0.5 * (np.trace(gram) - logdet(np.eye(2) + gram) + prior_a @ G(prior_alpha, prior_alpha) @ prior_a)
    cov = np.linalg.inv(np.eye(DIMENSIONS) + PSI_BETA @ B @ PSI_BETA.T)
    true = kl(PSI_ALPHA @ A, cov, prior_alpha @ prior_a, np.linalg.inv(inner))
    assert printed + C == pytest.approx(true)
    assert C > 1
