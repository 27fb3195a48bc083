"""`heteroscedastic`: Gaussian noise whose variance is a function of the inputs too."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.gaussians import MeanVariance
from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive import VaryingNoisePredictive
from gpbench.core.predictive.continuous import log_expected_normal_power
from gpbench.core.quadrature import PerRow
from gpbench.schema import setting


class Heteroscedastic(Likelihood):
    """y ~ N(f₁, e^g), g = log_noise + deviation f₂, with two latent functions (Lázaro-Gredilla and Titsias, ICML 2011).
    Both functions have the kernel's lengthscales; `log_noise` is the mean of g, and `deviation` the unit of f₂ in g.
    In each of the two the likelihood is log-concave, and not in both together."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    log_noise: Float[Array, ""]
    log_deviation: Float[Array, ""]
    nodes: int = setting(20, "count", "Number of Gauss-Hermite nodes.")

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "Heteroscedastic":
        """Starts with noise of this variance, and a log noise that deviates from its logarithm as f deviates from 0."""
        return cls(jnp.asarray(jnp.log(noise), dtype), jnp.zeros((), dtype), **options)

    def latents(self) -> int:
        """Returns 2: the mean and the log variance of y."""
        return 2

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y | f₁, e^g)."""
        g = self.log_noise + jnp.exp(self.log_deviation) * f[..., 1]
        return norm.logpdf(y, f[..., 0], jnp.exp(0.5 * jnp.clip(g, -_LARGEST, _LARGEST)))

    def expected_log_prob(self, mean: Float[Array, "N 2"], variance: Float[Array, "N 2"], y: PerRow) -> PerRow:
        """-½ (log 2π + E g + E e^-g ((y - E f₁)² + var f₁)), E e^-g = e^(-E g + var g / 2)."""
        g, spread = self._log_noise_moments(mean, variance)
        precision = jnp.exp(jnp.minimum(0.5 * spread - g, _LARGEST))
        square = (y - mean[:, 0]) ** 2 + variance[:, 0]
        return -0.5 * (jnp.log(2.0 * jnp.pi) + g + precision * square)

    def log_normaliser(
        self, mean: Float[Array, "N 2"], variance: Float[Array, "N 2"], y: PerRow, *, alpha: float = 1.0
    ) -> PerRow:
        """log E N(y | f₁, e^g)^α, by quadrature over g about the mode of the integrand."""
        moments = self._log_noise_moments(mean, variance)
        return log_expected_normal_power(mean[:, 0], variance[:, 0], *moments, y, alpha, self.nodes)

    def predictive(self, mean: Float[Array, "N 2"], variance: Float[Array, "N 2"]) -> VaryingNoisePredictive:
        """The mixture of N(E f₁, var f₁ + e^g) over g."""
        return VaryingNoisePredictive(
            mean[:, 0], variance[:, 0], *self._log_noise_moments(mean, variance), nodes=self.nodes
        )

    def _log_noise_moments(self, mean: Float[Array, "N 2"], variance: Float[Array, "N 2"]) -> MeanVariance:
        deviation = jnp.exp(self.log_deviation)
        return self.log_noise + deviation * mean[:, 1], deviation**2 * variance[:, 1]


_LARGEST = 40.0  # largest |g|: e^40 is beyond the range of scaled targets, and its square a number of float32
