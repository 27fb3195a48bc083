"""Methods under several kernels and likelihoods, in the limits where they must agree with exact results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    FROZEN,
    KERNEL,
    KEY,
    binary,
    evaluated,
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
from references import dense_ep, gp_prediction, logistic, probit
from scipy.spatial.distance import cdist, pdist
from scipy.stats import multivariate_normal

from gpbench.core.gaussians import initial_sites
from gpbench.core.kernels import Matern32, Matern52, kernel_spec
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.pep import PowerEP
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


def squared_exponential(X, Y):
    """`KERNEL`, written out."""
    scale = np.sqrt([0.8, 1.5])
    return np.exp(0.7 - 0.5 * cdist(X / scale, Y / scale, "sqeuclidean"))


def matern32_and_linear(X, Y):
    """Half a Matérn kernel, with the median distance for a lengthscale, and half a linear one, from `inputs(N)`."""
    rows = np.asarray(inputs(N))
    s = np.sqrt(3) * cdist(X, Y) / np.median(pdist(rows))
    return 0.5 * (1 + s) * np.exp(-s) + 0.5 * X @ Y.T / np.mean(np.sum(rows**2, 1))


def anova(X, Y):
    """Half the variance for the two main effects together, half for their interaction, from `inputs(N)`."""
    rows = np.asarray(inputs(N))
    square = lambda d: cdist(X[:, [d]], Y[:, [d]], "sqeuclidean")
    z0, z1 = (np.exp(-0.5 * square(d) / np.median(pdist(rows[:, [d]])) ** 2) for d in (0, 1))
    return 0.25 * (z0 + z1) + 0.5 * z0 * z1


def initial(spec):
    return kernel_spec(spec).initial(inputs(N), start="median")


KERNELS = {
    "squared_exponential": (KERNEL, squared_exponential),
    "matern52": (MATERN, matern52),
    "sum": (initial({"sum": ["matern32", "linear"]}), matern32_and_linear),
    "anova": (initial("anova"), anova),
}


@pytest.mark.parametrize("name", KERNELS)
def test_regression_with_every_point_inducing_is_exact(name):
    """Evidence and predictions of gpr, vsgpr, FITC and svi, against SciPy and the formulas."""
    data, (kernel, formula) = regression(N), KERNELS[name]
    X, y, new, likelihood = *map(np.asarray, (data.X, data.y, inputs(5, seed=9))), Gaussian(jnp.log(NOISE))
    C, k, prior = formula(X, X) + NOISE * np.eye(N), formula(X, new), np.diag(formula(new, new))
    exact = multivariate_normal(np.zeros(N), C).logpdf(y)
    layer, states = layer_at(data.X, None, kernel=kernel), []
    for method, parameters, rtol in (
        (GPR(name="gpr"), ExactGP(kernel, likelihood), 1e-8),
        (VSGPR(name="vsgpr", inducing=N), Collapsed(layer, likelihood), 1e-6),
        (PowerEP(name="fitc_gp", alpha=1.0, inducing=N), Collapsed(layer, likelihood), 1e-6),
    ):
        value, state = evaluated(method, data, parameters)
        np.testing.assert_allclose(value, exact, rtol=rtol)
        states.append((method, state))
    method = SVI(name="svi", inducing=N, natural_step=1.0, optimiser=FROZEN)
    q = method.init(data, key=KEY).parameters.q
    state, _ = train(method, data, 1, start_at(method, data, svi.VariationalParameters(layer, likelihood, q)))
    np.testing.assert_allclose(objective_of(method, state, data), exact, rtol=1e-6)
    mean, variance = gp_prediction(C, k, prior, y, NOISE)
    for of, at in [*states, (method, state)]:
        predictive = predict(of, at, jnp.asarray(new))
        np.testing.assert_allclose(predictive.mean, mean, rtol=1e-4, atol=1e-6, err_msg=of.name)
        np.testing.assert_allclose(predictive.var, variance, rtol=1e-4, err_msg=of.name)


@pytest.mark.parametrize("kernel", [{"sum": ["matern32", "linear"]}, "anova"], ids=["sum", "anova"])
def test_training_raises_the_evidence_under_composite_kernels(kernel):
    """L-BFGS on every parameter of the kernel, with lengthscales tied within each part."""
    _, objective = train(SVI(name="svi", kernel=kernel, inducing=5), regression(N), 20)
    assert (np.diff(objective) >= 0).all() and objective[-1] > objective[0] + 1.0


@pytest.mark.parametrize("case", ["matern32", "logistic"])
def test_ep_with_every_point_inducing_is_full_ep_under_another_kernel_and_likelihood(case):
    data, fields, log_likelihood, kernel = binary(N), {}, probit, KERNEL
    K = squared_exponential(data.X, data.X)
    if case == "matern32":
        kernel = Matern32(KERNEL.log_amplitude, KERNEL.log_lengthscale2)
        s = np.sqrt(3) * cdist(data.X / np.sqrt([0.8, 1.5]), data.X / np.sqrt([0.8, 1.5]))
        K = np.exp(0.7) * (1 + s) * np.exp(-s)
    else:
        fields, log_likelihood = {"likelihood": {"logistic": {"nodes": 60}}}, logistic
    log_z, nu, tau, *_ = dense_ep(K + 0.05 * np.eye(N), np.asarray(data.y), log_likelihood)
    layer = layer_at(data.X, kernel=kernel)
    gfitc = GFITC(tolerance=1e-10, **fields)
    value, _, inference = jax.jit(gfitc.evidence)(layer, data, initial_sites(data.weight))
    np.testing.assert_allclose(value, log_z, rtol=1e-6)
    np.testing.assert_allclose(inference.sites.nu, nu, rtol=1e-4)
    np.testing.assert_allclose(inference.sites.tau, tau, rtol=1e-4, atol=1e-6)
    method = sep(inducing=N, update="outer", tolerance=1e-10, damping=0.8, **fields)
    _, objective = train(method, data, 1, start_layer(method, data, layer))
    np.testing.assert_allclose(objective[-1], log_z, rtol=1e-6)
