"""`pbp`: probabilistic backpropagation, assumed-density filtering of neural networks with independent normal weights.

Hernández-Lobato and Adams (ICML 2015, section 3).  A step is one pass over the rows in random order, or over those of a
minibatch: each row's evidence, by the closed-form moments of the network's output, updates the weights through its
gradients, and the posterior of the noise's precision.  After a pass the factors of the weights' prior are refined once
by expectation propagation, one by one.
Deviation: an update that would leave one of the two Gamma distributions invalid is omitted, as those of weights are.
"""

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.assumed_density import Gamma, output_moments
from gpbench.core.networks import Network, normal_network
from gpbench.core.predictive import GaussianPredictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import NetworkMethod
from gpbench.schema import setting

_FLAT = 1e-6  # largest cavity precision of a weight whose prior factor is not refined: the data say nothing about it


class PbpPosterior(eqx.Module):
    """Means and variances of the weights, and the noise's precision."""

    mean: Network
    variance: Network
    noise: Gamma


class PriorFactors(eqx.Module):
    """Factors of q for each weight's prior N(w | 0, 1/λ): N(w | 0, 1/precision), and powers of λ's Gamma distribution.
    The factor adds its shape and rate to those of q(λ)."""

    precision: Float[Array, "*W"]
    shape: Float[Array, "*W"]
    rate: Float[Array, "*W"]


class PbpState(eqx.Module):
    """The posterior, q(λ) of the weights' prior precision, and the prior's factors (W,), flat over the networks."""

    posterior: PbpPosterior
    prior: Gamma
    factors: PriorFactors


class PBP(NetworkMethod):
    """A Bayesian neural network by probabilistic backpropagation (Hernández-Lobato and Adams 2015): `pbp`."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian",)

    gamma_shape: float = setting(6.0, "above_one", "Shape of the Gamma priors of the precisions of noise and weights.")
    gamma_rate: float = setting(
        6.0, "positive", "Rate of these Gamma priors; for the noise in units of the scaled targets' variance."
    )

    def init(self, data: Batch, *, key: PRNGKeyArray) -> PbpState:
        """Means from N(0, 1/(I + 1)) in a layer with I inputs, as in the authors' program; variances E 1/λ.  Raises
        ConfigError for likelihoods other than gaussian."""
        self.gaussian_likelihood(data)
        dtype = data.X.dtype
        gamma = Gamma(jnp.asarray(self.gamma_shape, dtype), jnp.asarray(self.gamma_rate, dtype))
        network = self.initial_network(data, 1, key=key)
        mean = _small_network(network, key=key)
        variance = jax.tree.map(lambda leaf: jnp.full_like(leaf, gamma.noise), network)
        zeros = jnp.zeros_like(ravel_pytree(network)[0])
        factors = PriorFactors(zeros + 1.0 / gamma.noise, zeros, zeros)
        return PbpState(PbpPosterior(mean, variance, gamma), gamma, factors)

    def step(self, state: PbpState, batch: Batch, *, key: PRNGKeyArray) -> tuple[PbpState, Info]:
        """One pass.  The objective is Σ log Z, each row's evidence given the rows before it."""
        order = random_order(batch, key=key)
        rows = batch.X[order], batch.y[order], batch.weight[order] > 0.0
        posterior, log_z = jax.lax.scan(include, state.posterior, rows)
        return refine_prior(PbpState(posterior, state.prior, state.factors)), Info(batch.scale * jnp.sum(log_z))

    def predict(self, state: PbpState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> GaussianPredictive:
        q = state.posterior
        mean, variance = output_moments(q.mean, q.variance, X)
        return GaussianPredictive(mean, variance + q.noise.noise)


def _small_network(network: Network, *, key: PRNGKeyArray) -> Network:
    """Weights and biases from N(0, 1/(I + 1)), in a network's shape."""
    layers = normal_network(network, key=key).layers
    sizes = [layer.weight.shape[0] + 1.0 for layer in layers]
    return Network(
        tuple(jax.tree.map(lambda leaf, size=size: leaf / size**0.5, layer) for layer, size in zip(layers, sizes))
    )


def random_order(batch: Batch, *, key: PRNGKeyArray) -> Int[Array, " B"]:
    """A permutation of the rows, those of weight 0 last; rows that only fill up do not change that of the others."""
    number = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i), dtype=batch.X.dtype))(batch.index)
    return jnp.argsort(jnp.where(batch.weight > 0.0, number, 2.0))


def include(q: PbpPosterior, row: tuple[Any, ...]) -> tuple[PbpPosterior, Float[Array, ""]]:
    """The posterior with the row (x, y, whether it counts), and log Z (section 3).  A weight whose variance would not
    be positive, or a number that would not be finite, stays as it is."""
    x, y, counts = row

    def log_evidence(mean: Any, variance: Any) -> Any:
        m, v = output_moments(mean, variance, x[None])
        return q.noise.log_evidence(y - m[0], v[0]), (y - m[0], v[0])

    evaluate = jax.value_and_grad(log_evidence, (0, 1), has_aux=True)
    (log_z, observation), (of_mean, of_variance) = evaluate(q.mean, q.variance)
    means = jax.tree.map(lambda m, v, g: m + v * g, q.mean, q.variance, of_mean)
    variances = jax.tree.map(lambda v, g, h: v - v**2 * (g**2 - 2.0 * h), q.variance, of_mean, of_variance)
    is_valid = lambda m, v: counts & jnp.isfinite(m) & jnp.isfinite(v) & (v > 0.0)
    valid = jax.tree.map(is_valid, means, variances)
    noise = q.noise.observe(*observation)
    posterior = PbpPosterior(
        jax.tree.map(jnp.where, valid, means, q.mean),
        jax.tree.map(jnp.where, valid, variances, q.variance),
        jax.tree.map(partial(jnp.where, counts & noise.valid), noise, q.noise),
    )
    return posterior, jnp.where(counts, log_z, 0.0)


def refine_prior(state: PbpState) -> PbpState:
    """EP's update of the factor N(w | 0, 1/λ) of every weight, one after another, since they share λ.  The cavity N(m,
    v) of a weight meets the evidence N(m | 0, v + E 1/λ), as a residual of precision λ would."""
    q = state.posterior
    means, unravel = ravel_pytree(q.mean)
    variances, _ = ravel_pytree(q.variance)

    def refine(prior: Any, weight: Any) -> Any:
        m, v, factor = weight
        precision = 1.0 / v - factor.precision
        cavity = Gamma(prior.shape - factor.shape, prior.rate - factor.rate)
        usable = (precision > _FLAT) & cavity.valid
        cavity = jax.tree.map(partial(jnp.where, usable), cavity, prior)
        precision = jnp.where(usable, precision, 1.0)
        new = cavity.observe(m / v / precision, 1.0 / precision)
        # 1/v' = cavity precision + 1 / E_cavity 1/λ, and m'/v' is the cavity's own
        narrowed = 1.0 / (precision + 1.0 / cavity.noise)
        refined = PriorFactors(1.0 / cavity.noise, new.shape - cavity.shape, new.rate - cavity.rate)
        ok = usable & new.valid
        outcomes = (new, (m / v * narrowed, narrowed, refined)), (prior, weight)
        return jax.tree.map(partial(jnp.where, ok), *outcomes)

    prior, (means, variances, factors) = jax.lax.scan(refine, state.prior, (means, variances, state.factors))
    return PbpState(PbpPosterior(unravel(means), unravel(variances), q.noise), prior, factors)
