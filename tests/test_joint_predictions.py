"""Joint covariance and samples of the regressor: closed forms, marginals, and moments."""

import numpy as np
import pytest

from gpbench.estimators import Regressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = 3.0 + 20.0 * (np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40))
NEW = RNG.normal(size=(7, 2))


def fitted(method: str, **options) -> Regressor:
    return Regressor(method, options={f"method.{key}": value for key, value in options.items()}).fit(X, Y)


def squared_exponential(kernel, A, B):
    scaled = [points / np.exp(0.5 * kernel.log_lengthscale2) for points in (A, B)]
    squares = ((scaled[0][:, None] - scaled[1][None]) ** 2).sum(axis=-1)
    return np.exp(kernel.log_amplitude) * np.exp(-0.5 * squares)


def test_the_covariance_of_an_exact_gp_and_of_a_linear_model_is_its_closed_form():
    model = fitted("gpr", steps=10)
    parameters = model.state_.parameters
    rows, new = ((points - X.mean(axis=0)) / X.std(axis=0) for points in (X, NEW))
    K, cross, prior = (
        squared_exponential(parameters.kernel, *pair) for pair in ((rows, rows), (rows, new), (new, new))
    )
    noise = np.asarray(parameters.likelihood.noise)
    expected = prior - cross.T @ np.linalg.solve(K + noise * np.eye(len(X)), cross) + noise * np.eye(len(NEW))
    _, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(covariance, expected * Y.std() ** 2, rtol=1e-7, atol=1e-7)
    model = fitted("linear")
    design, new = (np.c_[(points - X.mean(axis=0)) / X.std(axis=0), np.ones(len(points))] for points in (X, NEW))
    noise = float(model.state_.noise)
    expected = noise * (np.eye(7) + new @ np.linalg.solve(design.T @ design + 1e-6 * np.eye(3), new.T))
    _, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(covariance, expected * Y.var(), rtol=1e-8)


@pytest.mark.parametrize("method", ["vsgpr", "pep", "svi"])
def test_the_covariance_of_a_sparse_gp_is_its_closed_form(method):
    model = fitted(method, inducing=12, steps=15)
    _, std = model.predict(NEW, return_std=True)
    _, covariance = model.predict(NEW, return_cov=True)
    noise = float(model.state_.parameters.likelihood.noise) * Y.var()
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-12)
    np.testing.assert_allclose(np.diag(model._covariance(NEW)) * Y.var() + noise, std**2, rtol=1e-6)
    layer, q = model.state_.parameters.layer, posterior(model)
    new = (NEW - X.mean(axis=0)) / X.std(axis=0)
    Z = np.asarray(layer.features.Z)
    K, cross, prior = (squared_exponential(layer.kernel, *pair) for pair in ((Z, Z), (Z, new), (new, new)))
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(Z)))  # u = root w, w ~ N(mean, RᵀR)
    R = np.tril(q.root)
    S = root @ R.T @ R @ root.T
    gain = np.linalg.solve(K + 1e-12 * np.eye(len(Z)), cross)
    expected = (prior - gain.T @ (K - S) @ gain) * Y.var()
    np.testing.assert_allclose(covariance, expected + noise * np.eye(len(NEW)), rtol=1e-4, atol=1e-4)


def posterior(model):
    state = model.state_
    return state.parameters.q if hasattr(state.parameters, "q") else state.optimiser.extra.q


def test_samples_have_the_mean_and_the_covariance():
    model = fitted("linear")
    mean, covariance = model.predict(NEW, return_cov=True)
    samples = model.sample_y(NEW, n_samples=20_000, random_state=1)
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * error).all()
    # the standard error of a sample covariance is √((c_ii c_jj + c_ij²) / n)
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 20_000)
    assert (np.abs(np.cov(samples) - covariance) < 5 * spread).all()
    np.testing.assert_array_equal(samples, model.sample_y(NEW, n_samples=20_000, random_state=1))


def test_what_has_no_joint_covariance_is_refused_in_one_line():
    model = Regressor("svi", options={"method.likelihood": "student_t", "method.steps": 1}).fit(X, Y)
    linear, constant = fitted("linear"), fitted("constant")
    for call, line in (
        (lambda: constant.predict(NEW, return_cov=True), r"constant has no joint covariance: use one of .*gpr, "),
        (lambda: model.sample_y(NEW), "a joint covariance needs Gaussian noise"),
        (lambda: linear.predict(NEW, return_std=True, return_cov=True), "ask for one of return_std and return_cov"),
        (lambda: linear.sample_y(NEW, n_samples=0), "n_samples=0"),
    ):
        with pytest.raises(ValueError, match=line):
            call()
