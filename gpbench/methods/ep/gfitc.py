"""`gfitc`: generalised FITC for Gaussian-process classification, trained on EP's evidence at convergence.

Naish-Guzman and Holden, NIPS 2008, as the paper `sep` ran it (section 3): the inducing outputs are integrated out, f
has prior covariance Q + diag(λ) with Q = VᵀV and λ = k(x, x) + noise - |Vₙ|², and EP has a Gaussian site on every fₙ.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.ep import approximate_gradient, log_normaliser, marginals
from gpbench.core.gaussians import Normal, Sites, damp, initial_sites, moment_match, residual, site_product, unit_factor
from gpbench.core.likelihoods import Likelihood
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.predictive import Predictive
from gpbench.methods.base import Batch
from gpbench.methods.parts.gradient import FullBatchMethod, GradientState
from gpbench.methods.parts.settings import TwoClassMethod
from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod
from gpbench.schema import setting


class Inference(eqx.Module):
    """EP at the current hyper-parameters: sites on the latent values, and q(w) in the coordinates whitened by A."""

    sites: Sites
    A: Float[Array, "M M"]
    q: Normal


class GFITC(FullBatchMethod, SparseMethod, TwoClassMethod):
    """Generalised FITC classification (Naish-Guzman and Holden 2008): `gfitc`.  Every evaluation of the evidence runs
    EP to convergence, from the sites of the last step.  Its gradient needs no derivative of the sites: at convergence
    the evidence is stationary in them."""

    damping: float = setting(
        0.8, "fraction", "Damping ρ of EP's parallel updates: 1 is none.  It falls by a fifth where the updates grow."
    )
    tolerance: float = setting(
        1e-5, "nonnegative", "Largest change of a site's precision or shift at which EP has converged."
    )
    sweeps: int = setting(
        200, "count", "Maximum number of parallel updates of all sites in one evaluation of the evidence."
    )

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> SparseLayer:
        self.class_likelihood(data.X)
        return self.initial_layer(data, additive_noise=True, key=key)

    def init_extra(self, parameters: SparseLayer, data: Batch) -> Inference:
        A = inverse_cholesky(parameters.gram())
        return Inference(initial_sites(data.weight), A, unit_factor(len(A), A.dtype).posterior())

    def evaluate(self, parameters: SparseLayer, extra: Inference, batch: Batch, *, key: PRNGKeyArray) -> Any:
        value, gradient, inference = self.evidence(parameters, batch, extra.sites)
        return -value, jax.tree.map(jnp.negative, gradient), inference

    def evidence(
        self, layer: SparseLayer, data: Batch, sites: Sites
    ) -> tuple[Float[Array, ""], SparseLayer, Inference]:
        """log Z of EP run to convergence from `sites`, its gradient, and the converged inference."""
        likelihood = self.class_likelihood(data.X)
        cov, pull_back = jax.vjp(lambda layer: layer.covariances(data.X), layer)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        rest = residual(cov, V)
        sites = self.converge(likelihood, data, V, rest, sites)
        inner = on_inducing(sites, rest)
        factor = site_product(V, inner)
        q = factor.posterior()
        cavities = marginals(q, V, V, inner)
        value = log_normaliser(likelihood, data.y, rest, q, cavities, factor.shift, inner, data.weight)
        (gradient,) = pull_back(approximate_gradient(likelihood, data.y, rest, A, V, q, cavities, inner, data.weight))
        prior, slope = jax.value_and_grad(SparseLayer.log_prior)(layer)
        return value + prior, jax.tree.map(jnp.add, gradient, slope), Inference(sites, A, q)

    def converge(self, likelihood: Likelihood, data: Batch, V: Any, rest: Any, sites: Sites) -> Sites:
        """The sites after parallel damped EP updates to convergence, O(N M²) each."""

        class Sweep(NamedTuple):
            number: int
            change: Float[Array, ""]
            rho: Float[Array, ""]
            sites: Sites

        def again(last: Sweep) -> Sweep:
            inner = on_inducing(last.sites, rest)
            cavities = marginals(site_product(V, inner).posterior(), V, V, inner)
            mean, variance = cavities.cavity_mean, rest + cavities.cavity_variance
            _, slope, curvature = likelihood.normaliser_derivatives(mean, variance, data.y)
            new = damp(moment_match(mean, variance, slope, curvature), last.sites, data.weight)
            change = new.change_from(last.sites)
            rho = jnp.where(change > last.change, 0.8, 1.0) * last.rho
            return Sweep(last.number + 1, change, rho, damp(new, last.sites, rho))

        unconverged = lambda last: (last.number < self.sweeps) & (last.change > self.tolerance)
        start = Sweep(0, jnp.asarray(jnp.inf, V.dtype), jnp.asarray(self.damping, V.dtype), sites)
        return jax.lax.while_loop(unconverged, again, start).sites

    def objective(self, state: GradientState[SparseLayer], data: Batch) -> Float[Array, ""]:
        value, *_ = self.evidence(state.parameters, data, state.optimiser.extra.sites)
        return value

    def predict(self, state: GradientState[SparseLayer], X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        inference: Inference = state.optimiser.extra
        return self.class_likelihood(X).predictive(*state.parameters.marginals(inference.A, inference.q, X))

    def row_memory(self, n: int) -> int:
        return 2


def on_inducing(sites: Sites, rest: Float[Array, " N"]) -> Sites:
    """Sites on fₙ = Vₙᵀw + eₙ as sites on Vₙᵀw, with eₙ ~ N(0, rest) integrated out.  With them the
    low-rank-plus-diagonal structure is that of `sep`: marginals, cavities and log Z are the same ones."""
    shrink = 1.0 / (1.0 + sites.nu * rest)
    return Sites(sites.nu * shrink, sites.tau * shrink)
