"""Parts of neural methods: a network and its likelihood, mean-field inference, members of an ensemble, chains."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.gaussians import MeanVariance
from gpbench.core.likelihoods import Gaussian, Likelihood
from gpbench.core.networks import MeanField, Network, initial_network, predict_outputs
from gpbench.core.predictive import GaussianPredictive, MixturePredictive, Predictive
from gpbench.core.samplers import Samples, Schedule, agreement, followed, mixture, schedule
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, size_label
from gpbench.methods.parts.gradient import GradientState, SampledMethod
from gpbench.methods.parts.settings import AllRowsMethod, LikelihoodMethod
from gpbench.methods.protocols import State
from gpbench.schema import setting


class NetworkMethod(LikelihoodMethod):
    """A fully connected network with rectified linear units, whose outputs are the latent values of a likelihood."""

    label_fields: ClassVar[frozenset[str]] = frozenset({"hidden", "batch_size"})
    likelihoods: ClassVar[tuple[str, ...] | None] = (
        *("gaussian", "laplace", "student_t", "heteroscedastic", "probit", "logistic", "softmax"),
    )
    """Not robust_max, whose log p(y|f) is constant between jumps: networks learn by its slope, which is 0."""

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
        """The likelihood to start from, where noise other than Gaussian is refused in regression."""
        likelihood = self.initial_likelihood(data)
        if data.task == "regression" and not isinstance(likelihood, Gaussian):
            raise ConfigError(f"{self.name}: method.likelihood must be auto or gaussian in regression")
        return likelihood

    def initial_network(self, data: Batch, outputs: int, *, key: PRNGKeyArray) -> Network:
        """The network to start from, for these rows, with `outputs` outputs."""
        widths = (data.X.shape[1], *self.hidden, outputs)
        return initial_network(widths, scaled=self.scaled, key=key, dtype=data.X.dtype)

    def density(self, position: Any, X: Float[Array, "N D"]) -> Predictive:
        """p(y|x) in every row, of a pytree with a `network` and the `likelihood` of its outputs."""
        return predict_outputs(position.network, position.likelihood, X)


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
        density: Any = lambda key: predict_outputs(q.sample(key=key), likelihood, X)
        components = jax.vmap(density)(jax.random.split(key, self.samples))
        return MixturePredictive(components, jnp.zeros(self.samples, X.dtype))


class Member(eqx.Module):
    """A network, and the likelihood of classes that its outputs are the latent values of; None in regression."""

    network: Network
    likelihood: Likelihood | None


class MemberMethod(NetworkMethod):
    """Networks that are trained alone; in regression each has two outputs, for the mean and the noise of a target."""

    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian", "probit", "logistic", "softmax")

    members: int = setting(5, "count", "Number of networks.")

    def initial_member(self, data: Batch, *, key: PRNGKeyArray) -> Member:
        """A member to start from, with a random network and, in regression, Gaussian noise."""
        likelihood = self.gaussian_likelihood(data)
        if data.task == "regression":
            return Member(self.initial_network(data, 2, key=key), None)
        return Member(self.initial_network(data, likelihood.latents(), key=key), likelihood)

    @abc.abstractmethod
    def noise_variance(self, output: Float[Array, " N"]) -> Float[Array, " N"]:
        """A target's variance, of the second output."""

    def moments(self, member: Member, X: Float[Array, "N D"]) -> MeanVariance:
        """A target's mean and variance under one member."""
        outputs = member.network(X)
        return outputs[:, 0], self.noise_variance(outputs[:, 1])

    def log_prob(self, member: Member, X: Float[Array, "N D"], y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y|x) of one member, in every row."""
        if member.likelihood is not None:
            return member.likelihood.log_prob(member.network(X), y)
        mean, variance = self.moments(member, X)
        return norm.logpdf(y, mean, jnp.sqrt(variance))

    def density(self, position: Member, X: Float[Array, "N D"]) -> Predictive:
        """p(y|x) of one member, in every row."""
        if position.likelihood is not None:
            return super().density(position, X)
        return GaussianPredictive(*self.moments(position, X))


class ChainMethod(AllRowsMethod, NetworkMethod):
    """Samples of networks by Markov chains side by side, whose steps need all rows.  A state has the chains'
    `position`, with a leading axis C, how often each diverged (`divergences`), the number of steps (`count`), and
    `samples` of (position, quantities): (C, Q) log joints and outputs at some training rows."""

    samples: int = setting(
        100,
        "count",
        "Number of networks kept of each chain, spread evenly over the steps, and averaged in a prediction.",
    )

    @property
    def schedule(self) -> Schedule:
        """Schedule of the states that are kept.  Raises ConfigError where none is."""
        return schedule(self.steps, self.samples)

    def extend(self, state: State, position: Any, log_joints: Float[Array, " C"], data: Batch) -> Samples:
        """The samples after the next step, which ends at these positions."""
        quantities = followed(position.network, log_joints, data.X)
        return state.samples.extend((position, quantities), self.schedule.keeps(state.count + 1))

    def mean_log_joint(self, log_joints: Float[Array, " C"], divergences: Int[Array, " C"]) -> Float[Array, ""]:
        """The objective, the chains' mean; NaN once as many transitions of a chain diverged as a run has steps."""
        return jnp.where(jnp.any(divergences >= self.steps), jnp.nan, jnp.mean(log_joints))

    def predict(self, state: State, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        """The mixture over all chains' samples."""
        empty = jnp.zeros_like(state.samples.values[1][0])
        positions, quantities = state.samples.or_current((state.position, empty))
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), positions)
        log_weights = jnp.repeat(state.samples.log_weights(X.dtype), quantities.shape[1])
        return mixture(lambda position: self.density(position, X), flat, log_weights)

    def diagnostics(self, state: State) -> dict[str, Array]:
        """How far the chains agree (`gpbench.core.samplers.agreement`), and the `divergences` of all of them."""
        quantities = Samples(state.samples.values[1], state.samples.count)
        return agreement(quantities, self.name) | {"divergences": jnp.sum(state.divergences)}

    def diagnose(self, state: State) -> str:
        worst, total, count = int(jnp.max(state.divergences)), int(jnp.sum(state.divergences)), int(state.count)
        if worst < max(1, count):
            return ""
        return f"every transition of a chain diverged ({total} of {count * len(state.divergences)} of all chains)"


def no_samples(position: Any, log_joints: Float[Array, " C"], data: Batch, size: int) -> Samples:
    """Room for `size` samples of chains at these positions."""
    return Samples.empty((position, followed(position.network, log_joints, data.X)), size)


def minibatch(data: Batch, size: int, *, key: PRNGKeyArray) -> Batch:
    """`size` of the rows that count, drawn with replacement."""
    index = jax.random.randint(key, (size,), 0, data.total)
    return Batch(data.X[index], data.y[index], index, jnp.ones(size, data.X.dtype), data.total, data.classes)
