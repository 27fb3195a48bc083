"""Checks of a kernel, a likelihood or a metric: `gpbench check kernel:NAME`.  A check's docstring is the claim."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.contract.findings import Finding, finding
from gpbench.contract.problems import CLASSES, Doubtful, require
from gpbench.core.kernels import kernel_spec
from gpbench.core.likelihoods import likelihood_spec
from gpbench.core.predictive import (
    CategoricalPredictive,
    ContinuousPredictive,
    CountPredictive,
    DiscretePredictive,
    GaussianPredictive,
    Predictive,
)
from gpbench.metrics import Scored
from gpbench.own_metrics import OwnMetric

_NOISE = 0.3
_GRID = np.linspace(-9.0, 9.0, 4001)
"""Standard normal values for numerical expectations, whose error is far below the tolerances."""


# Compiled, for each of the operations takes longer to start than all of them to compile
_cross = jax.jit(lambda kernel, X: kernel.cross(X, X))
_diag = jax.jit(lambda kernel, X: kernel.diag(X))
_log_prob = jax.jit(lambda likelihood, f, y: likelihood.log_prob(f, y))
_expected_log_prob = jax.jit(lambda likelihood, *rows: likelihood.expected_log_prob(*rows))
_log_normaliser = jax.jit(
    lambda likelihood, *rows, alpha=1.0: likelihood.log_normaliser(*rows, alpha=alpha), static_argnames="alpha"
)
_score = jax.jit(lambda predictive, y: predictive.log_prob(y))
_densities = jax.jit(
    lambda predictive, targets, y: jnp.exp(jax.vmap(lambda t: predictive.log_prob(jnp.full_like(y, t)))(targets))
)


def examine_kernel(value: Any) -> Iterator[Finding]:
    """Yields the findings for the kernel that a value of the configuration means."""
    spec = kernel_spec(value)
    rows = np.random.default_rng(0).normal(size=(12, 3))
    rows[1] = rows[0]  # rows that coincide
    initial = partial(spec.initial, start="median")
    for check in (_is_covariance, _has_its_diagonal, _has_the_amplitude, _has_finite_gradients, _keeps_the_dtype):
        yield finding("kernel", check, initial, jnp.asarray(rows))


def examine_likelihood(value: Any) -> Iterator[Finding]:
    """Yields the findings for the likelihood that a value of the configuration means, for each of its tasks."""
    spec = likelihood_spec(value)
    for task in (task for task in CLASSES if task in spec.tasks):
        start = partial(spec.initial, task, CLASSES[task], noise=_NOISE)
        for check in (_expects_its_density, _normalises_its_density, _predicts_the_average, _is_smooth, _keeps_float32):
            yield finding(task, check, start, task)


def examine_metric(own: OwnMetric) -> Iterator[Finding]:
    """Yields the findings for a custom metric, for each of its tasks."""
    for task in (task for task in CLASSES if task in own.tasks):
        yield finding(task, _is_finite, own, task)
        if own.better:
            yield finding(task, _prefers_the_truth, own, task)
        yield finding(task, _takes_float32, own, task)


def _is_covariance(start: Callable, X: jax.Array) -> None:
    """k(X, X) is symmetric and positive semidefinite"""
    gram = np.asarray(_cross(start(X), X))
    scale = max(1.0, float(np.abs(gram).max()))
    is_matrix = gram.shape == (len(X), len(X)) and np.isfinite(gram).all()
    require(is_matrix, f"cross gives {gram.shape} for {len(X)} rows, or numbers that are not finite")
    gap = np.abs(gram - gram.T).max() / scale
    require(gap <= 1e-8, f"cross(X, X) differs from its transpose by {gap:.2g}")
    least = np.linalg.eigvalsh(0.5 * (gram + gram.T)).min() / scale
    require(least >= -1e-8, f"the least eigenvalue of cross(X, X) is {least:.2g}")


def _has_its_diagonal(start: Callable, X: jax.Array) -> None:
    """diag is the diagonal of cross"""
    kernel = start(X)
    gap = np.abs(np.asarray(_diag(kernel, X)) - np.diag(_cross(kernel, X))).max()
    require(not gap > 1e-6, f"diag differs from the diagonal of cross by {gap:.2g}")


def _has_the_amplitude(start: Callable, X: jax.Array) -> None:
    """initial gives k(x, x) the amplitude that it is asked for, on average over the rows"""
    mean = float(np.mean(_diag(start(X, amplitude=2.5), X)))
    require(not abs(mean - 2.5) > 0.05, f"the mean of diag is {mean:.3g} for an amplitude of 2.5")


def _has_finite_gradients(start: Callable, X: jax.Array) -> None:
    """gradients in parameters and inputs are finite, at rows that coincide too"""
    total = lambda kernel, X: jnp.sum(kernel.cross(X, X)) + jnp.sum(kernel.diag(X))
    gradients = jax.jit(jax.grad(total, argnums=(0, 1), allow_int=True))(start(X), X)
    is_finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    require(is_finite, "a gradient is not finite: mind square roots and divisions at a distance of 0")


def _keeps_the_dtype(start: Callable, X: jax.Array) -> None:
    """inputs in float32 give covariances in float32"""
    single = X.astype(jnp.float32)
    dtype = jax.eval_shape(_cross, start(single), single).dtype
    require(dtype == jnp.float32, f"cross gives {dtype} for inputs in float32: make parameters in the dtype of X")


def _rows(start: Callable, task: str, dtype: str = "float64") -> tuple[Any, jax.Array, jax.Array, jax.Array]:
    """A likelihood, and means, variances and targets of six rows."""
    likelihood = start(dtype=dtype)
    shape = (6,) if likelihood.latents() == 1 else (6, likelihood.latents())
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=shape), rng.uniform(0.2, 1.0, shape)
    codes = {"binary": np.tile([-1.0, 1.0], 3), "multiclass": np.arange(6.0) % 3, "count": np.arange(6.0)}
    y = rng.normal(size=6) if task == "regression" else codes[task]
    return likelihood, *(jnp.asarray(values, dtype) for values in (mean, variance, y))  # type: ignore[return-value]


def _draws(mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array, float]:
    """Latent values (N, S) or (N, S, P), logarithms of weights (S,), and the error to be expected of their averages."""
    if mean.ndim == 1:
        weights = np.exp(-0.5 * _GRID**2)
        return mean[:, None] + jnp.sqrt(variance)[:, None] * _GRID, jnp.log(weights / weights.sum()), 2e-3
    noise = np.random.default_rng(2).normal(size=(20_000, mean.shape[1]))
    noise = np.concatenate([noise, -noise])
    log_weights = jnp.full(len(noise), -np.log(len(noise)))
    return mean[:, None] + jnp.sqrt(variance)[:, None] * noise, log_weights, 3e-2


def _expects_its_density(start: Callable, task: str) -> None:
    """expected_log_prob is the expectation of log_prob"""
    likelihood, mean, variance, y = _rows(start, task)
    f, log_weights, tolerance = _draws(mean, variance)
    average = _log_prob(likelihood, f, y[:, None]) @ jnp.exp(log_weights)
    _require_equal("expected_log_prob", _expected_log_prob(likelihood, mean, variance, y), average, tolerance)


def _normalises_its_density(start: Callable, task: str) -> None:
    """log_normaliser is the logarithm of the expectation of p(y|f)^alpha, for alpha 1 and 0.5"""
    likelihood, mean, variance, y = _rows(start, task)
    f, log_weights, tolerance = _draws(mean, variance)
    for alpha in (1.0, 0.5):
        average = jax.nn.logsumexp(alpha * _log_prob(likelihood, f, y[:, None]) + log_weights, axis=1)
        ours = _log_normaliser(likelihood, mean, variance, y, alpha=alpha)
        _require_equal(f"log_normaliser with alpha={alpha:g}", ours, average, tolerance)


def _predicts_the_average(start: Callable, task: str) -> None:
    """predictive is the distribution that log_normaliser gives a probability, and sums to one"""
    likelihood, mean, variance, y = _rows(start, task)
    predictive = likelihood.predictive(mean, variance)
    kind = {"regression": ContinuousPredictive, "count": CountPredictive}.get(task, DiscretePredictive)
    fault = f"predictive returns {type(predictive).__name__}: return one of gpbench.core.predictive"
    require(isinstance(predictive, kind), fault)
    _require_equal("predictive.log_prob", _score(predictive, y), _log_normaliser(likelihood, mean, variance, y), 1e-2)
    if isinstance(predictive, DiscretePredictive):
        total = jnp.sum(jnp.exp(predictive.log_probs), axis=1)
    elif task == "count":
        total = jnp.sum(_densities(predictive, jnp.arange(1000.0), y), axis=0)
    else:
        targets = jnp.sinh(jnp.linspace(-9.0, 9.0, 4001))  # dense at 0, and far out
        total = jnp.trapezoid(_densities(predictive, targets, y), targets, axis=0)
    _require_equal("the sum of predictive", total, jnp.ones_like(y), 1e-2)


def _is_smooth(start: Callable, task: str) -> None:
    """gradients of expected_log_prob and log_normaliser are finite, far from the targets too"""
    likelihood, mean, variance, y = _rows(start, task)
    for name in ("expected_log_prob", "log_normaliser"):
        for scale in (1.0, 30.0):
            total = lambda *args, name=name: jnp.sum(getattr(args[0], name)(*args[1:], y))
            gradients = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(likelihood, scale * mean, variance)
            is_finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
            require(is_finite, f"a gradient of {name} is not finite at latent means up to {scale * 2:g}")


def _keeps_float32(start: Callable, task: str) -> None:
    """latent values in float32 give results in float32"""
    likelihood, mean, variance, y = _rows(start, task, "float32")
    for name in ("expected_log_prob", "log_normaliser"):
        dtype = jax.eval_shape(getattr(likelihood, name), mean, variance, y).dtype
        require(dtype == jnp.float32, f"{name} gives {dtype}: use the dtype of the latent values")


def _scored(task: str, shift: float = 0.0, dtype: Any = float) -> Scored:
    """Predictions of 400 targets: their true distribution, or one that is shifted."""
    rng = np.random.default_rng(3)
    if task == "regression":
        mean, scale = rng.normal(5.0, 3.0, 400), rng.uniform(0.5, 2.0, 400)
        y = rng.normal(mean, scale)
        prediction: Predictive = GaussianPredictive(jnp.asarray(mean + shift, dtype), jnp.asarray(scale**2, dtype))
    elif task == "count":
        location, latent = rng.normal(1.0, 1.0, 400), np.full(400, 0.1)
        y = rng.poisson(np.exp(rng.normal(location, latent**0.5))).astype(float)
        prediction = CountPredictive(jnp.asarray(location + shift, dtype), jnp.asarray(latent, dtype))
    else:
        logits = rng.normal(0.0, 2.0, (400, CLASSES[task]))
        codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)  # a draw from the softmax of the logits
        y = (2.0 * codes - 1.0) if task == "binary" else codes.astype(float)
        prediction = CategoricalPredictive(jnp.asarray(np.roll(logits, 1, axis=1) if shift else logits, dtype))
    arrays: dict[str, Any] = {
        name: np.asarray(array) for name, array in prediction.arrays(jnp.asarray(y, dtype)).items()
    }
    return Scored(y=y.astype(dtype), train_rows=400, **arrays).in_original_units()


def _is_finite(own: OwnMetric, task: str) -> None:
    """the metric is a finite number, or the mean of one for each row"""
    value = own.value(_scored(task))
    require(np.isfinite(value), f"it is {value}")


def _prefers_the_truth(own: OwnMetric, task: str) -> None:
    """the true distribution scores better than shifted ones, on average"""
    truth = own.value(_scored(task))
    shifted = float(np.mean([own.value(_scored(task, shift)) for shift in (-3.0, 3.0)]))
    gain = (shifted - truth) * (1.0 if own.better == "lower" else -1.0)
    require(gain, f"both score {truth:.4g}", error=Doubtful)
    require(gain > 0.0, f"{truth:.4g} of the truth against {shifted:.4g}, where {own.better} is better")


def _takes_float32(own: OwnMetric, task: str) -> None:
    """predictions in float32 give the same value as in float64, to three digits"""
    double, single = (own.value(_scored(task, dtype=dtype)) for dtype in (np.float64, np.float32))
    is_close = abs(single - double) <= 1e-3 * (1.0 + abs(double))
    require(is_close, f"{single:.6g} in float32, {double:.6g} in float64")


def _require_equal(name: str, ours: jax.Array, expected: jax.Array, tolerance: float) -> None:
    gap = np.abs(np.asarray(ours) - np.asarray(expected)) / (1.0 + np.abs(np.asarray(expected)))
    require(gap.max() <= tolerance, f"{name} differs by {gap.max():.2g}")
