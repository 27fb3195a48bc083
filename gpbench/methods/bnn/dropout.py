"""`dropout`: networks trained and used with dropout (Gal and Ghahramani, ICML 2016).

Dropout stands before every layer of weights, that of the inputs included, as in their experiments' program.  Their loss
(equation 1) is (1/N) Σ ½ (y - f(x))² + λ |w|² over all weights and biases w, and λ = l² (1 - p) / (2 N τ) for the rate
p, the prior's lengthscale l and the noise's precision τ.  Here it is N τ times that, and the constants of the normal
density: -Σ log N(y | f(x), 1/τ) + ½ l² (1 - p) |w|².
As in their program, kept inputs are divided by 1 - p while λ is that of masks of 0 and 1.

Other than in their program, τ is that of the scaled targets, biases decay too, and a sample of a prediction has the
same mask for all rows.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.networks import Network, as_latents
from gpbench.core.predictive import GaussianPredictive, MixturePredictive, Predictive
from gpbench.methods.base import Batch
from gpbench.methods.bnn.base import NetworkMethod
from gpbench.methods.parts.gradient import GradientState, SampledMethod
from gpbench.schema import setting


class _DropoutParameters(eqx.Module):
    """The network, which the optimiser moves; and rate and precision, arrays so that one program serves all values."""

    network: Network
    rate: Float[Array, ""]
    noise_precision: Float[Array, ""]


class Dropout(NetworkMethod, SampledMethod):
    """A network with dropout in training and prediction (Gal and Ghahramani 2016): `dropout`."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian",)
    searchable: ClassVar[tuple[str, ...]] = ("dropout", "noise_precision")
    carries_over: ClassVar[bool] = True

    dropout: float = setting(0.05, "below_one", "Dropout rate: the probability that an input of a layer is set to 0.")
    noise_precision: float = setting(
        10.0, "positive", "Precision of the noise: 1 / noise variance of the scaled targets."
    )
    prior_lengthscale: float = setting(
        0.01, "nonnegative", "Prior lengthscale l of Gal and Ghahramani (2016), which sets the weight decay."
    )
    samples: int = setting(100, "count", "Number of masks that a prediction averages.")

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> _DropoutParameters:
        values = (jnp.asarray(value, data.X.dtype) for value in (self.dropout, self.noise_precision))
        return _DropoutParameters(self.initial_network(data, 1, key=key), *values)

    def with_settings(
        self, state: GradientState[_DropoutParameters], settings: Mapping[str, float]
    ) -> GradientState[_DropoutParameters]:
        """An initial state with another `dropout` or `noise_precision`."""
        values = {**self.settings(state), **settings}
        rates = [jnp.asarray(values[name], state.parameters.rate.dtype) for name in ("dropout", "noise_precision")]
        return eqx.tree_at(lambda s: (s.parameters.rate, s.parameters.noise_precision), state, tuple(rates))

    def settings(self, state: GradientState[_DropoutParameters]) -> dict[str, Array]:
        return {"dropout": state.parameters.rate, "noise_precision": state.parameters.noise_precision}

    def trainable(self, parameters: _DropoutParameters) -> Network:
        return parameters.network

    def loss(self, parameters: _DropoutParameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        """-Σ log N(y | f(x), 1/τ) + ½ l² (1 - p) |w|², every row with masks of its own."""
        f = _masked_outputs(parameters, batch.X, shared=False, key=key)
        fit = batch.sum(norm.logpdf(batch.y, f, parameters.noise_precision**-0.5))
        size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(parameters.network))
        # N τ λ = ½ l² (1 - p)
        return 0.5 * self.prior_lengthscale**2 * (1.0 - parameters.rate) * size - fit, None

    def predict(
        self, state: GradientState[_DropoutParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray
    ) -> Predictive:
        """The average of N(f(x), 1/τ) over masks, the same for all rows."""
        parameters = state.parameters

        def density(key: PRNGKeyArray) -> Any:
            f = _masked_outputs(parameters, X, shared=True, key=key)
            return GaussianPredictive(f, jnp.full_like(f, 1.0 / parameters.noise_precision))

        components = jax.vmap(density)(jax.random.split(key, self.samples))
        return MixturePredictive(components, jnp.zeros(self.samples, X.dtype))


def _masked_outputs(
    parameters: _DropoutParameters, X: Float[Array, "N D"], *, shared: bool, key: PRNGKeyArray
) -> Float[Array, " N"]:
    """f(x) where every input of a layer is 0 with probability p, or else divided by 1 - p.  `shared`: the rows have the
    same masks; otherwise each has its own."""
    keys = jax.random.split(key, len(parameters.network.layers))
    for depth, (layer, key) in enumerate(zip(parameters.network.layers, keys)):
        X = jax.nn.relu(X) if depth else X
        keep = 1.0 - parameters.rate
        mask = jax.random.bernoulli(key, keep, X.shape[1:] if shared else X.shape)
        X = layer(jnp.where(mask, X / keep, 0.0))
    return as_latents(X)
