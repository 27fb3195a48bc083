"""Shared fields of the neural methods, which configure a network and its likelihood, and mean-field inference."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.likelihoods import Gaussian, Likelihood
from gpbench.core.networks import MeanField, Network, initial_network, predict_outputs
from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, size_label
from gpbench.methods.parts.gradient import GradientState, SampledMethod
from gpbench.methods.parts.settings import LikelihoodMethod
from gpbench.schema import setting


class NetworkMethod(LikelihoodMethod):
    """A fully connected network with rectified linear units, whose outputs are the latent values of a likelihood."""

    label_fields: ClassVar[frozenset[str]] = frozenset({"hidden", "batch_size"})

    hidden: tuple[int, ...] = setting(
        (50,), "list of count", "Number of units of each hidden layer; []: a linear model.", converter=tuple
    )
    scaled: bool = setting(
        True,
        "flag",
        "Division of the outputs of a layer with I inputs by √(I + 1), so that their variance does not grow with I.",
    )

    @property
    def label(self) -> str:
        return size_label(self, f"hidden=[{','.join(map(str, self.hidden))}]")

    def gaussian_likelihood(self, data: Batch) -> Likelihood:
        """The likelihood to start from, where noise other than Gaussian is refused in regression.

        Raises:
            ConfigError: for a likelihood that does not fit the task, and for other noise.
        """
        likelihood = self.initial_likelihood(data)
        if data.task == "regression" and not isinstance(likelihood, Gaussian):
            raise ConfigError(f"{self.name}: method.likelihood must be auto or gaussian in regression")
        return likelihood

    def initial_network(self, data: Batch, outputs: int, *, key: PRNGKeyArray) -> Network:
        """The network to start from, for these rows, with `outputs` outputs."""
        widths = (data.X.shape[1], *self.hidden, outputs)
        return initial_network(widths, scaled=self.scaled, key=key, dtype=data.X.dtype)


class MeanFieldParameters(eqx.Module):
    """q and the likelihood, which mean-field variational inference optimises together."""

    q: MeanField
    likelihood: Likelihood


class MeanFieldMethod(NetworkMethod, SampledMethod):
    """Variational inference with independent normal weights; a subclass has the loss or its gradient."""

    sample_weights: ClassVar[bool] = True

    initial_std: float = setting(0.05, "positive", "Standard deviation of every weight under the initial q.")
    draws: int = setting(1, "count", "Number of samples of q in a step.")
    samples: int = setting(100, "count", "Number of networks that a prediction averages.")

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> MeanFieldParameters:
        likelihood = self.initial_likelihood(data)
        mean = self.initial_network(data, likelihood.latents(), key=key)
        return MeanFieldParameters(MeanField.around(mean, self.initial_std), likelihood)

    def predict(
        self, state: GradientState[MeanFieldParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray
    ) -> Predictive:
        """The average of p(y|f) over networks from q, the same for all rows."""
        q, likelihood = state.parameters.q, state.parameters.likelihood

        def density(key: PRNGKeyArray) -> Any:
            return predict_outputs(q.sample(key=key), likelihood, X)

        components = jax.vmap(density)(jax.random.split(key, self.samples))
        return MixturePredictive(components, jnp.zeros(self.samples, X.dtype))
