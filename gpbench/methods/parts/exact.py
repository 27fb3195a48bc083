"""Exact GP regression of a few thousand rows (Rasmussen and Williams 2006, chapter 2): prior and evidence.  Methods for
many rows take their initial hyper-parameters from such a model of some of them (`fit_subset`)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core import lbfgs
from gpbench.core.kernels import Kernel, LengthscalePrior, LengthscaleStart, Spec
from gpbench.core.likelihoods import Gaussian
from gpbench.core.linalg import inverse_cholesky, log_determinant, transposed
from gpbench.core.memory import require_memory
from gpbench.methods.base import Batch
from gpbench.methods.parts.settings import NoiseMethod, PriorMethod
from gpbench.schema import setting

_MATRICES = 11
"""Number of N x N matrices that the evidence and its gradient take at once, measured with 1,000 to 4,000 rows."""
_ITERATIONS = 200  # maximum number of L-BFGS iterations in `fit_subset`


class Solution(eqx.Module):
    """The inverse Cholesky factor A of C (A C Aᵀ = I), and A y."""

    A: Float[Array, "N N"]
    whitened: Float[Array, " N"]

    def kl(self, noise: Float[Array, ""]) -> Float[Array, ""]:
        """KL[q(f | y) || p(f)] = ½ (yᵀC⁻¹KC⁻¹y - tr C⁻¹K + log|C/σ²|) of targets y with C = K + σ²I, in nats."""
        A, n = self.A, len(self.whitened)
        fit = jnp.sum(self.whitened**2) - noise * jnp.sum((A.T @ self.whitened) ** 2)
        lost = n - noise * jnp.sum(A**2)
        return 0.5 * (fit - lost + log_determinant(A) - n * jnp.log(noise))


class ExactGP(eqx.Module):
    """Kernel, and the noise of y about f."""

    kernel: Kernel
    likelihood: Gaussian

    def covariance(self, X: Float[Array, "N D"], weight: Float[Array, " N"] | float = 1.0) -> Float[Array, "N N"]:
        """C = K + σ² diag(1/w) of the targets."""
        return self.kernel.cross(X, X) + self.likelihood.noise / weight * jnp.eye(len(X), dtype=X.dtype)

    def evidence(
        self, X: Float[Array, "N D"], y: Float[Array, " N"], weight: Float[Array, " N"]
    ) -> tuple[Float[Array, ""], Solution]:
        """log N(y | 0, K + σ²I) in nats of rows repeated w times, and the solution, from which predictions are made."""
        value, A, whitened = _log_density(self.covariance(X, weight), y)
        # N(y | f, σ²)^w = N(y | f, σ²/w) (2πσ²)^((1 - w)/2) / √w
        repeats = (weight - 1.0) * jnp.log(2.0 * jnp.pi * self.likelihood.noise) + jnp.log(weight)
        return value - 0.5 * jnp.sum(repeats), jax.lax.stop_gradient(Solution(A, whitened))


@jax.custom_vjp
def _log_density(
    C: Float[Array, "N N"], y: Float[Array, " N"]
) -> tuple[Float[Array, ""], Float[Array, "N N"], Float[Array, " N"]]:
    """log N(y | 0, C), with A and A y of `Solution`, through which no gradient flows."""
    A = inverse_cholesky(C)
    whitened = A @ y
    value = -0.5 * (jnp.sum(whitened**2) + log_determinant(A) + len(whitened) * jnp.log(2.0 * jnp.pi))
    return value, A, whitened


def _forward(C: Array, y: Array) -> tuple[Any, Any]:
    value, A, whitened = _log_density(C, y)
    return (value, A, whitened), (A, whitened)


def _backward(saved: Any, cotangents: Any) -> tuple[Array, Array]:
    """∂/∂C = ½ (C⁻¹y yᵀC⁻¹ - C⁻¹) and ∂/∂y = -C⁻¹y: one product, where A's own rule takes three."""
    (A, whitened), (slope, *_) = saved, cotangents
    weights = A.T @ whitened
    return 0.5 * slope * (jnp.outer(weights, weights) - transposed(A) @ A), -slope * weights


_log_density.defvjp(_forward, _backward)


def require_rows(X: Float[Array, "N D"], key: str) -> None:
    """Raise ConfigError where the evidence of these rows and its gradient need more memory than is free.  `key` is that
    of the configuration which sets their number."""
    needed = _MATRICES * len(X) ** 2 * X.dtype.itemsize
    require_memory(needed, f"{_MATRICES} covariance matrices of {len(X):,} rows in an exact GP", f"rows ({key})")


def log_posterior(model: ExactGP, data: Batch, prior: LengthscalePrior | None) -> tuple[Float[Array, ""], Solution]:
    """The evidence plus the log density of a prior on the lengthscales, if there is one."""
    value, solution = model.evidence(data.X, data.y, data.weight)
    return value if prior is None else value + prior.log_prob(model.kernel, data.X.shape[1]), solution


def fit_subset(
    spec: Spec,
    data: Batch,
    rows: int,
    *,
    start: LengthscaleStart,
    noise: float,
    floor: float,
    prior: LengthscalePrior | None = None,
) -> ExactGP:
    """Kernel and noise with the largest evidence of the first `rows` training rows, which come in random order.  Where
    there are fewer rows it takes all.  L-BFGS starts from lengthscales by `start` and this `noise` variance, in units
    of the targets.  O(rows³) an iteration.  Raises ConfigError where memory is too small."""
    subset = data.first(rows)
    require_rows(subset.X, "method.subset_rows")
    kernel = spec.initial(subset.X, start=start, unit=data.unit)
    model = ExactGP(kernel, Gaussian.initial(noise, 0, subset.X.dtype, floor=floor))
    return _largest_evidence(model, subset, prior)


@eqx.filter_jit
def _largest_evidence(model: ExactGP, data: Batch, prior: LengthscalePrior | None) -> ExactGP:
    """Compiled once for all data of one shape."""

    def evaluate(model: Any, _: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda model: -log_posterior(model, data, prior)[0])(model)
        return value, gradient, None

    def unfinished(carry: Any) -> Any:
        t, _, state = carry
        return (t < _ITERATIONS) & ~state.converged

    def advance(carry: Any) -> Any:
        t, model, state = carry
        return t + 1, *lbfgs.step(evaluate, model, state)

    _, model, _ = jax.lax.while_loop(unfinished, advance, (0, model, lbfgs.start(model)))
    return model


class ExactStart(PriorMethod, NoiseMethod):
    """A method that starts from an exact GP.  Noise variances are in units of the scaled targets' variance."""

    def configured_gp(self, X: Float[Array, "N D"], data: Batch) -> ExactGP:
        """Kernel and noise as configured, with lengthscales from the rows X in the units of the training data."""
        return ExactGP(self.initial_kernel(X, data), self.initial_noise(X))

    def subset_gp(self, data: Batch, rows: int, floor: float | None = None) -> ExactGP:
        """Kernel and noise of `fit_subset` on the first `rows` rows, from those configured; None: `noise_floor`."""
        start, prior = self.lengthscale_start, self.lengthscale_prior
        floor = self.noise_floor if floor is None else floor
        return fit_subset(self.kernel, data, rows, start=start, noise=self.target_noise, floor=floor, prior=prior)


class SubsetStart(ExactStart):
    """A method that can start from an exact GP of some rows."""

    subset_rows: int | None = setting(
        None,
        "several or null",
        "Number of rows of the exact GP from whose kernel and noise training starts in regression; null: start at "
        "lengthscale_start and target_noise.",
    )
