"""`gpr`: exact GP regression (Rasmussen and Williams 2006, chapter 2), O(N³) a step: for few rows, or some of many."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import MeanVariance
from gpbench.core.linalg import describe_failure
from gpbench.methods.base import Batch
from gpbench.methods.parts.exact import ExactGP, ExactStart, Solution, log_posterior, require_rows
from gpbench.methods.parts.gradient import EvidenceMethod, GradientState
from gpbench.schema import setting


class GPR(EvidenceMethod, ExactStart):
    """Exact Gaussian process regression (Rasmussen and Williams 2006): `gpr`.  L-BFGS moves kernel and noise to the
    largest evidence."""

    sample_weights: ClassVar[bool] = True

    rows: int | None = setting(
        None, "count or null", "Number of training rows, in random order; null: all.  The paper svdgp takes 1,024."
    )

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> ExactGP:
        X = data.first(self.rows).X
        require_rows(X, "method.rows")
        return self.configured_gp(X, data)

    def init_extra(self, parameters: ExactGP, data: Batch) -> tuple[Solution, Float[Array, "N D"]]:
        X = data.first(self.rows).X
        n, dtype = len(X), X.dtype
        return Solution(jnp.zeros((n, n), dtype), jnp.zeros(n, dtype)), X

    def evidence(
        self, parameters: ExactGP, data: Batch
    ) -> tuple[Float[Array, ""], tuple[Solution, Float[Array, "N D"]]]:
        data = data.first(self.rows)
        value, solution = log_posterior(parameters, data, self.lengthscale_prior)
        return value, (solution, data.X)

    def marginals(self, state: GradientState[ExactGP], X: Float[Array, "N D"]) -> MeanVariance:
        solution, rows = state.optimiser.extra
        kernel = state.parameters.kernel
        V = solution.A @ kernel.cross(rows, X)
        return V.T @ solution.whitened, jnp.maximum(kernel.diag(X) - jnp.sum(V**2, axis=0), 0.0)

    def covariance(self, state: GradientState[ExactGP], X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        solution, rows = state.optimiser.extra
        kernel = state.parameters.kernel
        V = solution.A @ kernel.cross(rows, X)
        return kernel.cross(X, X) - V.T @ V

    def kl(self, state: GradientState[ExactGP]) -> Float[Array, ""]:
        """The divergence where all rows have weight 1, as in runs, which alone report it."""
        solution, _ = state.optimiser.extra
        return solution.kl(state.parameters.likelihood.noise)

    def diagnose(self, state: GradientState[ExactGP]) -> str:
        K = state.parameters.covariance(state.optimiser.extra[1])
        return describe_failure(f"the covariance of the targets under the {state.parameters.kernel.describe()}", K)
