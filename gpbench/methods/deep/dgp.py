"""`dgp`: deep Gaussian processes by approximate EP with a tied factor, and probabilistic backpropagation.

Bui, Hernández-Lobato, Li, Hernández-Lobato and Turner, ICML 2016, the paper `aep_dgp`.  Every unit's whitened inducing
outputs w have q(w) = N(0, I) g(w)^N with one Gaussian factor g that stands for a row, and the cavity N(0, I) g^(N-1).
The energy (its section 4.2) is F = (1 - N) φ(q) + N φ(cavity) + Σ log Zₙ, φ the log normaliser; log Zₙ is the
likelihood's, under the moments of the output that the cavities of all layers give.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Natural, Normal
from gpbench.core.kernels import SquaredExponential, require
from gpbench.core.likelihoods import Likelihood
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.core.predictive import Mixture, Predictive
from gpbench.core.psi import Moments, psi1, psi2_cross_sum, psi2_sum
from gpbench.core.quadrature import gaussian_points, require_points
from gpbench.methods.base import Batch
from gpbench.methods.deep_layers import DeepLayer, DeepMethod, diagnose, moments_at, of_output
from gpbench.methods.gradient import GradientMethod, GradientState

_LEAST_VARIANCE = 1e-8
"""Of an output, relative to the kernel's amplitude: rounding can make a variance negative."""


class Factors(eqx.Module):
    """g(w)^N of every unit of a layer: precision R Rᵀ with R = tril(root), and shift."""

    shift: Float[Array, "P M"]
    root: Float[Array, "P M M"]

    def posterior(self, share: float = 1.0) -> tuple[Normal, Float[Array, " P"]]:
        """N(0, I) g^(share N) of every unit: normalised, with a leading axis P, and its log normaliser φ.

        φ is ½ shiftᵀ mean - ½ log|precision|, but for a constant.  The share is 1 for q, and 1 - 1/N for the cavity.
        """

        def unit(shift, root):
            R = jnp.tril(root)
            factor = Natural(share * R @ R.T, share * shift)
            q = factor.posterior()
            return q, 0.5 * factor.shift @ q.mean - 0.5 * log_determinant(q.root)

        return jax.vmap(unit)(self.shift, self.root)


class Parameters(eqx.Module):
    """What the energy is a function of."""

    layers: tuple[DeepLayer, ...]
    factors: tuple[Factors, ...]
    likelihood: Likelihood


class DGP(DeepMethod, GradientMethod):
    """Configuration of `dgp`; see the module's docstring.  `hidden=[]` is the tied-factor model of one layer."""

    hidden_covariance: Literal["diagonal", "full"] = eqx.field(static=True, kw_only=True, default="diagonal")
    """Between the units of a hidden layer: none, or that of appendix G; of use from the second hidden layer on."""
    predictive: Literal["moments", "sample"] = eqx.field(static=True, kw_only=True, default="moments")
    """One normal distribution of the output, or a mixture over `samples` paths through the hidden layers."""
    samples: int = eqx.field(static=True, kw_only=True, default=64)
    """How many paths a sampled prediction has."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        require(self.kernel, SquaredExponential, f"{self.name} (psi statistics)")
        if self.predictive == "sample" and self.hidden:
            require_points("method.samples", self.samples, sum(self.hidden))
        likelihood = self.initial_likelihood(data)
        layers = self.initial_layers(data, likelihood.latents(), key=key)
        keys = jax.random.split(jax.random.fold_in(key, 1), len(layers))
        factors = tuple(_initial_factors(layer, key) for layer, key in zip(layers, keys))
        return Parameters(layers, factors, likelihood)

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        return -self.energy(parameters, batch), None

    def energy(self, parameters: Parameters, batch: Batch) -> Float[Array, ""]:
        """F of section 4.2, or an unbiased estimate of it from a minibatch, in nats; larger is better."""
        n = batch.total
        value, cavities = jnp.zeros((), batch.X.dtype), []
        for factors in parameters.factors:
            (_, phi), (cavity, phi_cavity) = factors.posterior(), factors.posterior(1.0 - 1.0 / n)
            value += jnp.sum((1 - n) * phi + n * phi_cavity)
            cavities.append(cavity)
        mean, variance = self._output(parameters, cavities, batch.X)
        log_z = parameters.likelihood.log_normaliser(mean, variance, batch.y)
        return value + batch.scale * jnp.sum(batch.weight * log_z)

    def _output(self, parameters: Parameters, q: list[Normal], X: Float[Array, "N D"]):
        """Mean and variance of the output, each (N,) or (N, P), by moment matching layer after layer (section 5)."""
        first, *others = parameters.layers
        h = moments_at(first, q[0], X)
        for depth, layer in enumerate(others, start=1):
            is_full = self.hidden_covariance == "full" and depth < len(others)
            h = propagate(layer, q[depth], h, full=is_full)
        return of_output(h)

    def posteriors(self, parameters: Parameters) -> list[Normal]:
        """q(w) of every layer, with a leading axis P."""
        return [factors.posterior()[0] for factors in parameters.factors]

    def objective(self, state: GradientState, data: Batch) -> Float[Array, ""]:
        return self.energy(state.parameters, data)

    def predict(self, state: GradientState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        parameters = state.parameters
        q, likelihood = self.posteriors(parameters), parameters.likelihood
        if self.predictive == "moments" or not self.hidden:
            return likelihood.predictive(*self._output(parameters, q, X))
        points = jnp.asarray(gaussian_points(self.samples, sum(self.hidden)), X.dtype)

        def along(noise: Float[Array, " H"]) -> Predictive:
            values = X
            for layer, q_layer, e in zip(parameters.layers, q, jnp.split(noise, np.cumsum(self.hidden)[:-1])):
                h = moments_at(layer, q_layer, values)
                values = h.mean + jnp.sqrt(h.cov) * e
            return likelihood.predictive(*of_output(moments_at(parameters.layers[-1], q[-1], values)))

        return Mixture(jax.vmap(along)(points), jnp.zeros(self.samples, X.dtype))

    def arrays(self, state: GradientState) -> dict[str, Array]:
        return {"inducing": state.parameters.layers[0].Z[0]}

    def diagnose(self, state: GradientState) -> str:
        return diagnose(state.parameters.layers)


def propagate(layer: DeepLayer, q: Normal, h: Moments, *, full: bool = False) -> Moments:
    """Moments of every unit, noise included, at inputs with the moments `h` (section 5; with `full`, appendix G).

    With the weights α = Kzz⁻¹ E u and B = Kzz⁻¹ (cov u - Kzz) Kzz⁻¹ of a unit, its mean is ψ1 α and its variance
    ψ0 + Σ (B + ααᵀ) ψ2 - mean² + noise.
    """
    kernel = layer.kernel
    assert isinstance(kernel, SquaredExponential)

    def weights(Z, q):
        A = inverse_cholesky(layer.unit(Z).gram())
        RA, alpha = jnp.tril(q.root) @ A, A.T @ q.mean
        return alpha, RA.T @ RA - A.T @ A + jnp.outer(alpha, alpha)

    alphas, Ws = jax.vmap(weights)(layer.Z, q)
    mean = jax.vmap(lambda Z, alpha: psi1(kernel, Z, h) @ alpha, out_axes=1)(layer.Z, alphas)
    second = jax.vmap(lambda Z, W: psi2_sum(kernel, Z, h, W), out_axes=1)(layer.Z, Ws)
    variance = jnp.maximum(kernel.amplitude + second - mean**2, _LEAST_VARIANCE * kernel.amplitude) + layer.noise
    if not full or layer.units == 1:
        return Moments(mean, variance)
    columns = []
    for a in range(layer.units):
        between = [
            variance[:, a] if a == b else
            psi2_cross_sum(kernel, layer.Z[a], layer.Z[b], h, jnp.outer(alphas[a], alphas[b])) - mean[:, a] * mean[:, b]
            for b in range(layer.units)
        ]  # fmt: skip
        columns.append(jnp.stack(between, axis=1))
    return Moments(mean, jnp.stack(columns, axis=2))


def _initial_factors(layer: DeepLayer, key: PRNGKeyArray) -> Factors:
    """Factors with which a hidden layer's q is a random function of the prior, and the last one's nearly the prior."""
    units, m, _ = layer.Z.shape
    is_hidden = layer.log_noise is not None
    precision, spread = (100.0, 1.0) if is_hidden else (1.0, 0.1)
    draw = spread * jax.random.normal(key, (units, m), layer.Z.dtype)
    eye = jnp.eye(m, dtype=layer.Z.dtype)
    return Factors((1.0 + precision) * draw, jnp.broadcast_to(jnp.sqrt(precision) * eye, (units, m, m)))
