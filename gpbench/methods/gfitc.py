"""`gfitc`: generalised FITC for Gaussian-process classification, trained on EP's evidence at convergence.

Naish-Guzman and Holden, NIPS 2008, as the paper `sep` ran it (section 3): the inducing outputs are integrated out, f
has prior covariance Q + diag(λ) with Q = VᵀV and λ = k(x, x) + noise - |Vₙ|², and EP has a Gaussian site on every fₙ.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.likelihoods import probit_derivatives
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.predictive import Bernoulli, probit_bernoulli
from gpbench.core.sites import Sites, damped, flat_sites, matched
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info
from gpbench.methods.sep_energy import (
    Posterior,
    Sums,
    approximate_gradient,
    log_normaliser,
    marginals,
    posterior,
    site_sums,
)
from gpbench.methods.sparse import Hyper, SparseMethod, covariances, residual


class Inference(eqx.Module):
    """Where EP is: the sites on the latent values, and the posterior of the whitened inducing outputs."""

    sites: Sites
    q: Posterior


class State(eqx.Module):
    """Hyper-parameters, and L-BFGS with what EP found there (`optimiser.extra`)."""

    hyper: Hyper
    optimiser: lbfgs.State


class GFITC(SparseMethod):
    """Configuration of `gfitc`; see the module's docstring.

    Every evaluation of the evidence runs EP to convergence, from the sites of the last step.  Its gradient needs no
    derivative of the sites: at convergence the evidence is stationary in them.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})

    damping: float = eqx.field(static=True, kw_only=True, default=0.8)
    """ρ of the site update: 1 is no damping.  A sweep that moves the sites more than the last makes it a fifth less."""
    tolerance: float = eqx.field(static=True, kw_only=True, default=1e-5)
    """Largest change of a site's precision or shift at which EP has converged."""
    sweeps: int = eqx.field(static=True, kw_only=True, default=200)
    """The most parallel updates of all sites that one evaluation may take."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        if self.batch_size is not None and self.batch_size < data.total:
            raise ConfigError("gfitc's evidence is no sum over rows: leave method.batch_size=null, or use sep or svi")
        hyper = self.first_hyper(data, noise=self.noise, key=key)
        m, dtype = len(hyper.Z), data.X.dtype
        A = inverse_cholesky(covariances(hyper, hyper.Z[:1], self.noise_on_inducing).zz)
        q = posterior(A, Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype)))
        return State(hyper, lbfgs.start(hyper, Inference(flat_sites(data.weight), q)))

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """One L-BFGS iteration; the first only evaluates.  Reports the evidence where it ends."""

        def evaluate(hyper, inference):
            value, gradient, inference = self.evidence(hyper, batch, inference.sites)
            return -value, jax.tree.map(jnp.negative, gradient), inference

        hyper, optimiser = lbfgs.step(evaluate, state.hyper, state.optimiser)
        return State(hyper, optimiser), Info(-optimiser.value)

    def evidence(self, hyper: Hyper, data: Batch, sites: Sites) -> tuple[Float[Array, ""], Hyper, Inference]:
        """log Z of EP run to convergence from `sites`, its gradient, and what EP found."""
        cov, back = jax.vjp(lambda h: covariances(h, data.X, self.noise_on_inducing), hyper)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        rest = residual(cov, V)
        sites = self.converged(data, A, V, rest, sites)
        inner = on_inducing(sites, rest)
        sums = site_sums(V, inner)
        q = posterior(A, sums)
        at = marginals(q, V, V, inner)
        value = log_normaliser(data.y, rest, q, at, sums.shift, inner, data.weight)
        (gradient,) = back(approximate_gradient(data.y, rest, V, q, at, inner, data.weight))
        return value, self.tied(gradient), Inference(sites, q)

    def converged(self, data: Batch, A, V, rest, sites: Sites) -> Sites:
        """The sites after parallel damped EP updates to convergence, O(N M²) each."""

        class Sweep(NamedTuple):
            taken: int
            change: Float[Array, ""]
            rho: Float[Array, ""]
            sites: Sites

        def again(last: Sweep) -> Sweep:
            inner = on_inducing(last.sites, rest)
            at = marginals(posterior(A, site_sums(V, inner)), V, V, inner)
            mean, variance = at.cavity_mean, rest + at.cavity_variance
            _, slope, curvature = probit_derivatives(data.y, mean, variance)
            new = damped(matched(mean, variance, slope, curvature), last.sites, data.weight)
            change = jnp.maximum(jnp.max(jnp.abs(new.nu - last.sites.nu)), jnp.max(jnp.abs(new.tau - last.sites.tau)))
            rho = jnp.where(change > last.change, 0.8, 1.0) * last.rho
            return Sweep(last.taken + 1, change, rho, damped(new, last.sites, rho))

        def unconverged(last: Sweep):
            return (last.taken < self.sweeps) & (last.change > self.tolerance)

        first = Sweep(0, jnp.asarray(jnp.inf, V.dtype), jnp.asarray(self.damping, V.dtype), sites)
        return jax.lax.while_loop(unconverged, again, first).sites

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        value, *_ = self.evidence(state.hyper, data, state.optimiser.extra.sites)
        return value

    def predict(self, state: State, X: Float[Array, "N D"]) -> Bernoulli:
        q = state.optimiser.extra.q
        cov = covariances(state.hyper, X, self.noise_on_inducing)
        V = q.A @ cov.zx
        variance = residual(cov, V) + jnp.sum((q.R @ V) ** 2, axis=0)
        return probit_bernoulli(V.T @ q.mu, variance)

    def diagnose(self, state: State) -> str:
        return self.describe(state.hyper)


def on_inducing(sites: Sites, rest: Float[Array, " N"]) -> Sites:
    """Sites on fₙ = Vₙᵀw + eₙ as sites on Vₙᵀw, with eₙ ~ N(0, rest) integrated out.

    With them the low-rank-plus-diagonal structure is that of `sep`: marginals, cavities and log Z are the same ones.
    """
    shrink = 1.0 / (1.0 + sites.nu * rest)
    return Sites(sites.nu * shrink, sites.tau * shrink)
