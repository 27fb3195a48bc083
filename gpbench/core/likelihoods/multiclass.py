"""`softmax` and `robust_max`: C classes with a latent value each."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from gpbench import registry
from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive import CategoricalPredictive
from gpbench.core.quadrature import PerRow, gaussian_points, log_normal_expectation
from gpbench.errors import ConfigError
from gpbench.schema import setting

_LEAST_VARIANCE = 1e-10  # least variance of a latent value, so that P(f_y is the largest) has a finite slope in it


class _Classes(Likelihood):
    """Labels 0 .. C-1 with P = C latent values, and no parameters."""

    tasks: ClassVar[frozenset[str]] = frozenset({"multiclass"})

    classes: int = eqx.field(static=True)

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> Any:
        """Starts without parameters to learn."""
        return cls(classes, **options)

    def latents(self) -> int:
        """Returns C: a latent value for each class."""
        return self.classes


class Softmax(_Classes):
    """Labels 0 .. C-1 with p(y|f) = softmax(f)_y.

    Expectations have no closed form.  They are averages over `samples` fixed points of N(0, I_C), quasi-random in
    antithetic pairs with their moments corrected, so that the rule is exact for polynomials of degree 3 in f and the
    probabilities of the classes sum to 1.

    Root mean square errors of 128 samples with C = 10 and latent means as spread as the latent values: at a latent
    variance of 1 (of 4), 0.002 (0.01) in E log p, 0.001 (0.004) in a probability, and 0.01 (0.1) in `log_normaliser`,
    whose largest errors are those of improbable classes.  512 samples halve them.
    """

    log_concave: ClassVar[bool] = True

    samples: int = setting(128, registry.POWER_OF_TWO, "Number of points, a power of two of at least 4 C.")

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> Any:
        """Starts without parameters.  Raises ConfigError for fewer samples than 4 C."""
        if (samples := options.get("samples", 128)) < 4 * classes:
            enough = 1 << (4 * classes - 1).bit_length()
            raise ConfigError(f"likelihood softmax: samples={samples} is too few for {classes} classes; try {enough}")
        return super().initial(noise, classes, dtype, **options)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log softmax(f)_y."""
        shape = jnp.broadcast_shapes(f.shape[:-1], y.shape)
        codes = jnp.broadcast_to(y, shape).astype(int)[..., None]
        log_probs = jnp.broadcast_to(jax.nn.log_softmax(f, axis=-1), (*shape, f.shape[-1]))
        return jnp.take_along_axis(log_probs, codes, axis=-1)[..., 0]

    def expected_log_prob(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"], y: PerRow) -> PerRow:
        """mean_y - E log Σ e^(f_c)."""
        of_y = jnp.take_along_axis(mean, y.astype(int)[:, None], axis=-1)[:, 0]
        return of_y - jnp.mean(logsumexp(self._points(mean, variance), axis=-1), axis=-1)

    def log_normaliser(
        self, mean: Float[Array, "N C"], variance: Float[Array, "N C"], y: PerRow, *, alpha: float = 1.0
    ) -> PerRow:
        """log E softmax(f)_y^α."""
        log_probs = self.log_prob(self._points(mean, variance), y[:, None])
        return logsumexp(alpha * log_probs, axis=-1) - jnp.log(self.samples)

    def predictive(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"]) -> CategoricalPredictive:
        """E softmax(f)."""
        return CategoricalPredictive(logsumexp(jax.nn.log_softmax(self._points(mean, variance), axis=-1), axis=1))

    def _points(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"]) -> Float[Array, "N S C"]:
        """Latent values at every point of the rule."""
        points = jnp.asarray(gaussian_points(self.samples, self.classes), mean.dtype)
        return mean[:, None] + jnp.sqrt(variance)[:, None] * points


class RobustMax(_Classes):
    """Labels 0 .. C-1; p(y|f) = 1 - ε where f_y is the largest latent value, else ε / (C - 1), with a fixed ε.
    Hernández-Lobato, Hernández-Lobato and Dupont, "Robust multi-class Gaussian process classification", NIPS 2011.  All
    expectations are functions of P(f_y is the largest) = E Π_(c≠y) Φ((f_y - mean_c) / √variance_c), one-dimensional
    Gauss-Hermite quadrature over f_y.  With 20 nodes, errors in E log p are below 1e-4 where f_y's variance is at most
    twice the others'; at 10 times theirs they reach 0.04, and 3e-6 with 100 nodes."""

    epsilon: float = setting(1e-3, registry.PROBABILITY, "Probability of a label that is not the largest value's.")
    nodes: int = setting(20, "count", "Number of Gauss-Hermite nodes.")

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log(1 - ε) where f_y is the largest, else log(ε / (C - 1))."""
        right, wrong = self._levels
        return jnp.log(jnp.where(jnp.argmax(f, axis=-1) == y, right, wrong)).astype(f.dtype)

    def expected_log_prob(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"], y: PerRow) -> PerRow:
        """P log(1 - ε) + (1 - P) log(ε / (C - 1)), P that f_y is the largest."""
        largest = jnp.exp(self._log_largest(mean, variance, y.astype(int)))
        right, wrong = (jnp.log(level) for level in self._levels)
        return largest * right + (1.0 - largest) * wrong

    def log_normaliser(
        self, mean: Float[Array, "N C"], variance: Float[Array, "N C"], y: PerRow, *, alpha: float = 1.0
    ) -> PerRow:
        """log(P (1 - ε)^α + (1 - P) (ε / (C - 1))^α), P that f_y is the largest."""
        largest = jnp.exp(self._log_largest(mean, variance, y.astype(int)))
        right, wrong = (level**alpha for level in self._levels)
        return jnp.log(largest * right + (1.0 - largest) * wrong)

    def predictive(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"]) -> CategoricalPredictive:
        """Every class's P by quadrature, scaled to sum to 1, then mixed with ε."""
        log_largest = lambda code: self._log_largest(mean, variance, jnp.full(len(mean), code))
        largest = jax.nn.softmax(jax.lax.map(log_largest, jnp.arange(self.classes)), axis=0).T
        right, wrong = self._levels
        return CategoricalPredictive(jnp.log(largest * right + (1.0 - largest) * wrong))

    @property
    def _levels(self) -> tuple[float, float]:
        """p(y|f) of the class with the largest latent value, and of each other."""
        return 1.0 - self.epsilon, self.epsilon / (self.classes - 1)

    def _log_largest(self, mean: Float[Array, "N C"], variance: Float[Array, "N C"], codes: Int[Array, " N"]) -> PerRow:
        """log P(f_y is the largest)."""
        own = codes[:, None] == jnp.arange(self.classes)
        variance = jnp.maximum(variance, _LEAST_VARIANCE)
        std = jnp.sqrt(variance)

        def log_below(f: Float[Array, "N Q"]) -> Float[Array, "N Q"]:
            each = norm.logcdf((f[:, None] - mean[..., None]) / std[..., None])
            return jnp.sum(jnp.where(own[..., None], 0.0, each), axis=1)

        mean_y, variance_y = (jnp.take_along_axis(a, codes[:, None], axis=-1)[:, 0] for a in (mean, variance))
        return log_normal_expectation(log_below, mean_y, variance_y, self.nodes)
