"""`ensemble`: deep ensembles, networks trained alone from random starts, whose predictions are averaged.

Lakshminarayanan, Pritzel and Blundell (NIPS 2017).  In regression a network has two outputs, the mean and the variance
of a target, and its loss is the Gaussian negative log-likelihood (eq. 1); for classes it is that of the likelihood.
Deviations: all members see the same minibatches, so that random starts alone make them differ, where each member of the
paper's also has an order of rows of its own; and a run may choose when training stops, after 40 epochs in the paper.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.predictive import GaussianPredictive, MixturePredictive, Predictive
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import Member, MemberMethod
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.parts.stopping import StopMethod
from gpbench.schema import setting


class _EnsembleParameters(eqx.Module):
    """The members, stacked along a first axis; and the range of every input over the training rows."""

    members: Member
    ranges: Float[Array, " D"]


class Ensemble(MemberMethod, StopMethod):
    """A deep ensemble of networks (Lakshminarayanan, Pritzel and Blundell 2017): `ensemble`."""

    noise_floor: float = setting(
        1e-6, "nonnegative", "Variance added to every predicted variance, in units of the scaled targets' variance."
    )
    adversarial: float = setting(
        0.0,
        "nonnegative",
        "Step size of adversarial training as a fraction of each input's range, 0.01 in the paper; 0: no "
        "adversarial training.",
    )
    pooling: str = setting(
        "moments",
        ["moments", "mixture"],
        "Predictive distribution in regression: the Gaussian with the mixture's mean and variance, as in the "
        "paper, or the mixture.",
    )

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> _EnsembleParameters:
        counts = data.weight[:, None] > 0.0
        high = jnp.max(jnp.where(counts, data.X, -jnp.inf), axis=0)
        low = jnp.min(jnp.where(counts, data.X, jnp.inf), axis=0)
        stacked = [self.initial_member(data, key=member_key) for member_key in jax.random.split(key, self.members)]
        members = jax.tree.map(lambda *leaves: jnp.stack(leaves), *stacked)
        return _EnsembleParameters(members, high - low)

    def step(
        self, state: GradientState[_EnsembleParameters], batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[GradientState[_EnsembleParameters], Info]:
        """One step of every member; none once training has stopped.  The objective is the members' mean, in nats."""
        moved, info = super().step(state, batch, key=key)
        return moved, Info(info.objective / self.members)

    def trainable(self, parameters: _EnsembleParameters) -> Any:
        return parameters.members

    def loss(
        self, parameters: _EnsembleParameters, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], None]:
        """The sum over members, whose gradient is each one's own: an elementwise optimiser trains each alone."""

        def total(X: Any, member: Any) -> Any:
            return jnp.sum(batch.weight * self.log_prob(member, X, batch.y))

        def loss_of(member: Any) -> Any:
            value = total(batch.X, member)
            if self.adversarial:  # algorithm 1: also at the inputs that the sign of the gradient makes less likely
                worse = -self.adversarial * parameters.ranges * jnp.sign(jax.grad(total)(batch.X, member))
                value = value + total(jax.lax.stop_gradient(batch.X + worse), member)
            return -batch.scale * value

        return jnp.sum(jax.vmap(loss_of)(parameters.members)), None

    def noise_variance(self, output: Float[Array, " N"]) -> Float[Array, " N"]:
        """The output becomes positive by log(1 + e^x)."""
        return jax.nn.softplus(output) + self.noise_floor

    def predict(
        self, state: GradientState[_EnsembleParameters], X: Float[Array, "N D"], *, key: PRNGKeyArray
    ) -> Predictive:
        members = state.parameters.members
        components = jax.vmap(lambda member: self.density(member, X))(members)
        mixture = MixturePredictive(components, jnp.zeros(self.members, X.dtype))
        if members.likelihood is None and self.pooling == "moments":
            return GaussianPredictive(**mixture.summary())
        return mixture
