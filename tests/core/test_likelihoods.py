"""Likelihoods: every expectation against numerical integration or sampling, every slope against differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import norm

from gpbench import registry
from gpbench.core.likelihoods import Laplace, Logistic, RobustMax, Softmax, StudentT, likelihood_spec

NOISE = 0.2
CHOICES = {"gaussian": "gaussian", "laplace": "laplace", "student_t, df 4": "student_t"}
CHOICES |= {"student_t, df learned": {"student_t": {"df": 1.5, "learn_df": True}}}
CHOICES |= {name: {name: {"nodes": 60}} for name in ("probit", "logistic")}
"""Likelihoods with one latent value a row."""
MULTI = {"softmax": {"softmax": {"samples": 1024}}, "robust_max": {"robust_max": {"epsilon": 0.01, "nodes": 60}}}


def of(choice, dtype="float64", classes=3):
    """The likelihood that a configuration chooses, for a task that it is for."""
    spec = likelihood_spec(choice)
    (task,) = registry.LIKELIHOODS[spec.name].tasks
    return spec.initial(task, classes if task == "multiclass" else 0, noise=NOISE, dtype=dtype)


# Compiled: run operation by operation, each operation would be a program of its own, for each shape and dtype.


@jax.jit
def expected_log_prob(likelihood, mean, variance, y):
    return likelihood.expected_log_prob(mean, variance, y)


@partial(jax.jit, static_argnames="alpha")
def log_normaliser(likelihood, mean, variance, y, alpha=1.0):
    return likelihood.log_normaliser(mean, variance, y, alpha=alpha)


@jax.jit
def log_density(likelihood, f, y):
    return likelihood.log_prob(f, y)


def rows(likelihood, dtype="float64"):
    """Means, variances and targets of eight rows."""
    mean = np.array([0.3, 0.3, -4.0, 2.0, 0.0, 1.0, -1.0, 3.0], dtype)
    variance = np.array([0.7, 0.01, 2.0, 1e-6, 1.5, 0.3, 4.0, 0.5], dtype)
    y = np.array([0.4, -1.0, 3.0, 2.0, 0.0, 6.0, -0.5, 3.1], dtype)
    y = np.where(y > 0, 1.0, -1.0).astype(dtype) if "binary" in likelihood.tasks else y
    return jnp.asarray(mean), jnp.asarray(variance), jnp.asarray(y)


def integral(g, mean, variance, y):
    """E g(f, y) for f ~ N(mean, variance), every row: a trapezoidal rule on 50,001 points, of an error below 1e-6."""
    x = np.linspace(-9.0, 9.0, 50_001)
    weight = norm.pdf(x) * (x[1] - x[0])
    return np.array([g(m + np.sqrt(v) * x, t) @ weight for m, v, t in zip(*map(np.asarray, (mean, variance, y)))])


@pytest.fixture(params=CHOICES)
def likelihood(request):
    return of(CHOICES[request.param])


@pytest.fixture(params=MULTI)
def multi(request):
    return of(MULTI[request.param])


def classes_and_sample(likelihood, samples=100_000):
    """Six rows of three classes, and log p(y|f) (N, samples) at draws of their latent values."""
    random = np.random.default_rng(0)
    mean, variance = random.normal(size=(6, 3)), random.uniform(0.1, 2.0, size=(6, 3))
    y = np.arange(6.0) % 3
    f = mean[:, None] + np.sqrt(variance)[:, None] * random.normal(size=(6, samples, 3))
    log_prob = np.asarray(log_density(likelihood, f, y[:, None]))
    return *map(jnp.asarray, (mean, variance, y)), log_prob


# One latent value a row


def test_expected_log_prob_is_the_integral(likelihood):
    at = rows(likelihood)
    expected = integral(lambda f, y: np.asarray(log_density(likelihood, f, y)), *at)
    np.testing.assert_allclose(expected_log_prob(likelihood, *at), expected, rtol=2e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_log_normaliser_is_the_log_of_the_integral_of_the_power(likelihood, alpha):
    at = rows(likelihood)
    z = integral(lambda f, y: np.exp(alpha * np.asarray(log_density(likelihood, f, y))), *at)
    np.testing.assert_allclose(log_normaliser(likelihood, *at, alpha=alpha), np.log(z), rtol=2e-5, atol=2e-5)


def test_the_predictive_log_prob_is_the_log_normaliser(likelihood):
    mean, variance, y = rows(likelihood)
    log_prob = jax.jit(lambda likelihood: likelihood.predictive(mean, variance).log_prob(y))(likelihood)
    np.testing.assert_allclose(log_prob, log_normaliser(likelihood, mean, variance, y), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_normaliser_derivatives_are_those_of_the_log_normaliser(likelihood, alpha):
    mean, variance, y = rows(likelihood)
    derivatives = jax.jit(partial(likelihood.normaliser_derivatives, alpha=alpha))
    log_z, slope, curvature = map(np.asarray, derivatives(mean, variance, y))
    h = 1e-3 * np.sqrt(variance)
    up, mid, down = (
        np.asarray(log_normaliser(likelihood, np.asarray(mean) + d, variance, y, alpha=alpha)) for d in (h, 0.0, -h)
    )
    np.testing.assert_allclose(log_z, mid, rtol=1e-12, atol=1e-12)
    # The differences lose h²/6 of the third derivative and 1e-13 / h² to rounding; a kink of 1e-3 width is excepted.
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-4, atol=1e-5)
    smooth = np.asarray(variance) > 1e-3
    np.testing.assert_allclose(curvature[smooth], -((up - 2 * mid + down) / h**2)[smooth], rtol=1e-3, atol=1e-3)


def test_gradients_in_moments_and_parameters_are_the_differences(likelihood):
    """Along a random direction of means, variances and the likelihood's own parameters together."""
    mean, variance, y = (jnp.asarray(np.asarray(a)[[0, 1, 4, 6]]) for a in rows(likelihood))
    x, back = ravel_pytree((likelihood, mean, variance))

    @jax.jit
    @jax.value_and_grad
    def total(x):
        of_y, mean, variance = back(x)
        return jnp.sum(of_y.expected_log_prob(mean, variance, y) + of_y.log_normaliser(mean, variance, y, alpha=0.7))

    direction, h = np.random.default_rng(0).normal(size=x.shape), 1e-5
    difference = (total(x + h * direction)[0] - total(x - h * direction)[0]) / (2 * h)
    np.testing.assert_allclose(total(x)[1] @ direction, difference, rtol=1e-5)


def test_values_and_gradients_are_finite_far_out(likelihood):
    """Latent values of 40 under either target, with small and with large variances."""
    m, v, y = (jnp.asarray(a.ravel()) for a in np.meshgrid([-40.0, 40.0], [1e-6, 1.0, 50.0], [-1.0, 1.0]))

    def total(likelihood, m, v):
        log_z, slope, curvature = likelihood.normaliser_derivatives(m, v, y)
        return jnp.sum(expected_log_prob(likelihood, m, v, y) + log_z) + 0.0 * jnp.sum(slope + curvature)

    slopes = jax.value_and_grad(total, argnums=(0, 1, 2))
    # Compilation takes 17 s for the third derivatives under Laplace noise; its operations one by one take 4 s.
    with jax.disable_jit(type(likelihood) is Laplace):
        value, gradients = jax.jit(slopes)(likelihood, m, v)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


def test_single_precision_gives_the_same_to_its_digits(likelihood, request):
    single = of(CHOICES[request.node.callspec.params["likelihood"]], "float32")
    for compiled in (expected_log_prob, log_normaliser):
        ours = compiled(single, *rows(likelihood, "float32"))
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, compiled(likelihood, *rows(likelihood)), rtol=2e-4, atol=2e-4)


def test_noise_is_the_variance_about_the_latent_value_and_only_learned_degrees_of_freedom_are_a_parameter():
    for name in ("gaussian", "laplace", "student_t"):
        likelihood = of(name)
        np.testing.assert_allclose(likelihood.noise, NOISE, rtol=1e-12)
        y = np.linspace(-1e3, 1e3, 400_001)
        second = np.trapezoid(y**2 * np.exp(log_density(likelihood, np.zeros(()), y)), y)
        np.testing.assert_allclose(second, NOISE, rtol=1e-3)
    assert of({"student_t": {"df": 2.0}}).noise == np.inf
    fixed, learned = (of({"student_t": {"df": 5.0, "learn_df": learn}}) for learn in (False, True))
    assert len(jax.tree.leaves(fixed)) == 1 and len(jax.tree.leaves(learned)) == 2
    np.testing.assert_allclose([fixed.degrees, learned.degrees], 5.0)


@pytest.mark.parametrize("ratio", [1e-6, 1e-2, 1.0, 1e2, 1e4])
def test_student_t_expectations_hold_for_any_ratio_of_latent_variance_to_noise(ratio):
    likelihood = StudentT(jnp.asarray(np.log(0.3)), None)
    s = float(likelihood.scale)
    mean, variance, y = np.zeros(3), np.full(3, ratio * s**2), np.sqrt(1.0 + ratio) * s * np.array([0.0, 1.0, 5.0])
    log_prob = lambda f, y: np.asarray(log_density(likelihood, f, y))
    expected = integral(log_prob, mean, variance, y)
    np.testing.assert_allclose(expected_log_prob(likelihood, mean, variance, y), expected, rtol=1e-6, atol=1e-6)
    z = np.log(integral(lambda f, y: np.exp(log_prob(f, y)), mean, variance, y))
    np.testing.assert_allclose(log_normaliser(likelihood, mean, variance, y), z, rtol=1e-6)


def test_student_t_with_many_degrees_of_freedom_is_gaussian_and_softmax_exact_to_second_order():
    t, normal = of({"student_t": {"df": 1e5}}), of("gaussian")
    at = [np.asarray(a)[[0, 1, 3, 4, 6, 7]] for a in rows(t)]
    for compiled in (expected_log_prob, log_normaliser):
        np.testing.assert_allclose(compiled(t, *at), compiled(normal, *at), rtol=1e-3)
    # E log Σ e^f = log Σ e^m + ½ Σ v_c p_c (1 - p_c) + O(v²): the rule has the second moments of N(0, I).
    mean, y = jnp.array([[0.3, -0.5, 1.0, 0.0]]), jnp.zeros(1)
    p = jax.nn.softmax(mean)
    softmax, variance = Softmax(4, samples=16), 1e-4
    ours = expected_log_prob(softmax, mean, jnp.full((1, 4), variance), y)
    expected = jnp.log(p[:, 0]) - 0.5 * variance * jnp.sum(p * (1 - p), axis=1)
    np.testing.assert_allclose(ours, expected, atol=10 * variance**2)


@pytest.mark.parametrize("nodes, variance, tolerance", [(20, 4.0, 2e-5), (20, 10.0, 2e-3), (20, 25.0, 2e-2)])
def test_logistic_quadrature_is_as_exact_as_it_says(nodes, variance, tolerance):
    mean = jnp.array([-8.0, -3.0, -1.0, 0.5, 2.0, 6.0])
    at = mean, jnp.full(6, variance), jnp.ones(6)
    z = integral(lambda f, y: 1.0 / (1.0 + np.exp(-f)), *at)
    np.testing.assert_allclose(log_normaliser(Logistic(nodes=nodes), *at), np.log(z), atol=tolerance)


# A latent value for each class


def test_multi_class_expectations_are_the_averages_over_a_sample(multi):
    """To four standard errors of the sample and the stated error of the rule."""
    mean, variance, y, log_prob = classes_and_sample(multi)
    error = np.std(log_prob, axis=1) / np.sqrt(log_prob.shape[1])
    assert (np.abs(expected_log_prob(multi, mean, variance, y) - log_prob.mean(axis=1)) < 4 * error + 2e-3).all()
    for alpha in (1.0, 0.5):
        power = np.exp(alpha * log_prob)
        error = np.std(power, axis=1) / power.mean(axis=1) / np.sqrt(power.shape[1])
        gap = np.abs(log_normaliser(multi, mean, variance, y, alpha=alpha) - np.log(power.mean(axis=1)))
        assert (gap < 4 * error + 5e-3).all(), gap


def test_multi_class_probabilities_sum_to_one_and_are_the_normalisers(multi):
    mean, variance, *_ = classes_and_sample(multi, samples=2)
    predictive = jax.jit(multi.predictive)(mean, variance)
    np.testing.assert_allclose(np.exp(predictive.log_probs).sum(axis=1), 1.0, rtol=1e-12)
    each = np.stack([log_normaliser(multi, mean, variance, np.full(6, float(c))) for c in range(3)], axis=1)
    np.testing.assert_allclose(predictive.log_probs, each, atol=1e-3)


def test_multi_class_derivatives_are_the_gradient_and_the_hessians_diagonal(multi):
    mean, variance, y, _ = map(np.asarray, classes_and_sample(multi, samples=2))
    log_z, slope, curvature = map(np.asarray, jax.jit(multi.normaliser_derivatives)(mean, variance, y))
    assert slope.shape == curvature.shape == mean.shape
    h = 1e-4
    for c in range(3):
        step = h * np.eye(3)[c]
        up, down = (np.asarray(log_normaliser(multi, mean + d, variance, y)) for d in (step, -step))
        np.testing.assert_allclose(slope[:, c], (up - down) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(curvature[:, c], -(up - 2 * log_z + down) / h**2, atol=1e-5)


def test_multi_class_values_and_gradients_are_finite_far_out(multi):
    mean, y = jnp.array([[40.0, -40.0, 0.0], [-40.0, 40.0, 40.0]]), jnp.array([1.0, 0.0])

    def total(m, v):
        return jnp.sum(expected_log_prob(multi, m, v, y) + log_normaliser(multi, m, v, y))

    slopes, predictive = jax.jit(jax.value_and_grad(total, argnums=(0, 1))), jax.jit(multi.predictive)
    for variance in (1e-6, 1.0, 50.0):
        value, gradients = slopes(mean, np.full((2, 3), variance))
        assert np.isfinite(value) and all(np.isfinite(g).all() for g in gradients)
        assert np.isfinite(predictive(mean, np.full((2, 3), variance)).log_probs).all()


def test_multi_class_works_in_single_precision(multi):
    mean, variance, y, _ = classes_and_sample(multi, samples=2)
    single = [np.asarray(a, "float32") for a in (mean, variance, y)]
    for compiled in (expected_log_prob, log_normaliser):
        ours = compiled(multi, *single)
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, compiled(multi, mean, variance, y), rtol=1e-4, atol=1e-4)


def test_of_two_classes_softmax_is_logistic_and_robust_max_probit_in_the_difference():
    mean, variance = jnp.array([[0.3, -0.5], [2.0, 1.0]]), jnp.array([[0.5, 0.2], [1.0, 0.7]])
    softmax, logistic = Softmax(2, samples=4096), Logistic(nodes=60)
    difference = mean[:, 1] - mean[:, 0], variance.sum(axis=1)
    of_softmax = expected_log_prob(softmax, mean, variance, jnp.ones(2))
    np.testing.assert_allclose(of_softmax, expected_log_prob(logistic, *difference, jnp.ones(2)), atol=1e-3)
    # P(f_1 > f_0) = Φ((m_1 - m_0) / √(v_0 + v_1)).
    p = norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(axis=1)))
    robust = RobustMax(2, epsilon=0.01, nodes=60)
    expected = np.log(p * 0.99 + (1 - p) * 0.01)
    np.testing.assert_allclose(log_normaliser(robust, mean, variance, jnp.ones(2)), expected, rtol=1e-8)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_log_concave_is_the_sign_of_second_differences(choice):
    likelihood, f = of(choice), jnp.linspace(-6.0, 6.0, 121)
    differences = np.diff(log_density(likelihood, f, jnp.ones_like(f)), 2)
    assert likelihood.log_concave == (differences < 1e-9).all()
