"""Kernel and noise at which training starts: configured, or those of an exact GP of some rows.

The latter as in paper `qsgp` (Evans and Nair 2020), appendix I.1.
"""

from jaxtyping import Array, Float

from gpbench.methods.base import Batch
from gpbench.methods.parts.exact import ExactGP, fit_subset
from gpbench.methods.parts.settings import NoiseMethod, PriorMethod


class ExactStart(PriorMethod, NoiseMethod):
    """The fields that decide it.  Noise variances are in units of the scaled targets' variance."""

    def configured_gp(self, X: Float[Array, "N D"]) -> ExactGP:
        """Kernel and noise as configured, with lengthscales from the rows X."""
        return ExactGP(self.kernel.initial(X, start=self.lengthscale_start), self.initial_noise(X))

    def subset_gp(self, data: Batch, rows: int) -> ExactGP:
        """Kernel and noise of `fit_subset` on the first `rows` rows, from those configured.

        Raises ConfigError for data that are no regression, and where memory is too small.
        """
        start, prior = self.lengthscale_start, self.lengthscale_prior
        return fit_subset(
            self.kernel, data, rows, start=start, noise=self.target_noise, floor=self.noise_floor, prior=prior
        )
