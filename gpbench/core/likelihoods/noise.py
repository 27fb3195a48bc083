"""`gaussian` and `laplace`: noise added to the latent value, for which everything has a closed form."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core import predictive
from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.quadrature import PerRow
from gpbench.errors import ConfigError, require
from gpbench.schema import setting


class _Noise(Likelihood):
    """y = f + ε, ε of the variance `noise`, which stays above a floor."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    log_concave: ClassVar[bool] = True

    log_noise: Float[Array, ""]
    """The logarithm of the noise above its floor."""
    floor: float = setting(0.0, "nonnegative", "Least noise variance of scaled targets that training may reach.")

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> Any:
        """Starts with noise of this variance, which must be above its floor."""
        floor = options.get("floor", 0.0)
        fault = f"the noise floor {floor:g} must be at least 0 and below the initial noise {noise:g}"
        require(0.0 <= floor < noise, f"likelihood {cls.__name__.lower()}: {fault}", ConfigError)
        return cls(jnp.asarray(jnp.log(noise - floor), dtype), **options)

    @property
    def noise(self) -> Float[Array, ""]:
        """The variance of y about f."""
        return self.floor + jnp.exp(self.log_noise)


class Gaussian(_Noise):
    """y = f + ε, ε ~ N(0, noise)."""

    conjugate: ClassVar[bool] = True

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y | f, noise)."""
        return norm.logpdf(y, f, jnp.sqrt(self.noise))

    def expected_log_prob(self, mean: PerRow, variance: PerRow, y: PerRow) -> PerRow:
        """log N(y | mean, noise) - variance / (2 noise)."""
        return norm.logpdf(y, mean, jnp.sqrt(self.noise)) - 0.5 * variance / self.noise

    def log_normaliser(self, mean: PerRow, variance: PerRow, y: PerRow, *, alpha: float = 1.0) -> PerRow:
        """log N(y | mean, variance + noise / α) + ½ (1 - α) log(2π noise) - ½ log α."""
        log_z = norm.logpdf(y, mean, jnp.sqrt(variance + self.noise / alpha))
        return log_z + 0.5 * (1.0 - alpha) * jnp.log(2.0 * jnp.pi * self.noise) - 0.5 * jnp.log(alpha)

    def predictive(self, mean: PerRow, variance: PerRow) -> predictive.GaussianPredictive:
        """N(mean, variance + noise)."""
        return predictive.GaussianPredictive(mean, variance + self.noise)


class Laplace(_Noise):
    """y = f + ε, ε of a Laplace distribution of variance `noise` = 2 b², whose tails give outliers less influence."""

    @property
    def scale(self) -> Float[Array, ""]:
        """b = √(noise / 2), the mean distance of y from f."""
        return jnp.sqrt(0.5 * self.noise)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """-|y - f| / b - log 2b."""
        return -jnp.abs(y - f) / self.scale - jnp.log(2.0 * self.scale)

    def expected_log_prob(self, mean: PerRow, variance: PerRow, y: PerRow) -> PerRow:
        """-E|y - f| / b - log 2b.  E|y - f| is the mean of a folded normal distribution, in closed form; quadrature
        misses the kink at f = y."""
        b, s = self.scale, jnp.sqrt(variance)
        z = (y - mean) / s
        distance = s * (2.0 * norm.pdf(z) + z * (2.0 * norm.cdf(z) - 1.0))
        return -distance / b - jnp.log(2.0 * b)

    def log_normaliser(self, mean: PerRow, variance: PerRow, y: PerRow, *, alpha: float = 1.0) -> PerRow:
        """The log density of y under noise of scale b / α, + (1 - α) log 2b - log α."""
        tempered = predictive.LaplacePredictive(mean, variance, self.noise / alpha**2)
        return tempered.log_prob(y) + (1.0 - alpha) * jnp.log(2.0 * self.scale) - jnp.log(alpha)

    def predictive(self, mean: PerRow, variance: PerRow) -> predictive.LaplacePredictive:
        """The normal-Laplace distribution."""
        return predictive.LaplacePredictive(mean, variance, self.noise)
