"""`student_t`: noise with polynomial tails, under which outliers have almost no influence."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench import registry
from gpbench.core import predictive
from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.predictive.student_t import expected_log1p, log_constant, log_expected_power, student_t_variance
from gpbench.core.quadrature import PerRow
from gpbench.schema import setting


class StudentT(Likelihood):
    """y = f + scale t, t of Student's distribution with `df` degrees of freedom.  Expectations are integrals over the
    mixing precision (core/predictive/student_t.py).  At the default number of nodes their absolute errors are below
    1e-6 (2e-5) for df = 4 (1) and rows up to 2,000 scales away, whatever the variance.  Powers α below 1 need more: at
    α = 0.5 log Z errs by 7e-6 (7e-4), and by 1e-10 with 256 nodes."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    log_scale: Float[Array, ""]
    log_df: Float[Array, ""] | None
    """None where the degrees of freedom are fixed, at `df`."""
    df: float = setting(4.0, "positive", "Degrees of freedom, fixed or at the start.")
    learn_df: bool = setting(False, "flag", "Train the degrees of freedom.")
    nodes: int = setting(64, registry.FROM_EIGHT, "Number of nodes of the integrals over the mixing precision.")

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "StudentT":
        """Starts with noise of this variance; where df ≤ 2 the variance is infinite, and `noise` is scale²."""
        df = options.get("df", 4.0)
        scale2 = noise * (df - 2.0) / df if df > 2 else noise
        log_df = jnp.asarray(jnp.log(df), dtype) if options.get("learn_df") else None
        return cls(jnp.asarray(0.5 * jnp.log(scale2), dtype), log_df, **options)

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit of t, in those of y."""
        return jnp.exp(self.log_scale)

    @property
    def degrees(self) -> Float[Array, ""]:
        """The degrees of freedom, as trained."""
        return jnp.asarray(self.df, self.log_scale.dtype) if self.log_df is None else jnp.exp(self.log_df)

    @property
    def noise(self) -> Float[Array, ""]:
        """The variance of y about f, infinite where df ≤ 2."""
        return student_t_variance(self.scale, self.degrees)

    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """The log density of t at (y - f) / scale, less log scale."""
        power = jnp.log1p((y - f) ** 2 / (self.degrees * self.scale**2))
        return log_constant(self.scale, self.degrees) - 0.5 * (self.degrees + 1.0) * power

    def expected_log_prob(self, mean: PerRow, variance: PerRow, y: PerRow) -> PerRow:
        """E log p(y|f) = constant - ½ (df + 1) E log(1 + (y - f)² / (df scale²))."""
        width2 = self.degrees * self.scale**2
        power = expected_log1p((y - mean) ** 2 / width2, variance / width2, self.nodes)
        return log_constant(self.scale, self.degrees) - 0.5 * (self.degrees + 1.0) * power

    def log_normaliser(self, mean: PerRow, variance: PerRow, y: PerRow, *, alpha: float = 1.0) -> PerRow:
        """α constant + log E (1 + (y - f)² / (df scale²))^(-α (df + 1) / 2)."""
        width2 = self.degrees * self.scale**2
        a = 0.5 * alpha * (self.degrees + 1.0)
        power = log_expected_power(a, (y - mean) ** 2 / width2, variance / width2, self.nodes)
        return alpha * log_constant(self.scale, self.degrees) + power

    def predictive(self, mean: PerRow, variance: PerRow) -> predictive.StudentTPredictive:
        """The convolution of N(mean, variance) and the noise."""
        return predictive.StudentTPredictive(mean, variance, self.scale, self.degrees, self.nodes)
