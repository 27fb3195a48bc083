"""`probit`: two classes, with p(y|f) = Φ(y f)."""

from typing import ClassVar

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive import BernoulliPredictive
from gpbench.core.quadrature import log_normal_expectation, normal_expectation
from gpbench.schema import setting


class Probit(Likelihood):
    """Labels -1 and +1 with p(y|f) = Φ(y f): closed forms, apart from E log Φ and powers of Φ (quadrature)."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})
    log_concave: ClassVar[bool] = True

    nodes: int = setting(20, "count", "Number of Gauss-Hermite nodes.")

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log Φ(y f)."""
        return norm.logcdf(y * f)

    def expected_log_prob(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        """E log Φ(y f) by quadrature."""
        return normal_expectation(norm.logcdf, y * mean, variance, self.nodes)

    def log_normaliser(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        """log Φ(y mean / √(1 + variance)); for α other than 1 by quadrature."""
        if alpha != 1.0:
            return log_normal_expectation(lambda f: alpha * norm.logcdf(f), y * mean, variance, self.nodes)
        return norm.logcdf(y * mean / jnp.sqrt(1.0 + variance))

    def normaliser_derivatives(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, " N"]]:
        """(log Z, d log Z / d mean, -d² log Z / d mean²).

        Paper `sep`, equations 20 and 23; equation 20 prints y/b where y/√b holds (errata).  The ratio pdf/cdf goes
        through logarithms, so that it is right far in the wrong tail too.
        """
        if alpha != 1.0:
            return super().normaliser_derivatives(mean, variance, y, alpha=alpha)
        b = 1.0 + variance
        z = y * mean / jnp.sqrt(b)
        log_cdf = norm.logcdf(z)
        slope = jnp.exp(norm.logpdf(z) - log_cdf) * y / jnp.sqrt(b)
        return log_cdf, slope, slope**2 + slope * mean / b

    def predictive(self, mean: Float[Array, " N"], variance: Float[Array, " N"]) -> BernoulliPredictive:
        """p(y = +1) = Φ(mean / √(1 + variance)) (paper `sep`, appendix A.7)."""
        z = mean / jnp.sqrt(1.0 + variance)
        return BernoulliPredictive(norm.logcdf(-z), norm.logcdf(z))
