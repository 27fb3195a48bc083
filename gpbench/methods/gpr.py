"""`gpr`: exact GP regression (Rasmussen and Williams 2006, chapter 2), O(N³) a step: for few rows, or some of many."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.inducing import LengthscaleStart, first_log_lengthscales2
from gpbench.core.kernels import SquaredExponential
from gpbench.core.linalg import describe_failure, inverse_cholesky, log_determinant
from gpbench.core.predictive import Gaussian
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.vsgpr import first_rows


class Hyper(eqx.Module):
    """Kernel, and noise variance of y about f."""

    kernel: SquaredExponential
    log_noise: Float[Array, ""]

    def covariance(self, X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        """That of the targets."""
        return self.kernel.gram(X, X) + jnp.exp(self.log_noise) * jnp.eye(len(X), dtype=X.dtype)


class State(eqx.Module):
    """Hyper-parameters, L-BFGS with the inverse Cholesky factor A there and A y (`optimiser.extra`), and the inputs."""

    hyper: Hyper
    optimiser: lbfgs.State
    X: Float[Array, "N D"]


class GPR(Method):
    """Configuration of `gpr`; see the module's docstring.  L-BFGS moves kernel and noise to the largest evidence."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    rows: int | None = eqx.field(static=True, kw_only=True, default=None)
    """How many training rows it is trained on, in their random order; None is all.  The paper `svdgp` takes 1,024."""
    lengthscale_start: LengthscaleStart = eqx.field(static=True, kw_only=True, default="median")
    """What lengthscales start at, from the rows it is trained on."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """First noise variance of the scaled targets."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        if self.batch_size is not None and self.batch_size < data.total:
            raise ConfigError(f"{self.name}'s evidence is no sum over rows: leave method.batch_size=null, or use svi")
        X, dtype = first_rows(data, self.rows).X, data.X.dtype
        n = len(X)
        kernel = SquaredExponential(jnp.zeros((), dtype), first_log_lengthscales2(X, self.lengthscale_start))
        hyper = Hyper(kernel, jnp.asarray(jnp.log(self.target_noise), dtype))
        return State(hyper, lbfgs.start(hyper, (jnp.zeros((n, n), dtype), jnp.zeros(n, dtype))), X)

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """One L-BFGS iteration; the first only evaluates.  Reports the evidence where it ends."""

        def minus_evidence(hyper):
            value, found = self.evidence(hyper, batch)
            return -value, found

        def evaluate(hyper, _):
            (value, found), gradient = jax.value_and_grad(minus_evidence, has_aux=True)(hyper)
            return value, gradient, found

        hyper, optimiser = lbfgs.step(evaluate, state.hyper, state.optimiser)
        return State(hyper, optimiser, state.X), Info(-optimiser.value)

    def evidence(self, hyper: Hyper, data: Batch) -> tuple[Float[Array, ""], tuple[Float[Array, "N N"], Array]]:
        """log N(y | 0, K + σ²I) of the rows it is trained on, with the factor A of the covariance and A y."""
        data = first_rows(data, self.rows)
        A = inverse_cholesky(hyper.covariance(data.X))
        whitened = A @ data.y
        value = -0.5 * (jnp.sum(whitened**2) + log_determinant(A) + len(whitened) * jnp.log(2.0 * jnp.pi))
        return value, (A, whitened)

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        return self.evidence(state.hyper, data)[0]

    def predict(self, state: State, X: Float[Array, "N D"]) -> Gaussian:
        A, whitened = state.optimiser.extra
        V = A @ state.hyper.kernel.gram(state.X, X)
        rest = jnp.maximum(state.hyper.kernel.diagonal(X) - jnp.sum(V**2, axis=0), 0.0)
        noise = jnp.exp(state.hyper.log_noise)
        return Gaussian(V.T @ whitened, rest + noise, noise)

    def divergence(self, state: State) -> Float[Array, ""]:
        """With C = K + σ²I and A C Aᵀ = I: ½ (yᵀC⁻¹KC⁻¹y - tr C⁻¹K + log|C/σ²|), from K = C - σ²I."""
        A, whitened = state.optimiser.extra
        noise = jnp.exp(state.hyper.log_noise)
        fit = jnp.sum(whitened**2) - noise * jnp.sum((A.T @ whitened) ** 2)
        lost = len(whitened) - noise * jnp.sum(A**2)
        return 0.5 * (fit - lost + log_determinant(A) - len(whitened) * state.hyper.log_noise)

    def diagnose(self, state: State) -> str:
        K = state.hyper.covariance(state.X)
        name = f"the covariance of the targets under the {state.hyper.kernel.describe()}"
        return describe_failure(name, K, str(K.dtype)) or ""
