"""`vsgpr`: sparse variational GP regression with q at its optimum in closed form (Titsias, AISTATS 2009).

With V = A Kzx and P = I + V Vᵀ/σ² the collapsed bound is log N(y | 0, VᵀV + σ²I) - Σ residual/(2σ²).
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.gaussians import Normal
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.predictive import Gaussian
from gpbench.core.sites import Sites
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info
from gpbench.methods.sep_energy import Posterior, Sums, posterior, site_sums
from gpbench.methods.sparse import Hyper, SparseMethod, noiseless, residual


class State(eqx.Module):
    """Hyper-parameters, and L-BFGS with the posterior of the whitened inducing outputs there (`optimiser.extra`)."""

    hyper: Hyper
    optimiser: lbfgs.State


class VSGPR(SparseMethod):
    """Configuration of `vsgpr`; see the module's docstring.  L-BFGS moves hyper-parameters and inducing points."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    rows: int | None = eqx.field(static=True, kw_only=True, default=None)
    """How many training rows it is trained on, in their random order; None is all.  The paper `svdgp` takes 4,096."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """First noise variance of the scaled targets."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        if self.batch_size is not None and self.batch_size < data.total:
            raise ConfigError(f"{self.name}'s bound is no sum over rows: leave method.batch_size=null, or use svi")
        hyper = self.first_hyper(first_rows(data, self.rows), noise=self.target_noise, key=key)
        m, dtype = len(hyper.Z), data.X.dtype
        A = inverse_cholesky(hyper.between())
        nothing = posterior(A, Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype)))
        return State(hyper, lbfgs.start(hyper, nothing))

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """One L-BFGS iteration; the first only evaluates.  Reports the bound where it ends."""

        def minus_bound(hyper):
            value, q = self.bound(hyper, batch)
            return -value, q

        def evaluate(hyper, _):
            (value, q), gradient = jax.value_and_grad(minus_bound, has_aux=True)(hyper)
            return value, self.tied(gradient), q

        hyper, optimiser = lbfgs.step(evaluate, state.hyper, state.optimiser)
        return State(hyper, optimiser), Info(-optimiser.value)

    def bound(self, hyper: Hyper, data: Batch) -> tuple[Float[Array, ""], Posterior]:
        """The collapsed bound on the log evidence of the rows it is trained on, and q at its optimum."""
        data = first_rows(data, self.rows)
        noise = jnp.exp(hyper.log_noise)
        cov = noiseless(hyper, data.X)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        # y is a Gaussian site on every f: precision 1/σ², precision times mean y/σ²
        sums = site_sums(V, Sites(data.weight / noise, data.weight * data.y / noise))
        q = posterior(A, sums)
        fit = jnp.sum(data.weight * (data.y**2 + residual(cov, V))) / noise - q.mu @ sums.shift
        determinant = data.total * (jnp.log(2.0 * jnp.pi) + hyper.log_noise) + log_determinant(q.R)
        return -0.5 * (fit + determinant), q

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        return self.bound(state.hyper, data)[0]

    def predict(self, state: State, X: Float[Array, "N D"]) -> Gaussian:
        q, cov = state.optimiser.extra, noiseless(state.hyper, X)
        V = q.A @ cov.zx
        noise = jnp.exp(state.hyper.log_noise)
        return Gaussian(V.T @ q.mu, residual(cov, V) + jnp.sum((q.R @ V) ** 2, axis=0) + noise, noise)

    def divergence(self, state: State) -> Float[Array, ""]:
        q = state.optimiser.extra
        return Normal(q.mu, q.R).kl_from_standard()

    def diagnose(self, state: State) -> str:
        return self.describe(state.hyper)


def first_rows(data: Batch, rows: int | None) -> Batch:
    """The first of the rows that count, which come in random order; all of them where there are fewer."""
    n = min(rows or data.total, data.total)
    if n == len(data.y):
        return data
    return Batch(data.X[:n], data.y[:n], data.index[:n], data.weight[:n], n, data.classes)
