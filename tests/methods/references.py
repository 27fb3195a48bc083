"""What the methods' tests hold them against: expectation propagation and evidences, written out on dense matrices."""

import numpy as np
from scipy.stats import norm


def probit(y, f):
    """log Φ(y f)."""
    return norm.logcdf(y * f)


def logistic(y, f):
    """log σ(y f)."""
    return -np.logaddexp(0.0, -y * f)


def gp_prediction(C, k, prior, y, noise):
    """Mean and variance of new targets: C covariances of the old ones, k (N, M) with f, prior variances of f."""
    weights = np.linalg.solve(C, k)
    return weights.T @ np.asarray(y), prior - np.sum(k * weights, axis=0) + noise


def tilted_moments(log_likelihood, y, mean, variance):
    """log Z, and mean and variance of p(y|f) N(f | mean, variance) / Z, for every row, by quadrature on a fine grid."""
    x = np.linspace(-12.0, 12.0, 1201)
    f = mean[:, None] + np.sqrt(variance)[:, None] * x
    weight = np.exp(log_likelihood(y[:, None], f)) * norm.pdf(x) * (x[1] - x[0])
    Z = weight.sum(1)
    first = (weight * f).sum(1) / Z
    return np.log(Z), first, (weight * (f - first[:, None]) ** 2).sum(1) / Z


def dense_ep(K, y, log_likelihood=probit, extra=0.0, sweeps=40):
    """Sequential EP with prior covariance K (Rasmussen and Williams 2006, algorithm 3.5), moments by quadrature.

    `extra` is the variance of an independent normal variable between f and the likelihood.  Returns log Z, the sites'
    precisions and shifts, and the posterior's mean and covariance.
    """
    n = len(y)
    nu, tau, S, mu = np.zeros(n), np.zeros(n), K.copy(), np.zeros(n)

    def cavity(i):
        v = 1 / (1 / np.diag(S)[i] - nu[i])
        return v * (mu[i] / np.diag(S)[i] - tau[i]), v

    for _ in range(sweeps):
        for i in range(n):
            m, v = cavity([i])
            _, mean, variance = tilted_moments(log_likelihood, y[[i]], m, v + extra)
            # first and minus second derivative of log Z in the cavity's mean
            slope, curvature = (mean - m) / (v + extra), (1 - variance / (v + extra)) / (v + extra)
            new = curvature / (1 - curvature * v)
            change, nu[i], tau[i] = new - nu[i], new[0], (slope + (m + slope * v) * new)[0]
            S = S - np.outer(S[i], S[i]) * change / (1 + change * S[i, i])
            mu = S @ tau
    m, v = cavity(np.arange(n))
    log_z, *_ = tilted_moments(log_likelihood, y, m, v + extra)
    # a site is scale · N(f | tau/nu, 1/nu), its scale such that it has the tilted distribution's mass
    log_z = np.sum(log_z - norm.logpdf(m, tau / nu, np.sqrt(v + 1 / nu)))
    B = K + np.diag(1 / nu)
    joint = -0.5 * np.linalg.slogdet(2 * np.pi * B)[1] - 0.5 * (tau / nu) @ np.linalg.solve(B, tau / nu)
    return log_z + joint, nu, tau, mu, S


def exact_evidence(K, y, nodes=60, log_likelihood=probit):
    """log ∫ Πₙ p(yₙ|fₙ) N(f | 0, K) df for three points, on a grid of nodes³ points."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3)
    weight = np.prod(np.stack(np.meshgrid(w, w, w, indexing="ij"), -1), -1).ravel() / (2 * np.pi) ** 1.5
    f = grid @ np.linalg.cholesky(K).T
    return np.log(weight @ np.exp(log_likelihood(y, f).sum(1)))


def sampled_evidence(K, y, classes, log_likelihood, samples=200_000):
    """log ∫ Πₙ p(yₙ|fₙ) Π_c N(f_c | 0, K) df by sampling from the prior, and its standard error.

    `log_likelihood` takes labels (N,) and latent values (S, N, C).
    """
    f = np.linalg.cholesky(K) @ np.random.default_rng(0).normal(size=(samples, len(y), classes))
    likelihood = np.exp(log_likelihood(y, f).sum(1))
    return np.log(likelihood.mean()), likelihood.std() / likelihood.mean() / np.sqrt(samples)
