"""Shared fields of the neural methods, which configure a network and its likelihood, and mean-field inference."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.likelihoods import Likelihood, likelihood_spec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.core.networks import MeanField, Network, initial_network
from gpbench.core.predictive import MixturePredictive, Predictive
from gpbench.methods.base import Batch, Method
from gpbench.methods.parts.gradient import GradientMethod, GradientState


class NetworkMethod(Method):
    """A fully connected network with rectified linear units, whose outputs are the latent values of a likelihood."""

    setting_fields: ClassVar[frozenset[str]] = frozenset({"hidden", "batch_size"})

    hidden: tuple[int, ...] = eqx.field(static=True, kw_only=True, default=(50,), converter=tuple)
    """The number of units of each hidden layer; () is a linear model."""
    scaled: bool = eqx.field(static=True, kw_only=True, default=True)
    """Whether outputs of a layer with I inputs are divided by √(I + 1), so that their variance does not grow with I."""
    likelihood: LikelihoodSpec = eqx.field(static=True, kw_only=True, default="auto", converter=likelihood_spec)
    """p(y|f): see `gpbench.core.likelihoods.likelihood_spec`; "auto" is gaussian, probit or softmax by the task."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """Initial noise variance of the scaled targets, in regression."""
    noise_floor: float = eqx.field(static=True, kw_only=True, default=0.0)
    """The least noise variance that training may reach in regression, in units of the scaled targets' variance."""

    @property
    def setting(self) -> str:
        widths = f"hidden=[{','.join(map(str, self.hidden))}]"
        return f"{widths}, batch={self.batch_size}" if self.batch_size else widths

    def initial_likelihood(self, data: Batch) -> Likelihood:
        """The likelihood to start from.  Raises ConfigError where it does not fit the task."""
        noise = {"noise": self.target_noise, "floor": self.noise_floor}
        return self.likelihood.initial(data.task, data.classes, **noise, dtype=data.X.dtype)

    def initial_network(self, data: Batch, outputs: int, *, key: PRNGKeyArray) -> Network:
        """The network to start from, for these rows, with `outputs` outputs."""
        widths = (data.X.shape[1], *self.hidden, outputs)
        return initial_network(widths, scaled=self.scaled, key=key, dtype=data.X.dtype)


class Parameters(eqx.Module):
    """q and the likelihood, which mean-field variational inference optimises together."""

    q: MeanField
    likelihood: Likelihood


class MeanFieldMethod(NetworkMethod, GradientMethod):
    """Variational inference with independent normal weights; a subclass has the loss or its gradient."""

    sampled: ClassVar[bool] = True

    initial_std: float = eqx.field(static=True, kw_only=True, default=0.05)
    """Of every weight under the initial q."""
    draws: int = eqx.field(static=True, kw_only=True, default=1)
    """Samples of q in a step."""
    samples: int = eqx.field(static=True, kw_only=True, default=100)
    """How many networks a prediction averages."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        likelihood = self.initial_likelihood(data)
        mean = self.initial_network(data, likelihood.latents(), key=key)
        return Parameters(MeanField.around(mean, self.initial_std), likelihood)

    def predict(self, state: GradientState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        """The average of p(y|f) over networks from q, the same for all rows."""
        q, likelihood = state.parameters.q, state.parameters.likelihood

        def density(key):
            outputs = q.sample(key=key)(X)
            return likelihood.predictive(outputs, jnp.zeros_like(outputs))

        components = jax.vmap(density)(jax.random.split(key, self.samples))
        return MixturePredictive(components, jnp.zeros(self.samples, X.dtype))
