"""`alacarte`: Bayesian linear regression on Fastfood features of the squared exponential kernel.

Yang, Smola, Song and Wilson, AISTATS 2015, "A la Carte - Learning Fast Kernels".  f(x) = φ(x)ᵀw with w ~ N(0, I) and T
random features φ (`core.bases.fastfood`).  Evidence and posterior of this model are exact, but for the jitter of the
Cholesky factor, in O(N T²) operations.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.bases.fastfood import Fastfood
from gpbench.core.gaussians import MeanVariance, Natural, Normal, Sites, site_product, unit_factor
from gpbench.core.kernels import SquaredExponential, require_family
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import log_determinant
from gpbench.core.memory import require_memory
from gpbench.methods.base import Batch
from gpbench.methods.parts.exact import SubsetStart
from gpbench.methods.parts.gradient import EvidenceMethod, GradientState
from gpbench.schema import setting

_BLOCK = 2048  # number of rows whose features are in memory at a time while the evidence and its gradient are computed


class AlaCarteParameters(eqx.Module):
    """Kernel, noise of y about f, and the random frequencies, in units of the lengthscales."""

    kernel: SquaredExponential
    likelihood: Gaussian
    fastfood: Fastfood

    def features(self, X: Float[Array, "N D"]) -> Float[Array, "T N"]:
        """φ of every row; over random frequencies φ(x)ᵀφ(x') has the expectation k(x, x')."""
        return jnp.exp(0.5 * self.kernel.log_amplitude) * self.fastfood.features(self.kernel.scale(X))

    def factor(self, data: Batch) -> Natural:
        """p(y|w) as a factor of w, a sum over blocks of rows, whose features reverse mode computes again."""
        n = len(data.y)
        size = min(n, _BLOCK)
        rows = (data.X, data.y, data.weight)

        @jax.checkpoint
        def of_rows(parameters: AlaCarteParameters, rows: Any) -> Natural:
            X, y, weight = rows
            precision = weight / parameters.likelihood.noise
            return site_product(parameters.features(X), Sites(precision, precision * y))

        def add(total: Any, rows: Any) -> Any:
            return total + of_rows(self, rows), None

        cut = lambda leaf: leaf[: n - n % size].reshape(-1, size, *leaf.shape[1:])
        unit = unit_factor(2 * self.fastfood.frequencies, data.X.dtype)
        total, _ = jax.lax.scan(add, unit, jax.tree.map(cut, rows))
        return total + of_rows(self, jax.tree.map(lambda leaf: leaf[n - n % size :], rows)) if n % size else total


class AlaCarte(EvidenceMethod, SubsetStart):
    """Bayesian linear regression on Fastfood features (Yang et al. 2015): `alacarte`.  L-BFGS maximises the evidence of
    all rows.  A step takes the memory of about six matrices of T x T and six of T x 2,048 numbers, however many rows
    there are."""

    sample_weights: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...] | None] = ("squared_exponential",)
    label_fields: ClassVar[frozenset[str]] = frozenset({"frequencies"})

    frequencies: int = setting(
        256, "count", "Number of random frequencies; each has two features, a cosine and a sine."
    )
    learn: str = setting(
        "lengthscales",
        ["lengthscales", "all"],
        "Parameters that L-BFGS moves beside amplitude and noise: lengthscales, or Fastfood's diagonals S, G and "
        "B too.",
    )

    @property
    def label(self) -> str:
        return f"m={2 * self.frequencies}"

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> AlaCarteParameters:
        require_family(self.kernel, SquaredExponential, self.name)
        X, dtype, T = data.X[: data.total], data.X.dtype, 2 * self.frequencies
        # Measured: the evidence with its gradient takes up to 6.5 T (T + rows of a block) numbers
        require_memory(6.5 * T * (T + min(_BLOCK, len(X))) * dtype.itemsize, f"{T:,} features", "frequencies")
        gp = self.configured_gp(X, data) if self.subset_rows is None else self.subset_gp(data, self.subset_rows)
        assert isinstance(gp.kernel, SquaredExponential)
        fastfood = Fastfood.sample(X.shape[1], self.frequencies, dtype, key=key)
        return AlaCarteParameters(gp.kernel, gp.likelihood, fastfood)

    def init_extra(self, parameters: AlaCarteParameters, data: Batch) -> Normal:
        return unit_factor(2 * self.frequencies, data.X.dtype).posterior()

    def evidence(self, parameters: AlaCarteParameters, data: Batch) -> tuple[Float[Array, ""], Normal]:
        """log N(y | 0, ΦᵀΦ + σ²I) with Φ (T, N), and the posterior of w."""
        if self.learn == "lengthscales":
            constant = jax.lax.stop_gradient(parameters.fastfood)
            parameters = eqx.tree_at(lambda p: p.fastfood, parameters, constant)
        factor, noise = parameters.factor(data), parameters.likelihood.noise
        posterior = factor.posterior()
        terms = data.y**2 / noise + jnp.log(2.0 * jnp.pi * noise)
        value = -0.5 * jnp.sum(data.weight * terms)
        value += 0.5 * (posterior.mean @ factor.shift - log_determinant(posterior.root))
        if self.lengthscale_prior is not None:
            value += self.lengthscale_prior.log_prob(parameters.kernel, data.X.shape[1])
        return value, posterior

    def marginals(self, state: GradientState[AlaCarteParameters], X: Float[Array, "N D"]) -> MeanVariance:
        return state.optimiser.extra.project(state.parameters.features(X))

    def kl(self, state: GradientState[AlaCarteParameters]) -> Float[Array, ""]:
        return state.optimiser.extra.kl()
