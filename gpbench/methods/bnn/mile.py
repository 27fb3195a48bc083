"""`mile`: microcanonical Langevin ensembles, chains that start from the members of a deep ensemble.

Sommer, Robnik, Nozadze, Seljak and Rügamer (ICLR 2025).  Networks are trained alone from random starts, and from each
goes a chain of microcanonical Langevin Monte Carlo, which is tuned and then sampled; all chains' samples are averaged.
As there, weights have the prior N(0, 1), a network of regression has two outputs, the mean of a target and the
logarithm of its standard deviation, and of the tuner's steps 80 % find the step size, 10 % the size of the posterior
and 10 % the autocorrelation, without preconditioning.  `init` trains and tunes, and a step is one of every chain.

Ours, where their program does otherwise or where we do not know: members are trained by the optimiser of all networks,
on the log joint that is then sampled, where they have AdamW and stop early by validation rows; the variance of the
energy error, by which the tuner sets the step size, has one value, where theirs falls from 0.5 to 0.1 for each
dimension; outputs of layers may be divided by √(I + 1) (`scaled`); and numbers of steps, members and units are smaller
(theirs: 12 members, 50,000 steps of tuning and 10,000 of sampling).

Nothing is rejected, so that samples have a bias: `energy_variance`, among a run's diagnostics, is what controls it.  On
normal densities of 10 dimensions the variances of a tuned chain are too small by 10 to 13 % in the mean where it is
0.1, the default; where the true ones lie between 0.1 and 10, single ones were wrong by 80 % in either direction.  The
default and the numbers of steps were chosen on validation rows, a fifth of the training rows of split 0 of yacht and
boston; 2 chains predicted as well as 4, so that there are 5, as in `ensemble`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.mapping import map_members
from gpbench.core.networks import log_standard_normal
from gpbench.core.samplers import Chain, Microcanonical, Samples, Scales, blackjax
from gpbench.methods.base import Batch, Info
from gpbench.methods.bnn.base import ChainMethod, Member, MemberMethod, minibatch, no_samples
from gpbench.schema import setting


class MileState(eqx.Module):
    """The chains, with a leading axis C, their scales, the sums of the squares of their energy errors, divergences."""

    chain: Chain
    scales: Scales
    energy: Float[Array, " C"]
    divergences: Int[Array, " C"]
    samples: Samples
    count: Int[Array, ""]

    @property
    def position(self) -> Member:
        """The members at which the chains are."""
        return self.chain.position


class MILE(ChainMethod, MemberMethod):
    """A microcanonical Langevin ensemble (Sommer, Robnik, Nozadze, Seljak and Rügamer 2025): `mile`."""

    members: int = setting(5, "count", "Number of networks that are trained, and of chains.")
    optimiser: optax.GradientTransformation = setting(
        range="optimiser", meaning="Optimiser of the networks that the chains start from."
    )
    start_steps: int = setting(10000, "count", "Number of the optimiser's steps of every network.")
    minibatch: int = setting(100, "count", "Number of rows in each of these, drawn with replacement.")
    tuning: int = setting(4000, "count", "Number of steps of every chain that find its scales, before the first step.")
    energy_variance: float = setting(
        0.1, "positive", "Variance of a step's energy error, for each dimension, to which the tuner sets the step size."
    )

    def init(self, data: Batch, *, key: PRNGKeyArray) -> MileState:
        blackjax(self.name)  # fails early where it is not installed
        self.gaussian_likelihood(data)  # raises ConfigError where it does not fit
        return start(self, data, self.schedule.size, key=key)

    def noise_variance(self, output: Float[Array, " N"]) -> Float[Array, " N"]:
        """The output is the logarithm of a standard deviation."""
        return jnp.exp(2.0 * output) + self.noise_floor

    def log_joint(self, member: Member, batch: Batch) -> Float[Array, ""]:
        """log p(y, θ), or an unbiased estimate of it from a minibatch."""
        return batch.sum(self.log_prob(member, batch.X, batch.y)) + log_standard_normal(member.network)

    def sampler(self, data: Batch) -> Microcanonical:
        """The steps of one chain."""
        return Microcanonical(lambda member: self.log_joint(member, data), self.name)

    def pretrain(self, member: Member, data: Batch, *, key: PRNGKeyArray) -> Member:
        """The member after the optimiser's steps, each on random rows of its own."""

        def step(t: Array, state: tuple[Member, optax.OptState]) -> tuple[Member, optax.OptState]:
            member, optimiser = state
            batch = minibatch(data, self.minibatch, key=jax.random.fold_in(key, t))
            gradient = jax.grad(lambda member: -self.log_joint(member, batch))(member)
            updates, optimiser = self.optimiser.update(gradient, optimiser, member)
            return optax.apply_updates(member, updates), optimiser

        return jax.lax.fori_loop(0, self.start_steps, step, (member, self.optimiser.init(member)))[0]

    def step(self, state: MileState, batch: Batch, *, key: PRNGKeyArray) -> tuple[MileState, Info]:
        """One step of every chain; the objective is `mean_log_joint`."""
        move = lambda key, *chain: self.sampler(batch).step(*chain, key=key)
        end = map_members(move, jax.random.split(key, self.members), state.chain, state.scales)
        divergences, energy = state.divergences + end.is_divergent, state.energy + end.energy_error**2
        samples = self.extend(state, end.chain.position, end.chain.log_density, batch)
        objective = self.mean_log_joint(state.chain.log_density, divergences)
        return MileState(end.chain, state.scales, energy, divergences, samples, state.count + 1), Info(objective)

    def diagnostics(self, state: MileState) -> dict[str, Array]:
        """Diagnostics of the chains, and the largest `energy_variance` of one: the mean square of a step's energy error
        by dimension, over the steps that did not diverge."""
        dimensions = sum(leaf.size for leaf in jax.tree.leaves(state.position)) // self.members
        steps = jnp.maximum(state.count - state.divergences, 1)
        variance = jnp.max(state.energy / (dimensions * steps))
        return super().diagnostics(state) | {"energy_variance": variance.astype(state.energy.dtype)}


@eqx.filter_jit
def start(method: MILE, data: Batch, size: int, *, key: PRNGKeyArray) -> MileState:
    """The state of tuned chains, with room for `size` samples; compiled once for all data of one shape."""
    sampler = method.sampler(data)

    def begin(key: PRNGKeyArray) -> tuple[Chain, Scales]:
        keys = jax.random.split(key, 4)
        member = method.pretrain(method.initial_member(data, key=keys[0]), data, key=keys[1])
        return sampler.tune(sampler.start(member, key=keys[2]), method.tuning, method.energy_variance, key=keys[3])

    chain, scales = map_members(begin, jax.random.split(key, method.members))
    samples = no_samples(chain.position, chain.log_density, data, size)
    nothing = jnp.zeros_like(chain.log_density)
    return MileState(chain, scales, nothing, jnp.zeros(method.members, int), samples, jnp.asarray(0))
