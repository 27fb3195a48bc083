"""Methods with kernels other than the squared exponential, in the limits where they must agree with exact results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    FROZEN,
    KERNEL,
    KEY,
    binary,
    bound_of,
    inputs,
    layer_at,
    objective_of,
    predict,
    regression,
    sep,
    start_at,
    start_layer,
    train,
)
from references import dense_ep
from scipy.spatial.distance import cdist, pdist
from scipy.stats import multivariate_normal

from gpbench.core.gaussians import initial_sites
from gpbench.core.kernels import Matern32, Matern52, kernel_spec
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters as Collapsed
from gpbench.methods.parts.exact import ExactGP
from gpbench.methods.vi import svi
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vsgpr import VSGPR

N = 15
NOISE = 0.1
MATERN = Matern52(KERNEL.log_amplitude, KERNEL.log_lengthscale2)


def matern52(X, Y):
    """`MATERN`, written out: amplitude e^0.7, squared lengthscales 0.8 and 1.5."""
    scale = np.sqrt([0.8, 1.5])
    s = np.sqrt(5) * cdist(X / scale, Y / scale)
    return np.exp(0.7) * (1 + s + s**2 / 3) * np.exp(-s)


def matern32_and_linear(X, Y):
    """Half a Matérn kernel, with the median distance for a lengthscale, and half a linear one, from `inputs(N)`."""
    rows = np.asarray(inputs(N))
    s = np.sqrt(3) * cdist(X, Y) / np.median(pdist(rows))
    return 0.5 * (1 + s) * np.exp(-s) + 0.5 * X @ Y.T / np.mean(np.sum(rows**2, 1))


def anova(X, Y):
    """Half the variance for the two main effects together, half for their interaction, from `inputs(N)`."""
    rows = np.asarray(inputs(N))
    z0, z1 = (
        np.exp(-0.5 * cdist(X[:, [d]], Y[:, [d]], "sqeuclidean") / np.median(pdist(rows[:, [d]])) ** 2) for d in (0, 1)
    )
    return 0.25 * (z0 + z1) + 0.5 * z0 * z1


def initial(spec):
    return kernel_spec(spec).initial(inputs(N), start="median")


KERNELS = {
    "matern52": (MATERN, matern52),
    "sum": (initial({"sum": ["matern32", "linear"]}), matern32_and_linear),
    "anova": (initial("anova"), anova),
}


@pytest.mark.parametrize("name", KERNELS)
def test_regression_with_every_point_inducing_is_exact(name):
    """Evidence of gpr, vsgpr and svi, and predictions of svi, against SciPy and the formulas."""
    data, (kernel, formula) = regression(N), KERNELS[name]
    X, y, likelihood = np.asarray(data.X), np.asarray(data.y), Gaussian(jnp.log(NOISE))
    K = formula(X, X) + NOISE * np.eye(N)
    exact = multivariate_normal(np.zeros(N), K).logpdf(y)
    evidence, _ = jax.jit(GPR(name="gpr").evidence)(ExactGP(kernel, likelihood), data)
    np.testing.assert_allclose(evidence, exact, rtol=1e-8)
    layer = layer_at(data.X, None, kernel=kernel)
    bound, _ = bound_of(VSGPR(name="vsgpr"), Collapsed(layer, likelihood), data)
    np.testing.assert_allclose(bound, exact, rtol=1e-6)

    method = SVI(name="svi", inducing=N, natural_step=1.0, optimiser=FROZEN)
    q = method.init(data, key=KEY).parameters.q
    state, _ = train(method, data, 1, start_at(method, data, svi.VariationalParameters(layer, likelihood, q)))
    np.testing.assert_allclose(objective_of(method, state, data), exact, rtol=1e-6)
    new = inputs(5, seed=9)
    k, predictive = formula(np.asarray(new), X), predict(method, state, new)
    np.testing.assert_allclose(predictive.mean, k @ np.linalg.solve(K, y), rtol=1e-4, atol=1e-6)
    variance = np.diag(formula(np.asarray(new), np.asarray(new))) - np.sum(k * np.linalg.solve(K, k.T).T, 1) + NOISE
    np.testing.assert_allclose(predictive.var, variance, rtol=1e-4)


@pytest.mark.parametrize("kernel", [{"sum": ["matern32", "linear"]}, "anova"], ids=["sum", "anova"])
def test_training_raises_the_evidence_under_composite_kernels(kernel):
    """L-BFGS on every parameter of the kernel, with lengthscales tied within each part."""
    _, objective = train(SVI(name="svi", kernel=kernel, inducing=5), regression(N), 20)
    assert (np.diff(objective) >= 0).all() and objective[-1] > objective[0] + 1.0


def test_ep_with_every_point_inducing_is_full_ep_under_a_matern_kernel():
    data = binary(N)
    kernel = Matern32(KERNEL.log_amplitude, KERNEL.log_lengthscale2)
    s = np.sqrt(3) * cdist(data.X / np.sqrt([0.8, 1.5]), data.X / np.sqrt([0.8, 1.5]))
    log_z, nu, tau, *_ = dense_ep(np.exp(0.7) * (1 + s) * np.exp(-s) + 0.05 * np.eye(N), np.asarray(data.y))
    layer = layer_at(data.X, kernel=kernel)
    value, _, inference = jax.jit(GFITC(tolerance=1e-10).evidence)(layer, data, initial_sites(data.weight))
    np.testing.assert_allclose(value, log_z, rtol=1e-6)
    np.testing.assert_allclose(inference.sites.nu, nu, rtol=1e-4)
    np.testing.assert_allclose(inference.sites.tau, tau, rtol=1e-4, atol=1e-6)
    method = sep(inducing=N, update="outer", tolerance=1e-10, damping=0.8)
    _, objective = train(method, data, 1, start_layer(method, data, layer))
    np.testing.assert_allclose(objective[-1], log_z, rtol=1e-6)
