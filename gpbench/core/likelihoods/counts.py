"""`poisson` and `negative_binomial`: counts, whose rate is the exponential function of the latent value.  Diggle, Tawn
and Moyeed, Applied Statistics 1998, for Poisson counts of a GP; the negative binomial distribution in the form NB2 of
Cameron and Trivedi, 2013, section 3.3."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive.counts import LARGEST, CountPredictive, Shape, log_count, log_expected_power
from gpbench.core.quadrature import PerRow, normal_expectation
from gpbench.schema import setting


class _Counts(Likelihood):
    """Counts y = 0, 1, ... with the mean e^(log_rate + f); `log_rate` starts from the mean of the training targets."""

    tasks: ClassVar[frozenset[str]] = frozenset({"count"})
    log_concave: ClassVar[bool] = True

    log_rate: Float[Array, ""]
    log_shape: Float[Array, ""] | None
    """The logarithm of the shape r of the negative binomial distribution; None for its limit, the Poisson one."""
    nodes: int = setting(20, "count", "Number of Gauss-Hermite nodes.")

    def started(self, y: PerRow) -> "_Counts":
        return eqx.tree_at(lambda model: model.log_rate, self, jnp.log(jnp.mean(y)))

    @property
    def shape(self) -> Shape:
        """r, or None."""
        return None if self.log_shape is None else jnp.exp(self.log_shape)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """The log probability of y."""
        return log_count(self.log_rate + f, y, self.shape)

    def expected_log_prob(self, mean: PerRow, variance: PerRow, y: PerRow) -> PerRow:
        """E log p(y|f), by quadrature."""
        return normal_expectation(lambda f: self.log_prob(f, y[:, None]), mean, variance, self.nodes)

    def log_normaliser(self, mean: PerRow, variance: PerRow, y: PerRow, *, alpha: float = 1.0) -> PerRow:
        """log E p(y|f)^α, by quadrature about the mode of the integrand, with errors of 2e-6 at 20 nodes."""
        return log_expected_power(self.log_rate + mean, variance, y, self.shape, alpha, self.nodes)

    def predictive(self, mean: PerRow, variance: PerRow) -> CountPredictive:
        """The mixture of the counts' distributions over f."""
        return CountPredictive(self.log_rate + mean, variance, self.shape, self.nodes)


class Poisson(_Counts):
    """Counts of the mean and the variance e^(log_rate + f)."""

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "Poisson":
        """Starts with a rate of 1."""
        return cls(jnp.zeros((), dtype), None, **options)

    def expected_log_prob(self, mean: PerRow, variance: PerRow, y: PerRow) -> PerRow:
        """log p(y|mean) - e^m (e^(v/2) - 1), m = log_rate + mean, which is y m - e^(m + v/2) - log y!."""
        m = jnp.minimum(self.log_rate + mean, LARGEST)
        rise = jnp.exp(m) * jnp.expm1(jnp.minimum(0.5 * variance, LARGEST - m))
        return log_count(m, y, None) - rise


class NegativeBinomial(_Counts):
    """Counts of the mean μ = e^(log_rate + f) and the variance μ + μ²/r, with a shape r that is trained.  For r to
    infinity they are Poisson: 1/r is the variance, relative to μ², that f does not explain."""

    start: float = setting(10.0, "positive", "Shape r at the start.")

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "NegativeBinomial":
        """Starts with a rate of 1, and the shape `start`."""
        log_shape = jnp.asarray(jnp.log(options.get("start", 10.0)), dtype)
        return cls(jnp.zeros((), dtype), log_shape, **options)
