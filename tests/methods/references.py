"""What the methods' tests hold them against: expectation propagation and evidences, written out on dense matrices."""

import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from gpbench.core.kernels import SquaredExponential
from gpbench.methods.sparse import Hyper


def hyper_at(Z, noise=0.05):
    """Some hyper-parameters, with inducing points `Z` in two dimensions."""
    return Hyper(SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5]))), jnp.log(noise), Z)


def inputs(n, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, 2)))


def classes(X, seed=1):
    """Labels that mostly follow the first input."""
    return jnp.where(X[:, 0] + 0.5 * np.random.default_rng(seed).normal(size=len(X)) > 0, 1.0, -1.0)


def full_ep(K, y, sweeps=60):
    """Sequential EP for probit regression with prior covariance K (Rasmussen and Williams 2006, algorithm 3.5).

    Returns log Z and the sites' precisions and shifts.
    """
    n = len(y)
    tau, nu, S, mu = np.zeros(n), np.zeros(n), K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            tau_c, nu_c = 1 / S[i, i] - tau[i], mu[i] / S[i, i] - nu[i]
            m, v = nu_c / tau_c, 1 / tau_c
            z = y[i] * m / np.sqrt(1 + v)
            ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
            mean = m + y[i] * v * ratio / np.sqrt(1 + v)
            variance = v - v**2 * ratio / (1 + v) * (z + ratio)
            tau[i], nu[i] = 1 / variance - tau_c, mean / variance - nu_c
            S = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
            mu = S @ nu
    tau_c, nu_c = 1 / np.diag(S) - tau, mu / np.diag(S) - nu
    m, v = nu_c / tau_c, 1 / tau_c
    log_z = norm.logcdf(y * m / np.sqrt(1 + v))
    # a site is scale · N(f | nu/tau, 1/tau), its scale such that it has the tilted distribution's mass
    gap = norm.logpdf(m, nu / tau, np.sqrt(v + 1 / tau))
    joint = -0.5 * np.linalg.slogdet(2 * np.pi * (K + np.diag(1 / tau)))[1]
    joint -= 0.5 * (nu / tau) @ np.linalg.solve(K + np.diag(1 / tau), nu / tau)
    return np.sum(log_z - gap) + joint, tau, nu


def exact_evidence(K, y, nodes=60, log_likelihood=lambda y, f: norm.logcdf(y * f)):
    """log ∫ Πₙ p(yₙ|fₙ) N(f | 0, K) df for three points, on a grid of nodes³ points; p(y|f) = Φ(y f) if not told."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3)
    weight = np.prod(np.stack(np.meshgrid(w, w, w, indexing="ij"), -1), -1).ravel() / (2 * np.pi) ** 1.5
    f = grid @ np.linalg.cholesky(K).T
    return np.log(weight @ np.exp(log_likelihood(y, f).sum(1)))
