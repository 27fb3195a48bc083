"""Fastfood features against the kernel and dense matrices, and `alacarte` against dense Bayesian linear regression."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KERNEL, KEY, differences, evaluated, inputs, predict, regression
from references import gp_prediction
from scipy.linalg import hadamard
from scipy.stats import multivariate_normal

from gpbench.core.bases.fastfood import Fastfood, walsh_hadamard
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.exact import alacarte
from gpbench.methods.exact.alacarte import AlaCarte, AlaCarteParameters
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.exact import ExactGP, fit_subset

NOISE = Gaussian(jnp.asarray(np.log(0.05)))


def model(frequencies, key=KEY, dtype="float64"):
    """Parameters with the kernel of the other tests, a noise variance of 0.05, and random frequencies."""
    sample = jax.jit(lambda key: Fastfood.sample(2, frequencies, "float64", key=key))
    parameters = AlaCarteParameters(KERNEL, NOISE, sample(key))
    return jax.tree.map(lambda leaf: leaf.astype(dtype), parameters)


@jax.jit
def features_of(parameters, X):
    """`parameters.features`, compiled."""
    return parameters.features(X)


@pytest.mark.parametrize("size", [1, 2, 16])
def test_the_fast_transform_is_the_product_with_the_walsh_hadamard_matrix(size):
    X = jax.random.normal(KEY, (3, size, 5))
    np.testing.assert_allclose(walsh_hadamard(X), hadamard(size) @ np.asarray(X), atol=1e-12)


@pytest.mark.parametrize(("inputs_", "frequencies"), [(1, 3), (3, 6), (4, 8)])
def test_projections_are_those_of_the_dense_matrix(inputs_, frequencies):
    fastfood = Fastfood.sample(inputs_, frequencies, "float64", key=KEY)
    X = jax.random.normal(KEY, (5, inputs_))
    size = fastfood.S.shape[1]
    assert size >= inputs_ and frequencies <= fastfood.S.size < frequencies + size
    H, blocks = hadamard(size), []
    for S, G, B, order in zip(fastfood.S, fastfood.G, fastfood.B, fastfood.order):
        Pi = np.eye(size)[np.argsort(order)]
        blocks.append(np.diag(S) @ H @ np.diag(G) @ Pi @ H @ np.diag(B) / np.sqrt(size))
    V = np.concatenate(blocks)[:frequencies, :inputs_]
    np.testing.assert_allclose(jax.jit(lambda f, X: f.project(X))(fastfood, X), V @ np.asarray(X).T, atol=1e-12)


def test_inner_products_of_features_are_unbiased_for_the_kernel():
    """Of 3 inputs, which are filled up to 4, and 6 frequencies, one block and a half; 4000 seeds."""
    X = 0.7 * jax.random.normal(KEY, (6, 3))
    kernel = SquaredExponential(jnp.array(0.0), jnp.zeros(3))

    @jax.jit
    @jax.vmap
    def products(key):
        features = Fastfood.sample(3, 6, "float64", key=key).features(X)
        return features.T @ features

    draws = products(jax.random.split(KEY, 4000))
    error = draws.std(axis=0) / np.sqrt(4000)
    assert error.max() < 0.006  # so that the next line is a claim
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - kernel.cross(X, X)), 4 * error + 1e-12)


@pytest.mark.parametrize("block", [8, 100], ids=["blocks of rows", "one block"])
def test_evidence_and_prediction_are_those_of_the_dense_linear_model(block, monkeypatch):
    monkeypatch.setattr(alacarte, "_BLOCK", block)
    data, method, parameters = regression(), AlaCarte(name="alacarte", frequencies=7), model(7)
    features = np.asarray(features_of(parameters, data.X))
    C = features.T @ features + 0.05 * np.eye(data.total)
    value, state = evaluated(method, data, parameters)
    np.testing.assert_allclose(value, multivariate_normal(np.zeros(data.total), C).logpdf(data.y), rtol=1e-8)
    new = inputs(7, seed=5)
    theirs, predictive = np.asarray(features_of(parameters, new)), predict(method, state, new)
    mean, variance = gp_prediction(C, features.T @ theirs, np.sum(theirs**2, 0), data.y, 0.05)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(predictive.var, variance, rtol=1e-6)
    mean, S = np.asarray(state.optimiser.extra.mean), np.linalg.inv(np.eye(14) + features @ features.T / 0.05)
    kl = 0.5 * (np.trace(S) + mean @ mean - 14 - np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(jax.jit(lambda state: method.kl(state))(state), kl, rtol=1e-6)


@pytest.mark.parametrize("learn", ["lengthscales", "all"])
def test_the_gradient_is_that_of_finite_differences_where_it_is_learned_and_else_0(learn, monkeypatch):
    monkeypatch.setattr(alacarte, "_BLOCK", 8)
    data, method, parameters = regression(), AlaCarte(name="alacarte", frequencies=3, learn=learn), model(3)
    x, unravel = ravel_pytree(parameters)
    value = lambda x: method.evidence(unravel(x), data)[0]
    gradient, slopes = jax.jit(jax.grad(value))(x), differences(value, x)
    names = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), parameters))[0]
    learned = eqx.tree_at(lambda p: p.fastfood.order, jax.tree.map(jnp.ones_like, parameters), names[:4].reshape(2, 2))
    if learn == "lengthscales":
        learned = eqx.tree_at(lambda p: p.fastfood, learned, jax.tree.map(jnp.zeros_like, learned.fastfood))
    np.testing.assert_allclose(gradient, ravel_pytree(learned)[0] * slopes, rtol=1e-5, atol=1e-5)


def test_with_many_features_it_tends_to_the_exact_gp():
    """The error of random features falls as one over the root of their number: of 16 times as many, to a quarter."""
    data, new = regression(), inputs(20, seed=5)
    gpr = GPR(name="gpr")
    exact = predict(gpr, evaluated(gpr, data, ExactGP(KERNEL, NOISE))[1], new)

    def error(frequencies):
        @jax.jit
        @jax.vmap
        def of(key):
            parameters = model(frequencies, key)
            _, posterior = AlaCarte(name="alacarte", frequencies=frequencies).evidence(parameters, data)
            mean, variance = posterior.project(parameters.features(new))
            return jnp.stack([mean - exact.mean, variance + 0.05 - exact.var])

        return np.sqrt(np.mean(of(jax.random.split(KEY, 8)) ** 2, axis=(0, 2)))

    few, many = error(16), error(256)
    assert (many < 0.4 * few).all() and (many < 0.1).all()


def test_it_can_start_from_an_exact_gp_of_some_rows():
    data, fields = regression(), {"start": "median", "noise": 0.1, "floor": 0.0}
    method = AlaCarte(name="alacarte", frequencies=4, subset_rows=15)
    parameters, gp = method.init(data, key=KEY).parameters, fit_subset(method.kernel, data, 15, **fields)
    assert eqx.tree_equal(ExactGP(parameters.kernel, parameters.likelihood), gp)
