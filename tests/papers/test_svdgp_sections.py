"""What paper `svdgp` says of its posterior's covariance and of its limits, in NumPy."""

import numpy as np
import pytest

NOISE = 0.2


def gram(a, b):
    return np.exp(-0.5 * np.sum((a[:, None] - b[None]) ** 2, axis=-1))


def reduction(X, Z, B):
    """Prior less posterior covariance at X by equation 8: k_β (B⁻¹ + K_β)⁻¹ k_βᵀ, written so that B may be singular."""
    return gram(X, Z) @ B @ np.linalg.solve(np.eye(len(Z)) + gram(Z, Z) @ B, gram(Z, X))


@pytest.mark.parametrize("seed", range(5))
def test_b_makes_the_posterior_surer_than_the_prior_strictly_so_where_it_is_positive_definite(seed):
    """Section 3.3; B ⪰ 0 as printed allows B = 0, whose posterior has the prior's covariance."""
    rng = np.random.default_rng(seed)
    X, Z, root = (rng.normal(size=shape) for shape in ((30, 2), (6, 2), (6, 6)))
    for B in (root @ root.T, root[:, :2] @ root[:, :2].T):
        less = reduction(X, Z, B)
        assert np.linalg.eigvalsh(less + less.T)[0] > -1e-12
        assert np.linalg.eigvalsh(gram(X, X) - less).min() > -1e-9  # still a covariance
    assert np.diag(reduction(X, Z, root @ root.T)).min() > 0
    K = gram(Z, Z)
    unseen = np.linalg.svd(root[:, :2].T @ K)[2][-1]  # a combination of features that a singular B does not touch
    assert abs(unseen @ reduction(Z, Z, root[:, :2] @ root[:, :2].T) @ unseen) < 1e-12
    np.testing.assert_array_equal(reduction(X, Z, np.zeros((6, 6))), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_with_the_rows_as_features_it_is_the_exact_posterior_and_without_any_the_objective_is_ridge_regressions(seed):
    """Sections 3.3 and 3.4, with Gaussian noise.  B = I/σ²; and the bound in a is -(|y - Ka|² + σ² aᵀKa)/2σ² + c."""
    rng = np.random.default_rng(seed)
    X, new, y = (rng.normal(size=shape) for shape in ((12, 2), (7, 2), 12))
    K, k = gram(X, X), gram(new, X)
    exact = k @ np.linalg.solve(K + NOISE * np.eye(12), k.T)
    np.testing.assert_allclose(reduction(new, X, np.eye(12) / NOISE), exact, atol=1e-10)

    def bound(a):
        """E log p(y|f) - KL for f of mean Ka and the prior's covariance: the divergence is of the means alone."""
        expected = -0.5 * (np.sum((y - K @ a) ** 2) + np.trace(K)) / NOISE - 6 * np.log(2 * np.pi * NOISE)
        return expected - 0.5 * a @ K @ a

    ridge = lambda a: np.sum((y - K @ a) ** 2) + NOISE * a @ K @ a
    a, b = rng.normal(size=(2, 12))
    np.testing.assert_allclose(bound(a) - bound(b), (ridge(b) - ridge(a)) / (2 * NOISE), rtol=1e-9)
    best = np.linalg.solve(K + NOISE * np.eye(12), y)
    assert all(bound(best) > bound(best + 0.01 * rng.normal(size=12)) for _ in range(10))
