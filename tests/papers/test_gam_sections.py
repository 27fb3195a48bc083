"""Sentences of paper `gam` in NumPy, on a Gaussian likelihood."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
C, N, M, NOISE = 2, 6, 3, 0.4
"""Components, rows, inducing points of each, noise variance."""


def gram(a, b, scale):
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
        Kuu[c * M : (c + 1) * M, c * M : (c + 1) * M] = gram(z, z, scale)
    Kuf = np.concatenate([gram(z, RNG.uniform(size=N), scale) for scale in scales])
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
