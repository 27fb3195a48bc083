"""Kernel and noise at which training starts: configured, or those of an exact GP of some rows.

The latter as in paper `qsgp` (Evans and Nair 2020), appendix I.1.
"""

import equinox as eqx
from jaxtyping import Array, Float

from gpbench.core.kernels import LengthscalePrior, LengthscaleStart, Spec, kernel_spec, lengthscale_prior
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.base import Batch, Method
from gpbench.methods.parts.exact import ExactGP, fit_subset


class ExactStart(Method):
    """The fields that decide it.  Noise variances are in units of the scaled targets' variance."""

    kernel: Spec = eqx.field(static=True, kw_only=True, default="squared_exponential", converter=kernel_spec)
    """The covariance function: see `gpbench.core.kernels.kernel_spec`."""
    lengthscale_start: LengthscaleStart = eqx.field(static=True, kw_only=True, default="median")
    """Initial lengthscales, from training rows."""
    lengthscale_prior: LengthscalePrior | None = eqx.field(
        static=True, kw_only=True, default=None, converter=lengthscale_prior
    )
    """A log-normal prior on the lengthscales, whose log density is added to the evidence."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """Initial noise variance."""
    noise_floor: float = eqx.field(static=True, kw_only=True, default=0.0)
    """The least noise variance that training may reach."""

    def configured_gp(self, X: Float[Array, "N D"]) -> ExactGP:
        """Kernel and noise as configured, with lengthscales from the rows X."""
        noise = Gaussian.initial(self.target_noise, 0, X.dtype, floor=self.noise_floor)
        return ExactGP(self.kernel.initial(X, start=self.lengthscale_start), noise)

    def subset_gp(self, data: Batch, rows: int) -> ExactGP:
        """Kernel and noise of `fit_subset` on the first `rows` rows, from those configured.

        Raises ConfigError for data that are no regression, and where memory is too small.
        """
        start, prior = self.lengthscale_start, self.lengthscale_prior
        return fit_subset(
            self.kernel, data, rows, start=start, noise=self.target_noise, floor=self.noise_floor, prior=prior
        )
