"""`dgp`: deep Gaussian processes by approximate EP with a tied factor, and probabilistic backpropagation.

Bui, Hernández-Lobato, Li, Hernández-Lobato and Turner, ICML 2016, the paper `aep_dgp`.  Every unit's whitened inducing
outputs w have q(w) = N(0, I) g(w)^N with one Gaussian factor g that stands for a row, and the cavity N(0, I) g^(N-1).
The energy (its section 4.2) is F = (1 - N) φ(q) + N φ(cavity) + Σ log Zₙ, φ the log normaliser; log Zₙ is the
likelihood's, under the moments of the output that the cavities of all layers give.  With a power α (Bui, Yan and
Turner, JMLR 2017) N becomes N/α, the cavity N(0, I) g^(N-α), and log Zₙ that of p(y|f)^α, divided by α.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Normal
from gpbench.core.kernels import SquaredExponential, require_family
from gpbench.core.likelihoods import Likelihood
from gpbench.core.mapping import sum_in_blocks
from gpbench.core.predictive import Predictive
from gpbench.errors import refuse
from gpbench.methods.base import Batch
from gpbench.methods.parts.deep_factors import FACTORS, Factors, NaturalFactors
from gpbench.methods.parts.deep_layers import DeepLayer, DeepMethod, LayerPosterior, of_output
from gpbench.methods.parts.deep_moments import Projection, average_factors, propagate
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.parts.stopping import StopMethod
from gpbench.schema import setting

_BLOCK = 256  # number of rows whose log Z is computed at a time: their ψ2 sums take 10 MB with M = 100


class _DgpParameters(eqx.Module):
    """Arguments of the energy."""

    layers: tuple[DeepLayer, ...]
    factors: tuple[Factors, ...]
    likelihood: Likelihood


class DGP(DeepMethod, StopMethod):
    """A deep Gaussian process by approximate EP with tied factors (Bui et al. 2016): `dgp`.  `hidden=[]` is the
    tied-factor model of one layer."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression", "count", "binary", "multiclass"})
    kernels: ClassVar[tuple[str, ...] | None] = ("squared_exponential",)

    alpha: float = setting(
        1.0, "fraction", "Power α: 1 is the paper's energy, and towards 0 it becomes a variational bound."
    )
    energy: str = setting(
        "aep",
        ["aep", "sep"],
        "Update of the tied factors: by gradients of the energy, or by stochastic EP, which leaves the rest to "
        "the gradients.",
    )
    damping: float = setting(
        0.1, "fraction", "Step size of stochastic EP (energy=sep), relative to the batch's share of the rows."
    )
    hidden_covariance: str = setting(
        "diagonal",
        ["diagonal", "full"],
        "Covariance between the units of a hidden layer: none, or that of the paper's appendix G.",
    )
    hidden_start: str = setting(
        "fill", ["fill", "line"], "Initial inducing points of later layers: spread over [-1, 1]^D, or on its diagonal."
    )
    factors: str = setting(
        "whitened",
        ["whitened", "outputs"],
        "Variables of the tied factors: the whitened inducing outputs w, or the inducing outputs u themselves.",
    )
    predictive: str = setting(
        "moments",
        ["moments", "sample"],
        "Predictive distribution of the output: one normal, or a mixture over `samples` paths through the hidden "
        "layers.",
    )

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> _DgpParameters:
        if self.energy == "sep":
            refuse(
                "method.energy=sep needs ",
                (self.alpha != 1, f"method.alpha=1, not {self.alpha:g}: it is EP with the power 1"),
                (self.optimiser is None, "a method.optimiser: L-BFGS has no steps of stochastic EP"),
            )
        require_family(self.kernel, SquaredExponential, f"{self.name} (psi statistics)")
        if self.predictive == "sample":
            self.require_paths(data)
        likelihood = self.initial_likelihood(data)
        layers = self.initial_layers(data, likelihood.latents(), hidden_start=self.hidden_start, key=key)
        keys = jax.random.split(jax.random.fold_in(key, 1), len(layers))
        initial = (NaturalFactors if self.energy == "sep" else FACTORS[self.factors]).initial
        factors = tuple(initial(layer, depth, key=key) for depth, (layer, key) in enumerate(zip(layers, keys)))
        return _DgpParameters(layers, factors, likelihood)

    def loss(self, parameters: _DgpParameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        return -self.tied_energy(parameters, batch) - self.log_prior(parameters.layers), None

    def trainable(self, parameters: _DgpParameters) -> Any:
        return (parameters.layers, parameters.likelihood) if self.energy == "sep" else parameters

    def update(self, parameters: _DgpParameters, variables: Any, batch: Batch) -> tuple[_DgpParameters, Any]:
        """A damped step of the tied factors to the average of those that the rows imply, with `energy=sep`."""
        if self.energy == "aep":
            return parameters, variables
        n = batch.total
        As = [layer.whitening() for layer in parameters.layers]
        shares = zip(parameters.layers, parameters.factors, As)
        cavities = [factors.posterior(layer, A, 1.0 - 1.0 / n)[0] for layer, factors, A in shares]

        def log_z(cavities: list[Normal], x: Float[Array, "1 D"], y: Float[Array, " 1"]) -> Float[Array, ""]:
            layers = [LayerPosterior(layer, q, A) for layer, q, A in zip(parameters.layers, cavities, As)]
            mean, variance = self._output(*_maps(layers), x)
            return parameters.likelihood.log_normaliser(mean, variance, y)[0]

        rate = self.damping * jnp.minimum(1.0, jnp.sum(batch.weight) / n)
        targets = average_factors(log_z, cavities, batch)
        factors = tuple(old.towards(new, rate) for old, new in zip(parameters.factors, targets))
        return eqx.tree_at(lambda p: p.factors, parameters, factors), variables

    def tied_energy(self, parameters: _DgpParameters, batch: Batch) -> Float[Array, ""]:
        """F of section 4.2, or an unbiased estimate of it from a minibatch, in nats; larger is better."""
        n, alpha = batch.total, self.alpha
        value, cavities = jnp.zeros((), batch.X.dtype), []
        for layer, factors in zip(parameters.layers, parameters.factors):
            A = layer.whitening()
            (_, phi), (cavity, phi_cavity) = factors.posterior(layer, A), factors.posterior(layer, A, 1.0 - alpha / n)
            value += jnp.sum((1 - n / alpha) * phi + n / alpha * phi_cavity)
            cavities.append(LayerPosterior(layer, cavity, A))

        def log_normalisers(shared: Any, block: Any) -> Any:
            (first, others, likelihood), ((X, y), weight) = shared, block
            return jnp.sum(weight * likelihood.log_normaliser(*self._output(first, others, X), y, alpha=alpha)) / alpha

        shared = (*_maps(cavities), parameters.likelihood)
        return value + batch.scale * sum_in_blocks(log_normalisers, shared, (batch.X, batch.y), batch.weight, _BLOCK)

    def _output(self, first: LayerPosterior, others: tuple[Projection, ...], X: Float[Array, "N D"]) -> Any:
        """Mean and variance of the output, each (N,) or (N, P), by moment matching layer after layer (section 5)."""
        h = first.moments_at(X)
        for depth, projection in enumerate(others, start=1):
            h = propagate(projection, h, full=self.hidden_covariance == "full" and depth < len(others))
        return of_output(h)

    def posteriors(self, parameters: _DgpParameters) -> list[LayerPosterior]:
        posteriors = []
        for layer, factors in zip(parameters.layers, parameters.factors):
            A = layer.whitening()
            posteriors.append(LayerPosterior(layer, factors.posterior(layer, A)[0], A))
        return posteriors

    def objective(self, state: GradientState[_DgpParameters], data: Batch) -> Float[Array, ""]:
        return self.tied_energy(state.parameters, data) + self.log_prior(state.parameters.layers)

    def predict(self, state: GradientState[_DgpParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        parameters = state.parameters
        layers, likelihood = self.posteriors(parameters), parameters.likelihood
        if self.predictive == "moments" or not self.hidden:
            return likelihood.predictive(*self._output(*_maps(layers), X))

        def along(noise: Float[Array, " H"]) -> Predictive:
            values = X
            for layer, e in zip(layers, jnp.split(noise, np.cumsum(self.widths(X))[:-1])):
                h = layer.moments_at(values)
                values = h.mean + jnp.sqrt(h.cov) * e
            return likelihood.predictive(*of_output(layers[-1].moments_at(values)))

        return self.average_paths(along, X)


def _maps(layers: list[LayerPosterior]) -> tuple[LayerPosterior, tuple[Projection, ...]]:
    """The first layer, which maps rows, and the projections of the others, which map moments."""
    first, *others = layers
    return first, tuple(Projection.create(posterior) for posterior in others)
