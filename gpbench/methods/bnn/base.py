"""What neural methods share: the fields that configure a network and its likelihood, and their initial values."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import PRNGKeyArray

from gpbench.core.likelihoods import Likelihood, likelihood_spec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.core.networks import Network, initial_network
from gpbench.methods.base import Batch, Method


class NetworkMethod(Method):
    """A fully connected network with rectified linear units, whose outputs are the latent values of a likelihood."""

    setting_fields: ClassVar[frozenset[str]] = frozenset({"hidden", "batch_size"})

    hidden: tuple[int, ...] = eqx.field(static=True, kw_only=True, default=(50,), converter=tuple)
    """The number of units of each hidden layer; () is a linear model."""
    scaled: bool = eqx.field(static=True, kw_only=True, default=True)
    """Whether the outputs of a layer with I inputs are divided by √(I + 1), so that functions vary as weights do."""
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
