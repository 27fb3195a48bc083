"""`svdgp` and `odsvgp`: decoupled variational Gaussian processes, whose mean has a basis of its own.

Cheng and Boots, NIPS 2017 (paper `svdgp`); with `parametrisation=orthogonal` Salimbeni, Cheng, Boots and Deisenroth,
NeurIPS 2018.  A step costs O(M_α (B + C) D + B M_β² + M_β³) with B rows and C columns of K_α.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.gaussians import standard
from gpbench.core.inducing import LengthscaleStart, first_log_lengthscales2
from gpbench.core.kernels import SquaredExponential
from gpbench.core.linalg import describe_failure
from gpbench.core.observations import Noise, likelihood
from gpbench.core.optimisers import with_rate
from gpbench.core.predictive import Bernoulli, Gaussian, Laplace
from gpbench.core.sites import matched
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.decoupled import (
    Parameters,
    Parametrisation,
    divergence,
    marginals,
    parts,
    sampled_square,
    square,
    waiting,
)
from gpbench.methods.sep_energy import Sums, site_sums
from gpbench.methods.svi import normal


class State(eqx.Module):
    """Parameters, how many features of the mean's basis are in use, and the optimiser.

    With natural-gradient steps also q's natural parameters, less those of the prior.
    """

    parameters: Parameters
    count: Int[Array, ""]
    natural: Sums | None
    optimiser: optax.OptState
    regression: bool = eqx.field(static=True)


class SVDGP(Method):
    """Configuration of `svdgp` and `odsvgp`; see the module's docstring.

    The bases grow with the minibatches (paper, algorithm 1): every step puts the next `growth` rows of its batch into
    them as features of scale 1, until they are full.  Buffers have their last size from the start, so that nothing is
    compiled again.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "regression"})
    setting_fields: ClassVar[frozenset[str]] = frozenset({"mean_basis", "covariance_basis", "batch_size"})

    mean_basis: int = eqx.field(static=True, kw_only=True, default=128**2)
    """M_α, the features of the mean."""
    covariance_basis: int = eqx.field(static=True, kw_only=True, default=128)
    """M_β, the features of the covariance."""
    growth: int = eqx.field(static=True, kw_only=True, default=128)
    """Features added in each step."""
    columns: int = eqx.field(static=True, kw_only=True, default=1024)
    """Columns of K_α that a step sees."""
    parametrisation: Parametrisation = eqx.field(static=True, kw_only=True, default="direct")
    """direct: (a, L) themselves; jacobi: divided by the diagonal of K (A.1); hybrid: q(u) on the covariance's basis and
    a mean beside it (A.3); orthogonal: a mean orthogonal to it."""
    optimiser: optax.GradientTransformation = eqx.field(static=True, kw_only=True)
    """Minimises minus the bound."""
    natural_step: float | None = eqx.field(static=True, kw_only=True, default=None)
    """γ of natural-gradient steps of q(w), for the orthogonal parametrisation; None leaves it to the optimiser."""
    lengthscale_start: LengthscaleStart = eqx.field(static=True, kw_only=True, default="median")
    """What lengthscales start at, from the first minibatch."""
    likelihood: Noise = eqx.field(static=True, kw_only=True, default="gaussian")
    """Of a regression's targets; labels have the probit."""
    target_noise: float = eqx.field(static=True, kw_only=True, default=0.1)
    """First noise variance of the scaled targets."""
    nodes: int = eqx.field(static=True, kw_only=True, default=20)
    """Gauss-Hermite nodes for E log Φ."""

    @property
    def setting(self) -> str:
        return f"m={self.mean_basis}+{self.covariance_basis}, batch={self.batch_size}"

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        dtype, d = data.X.dtype, data.X.shape[1]
        rows = self.batch_size or data.total
        if self.growth > min(rows, data.total):
            raise ConfigError(f"method.growth={self.growth} features a step, but a step sees"
                              f" {min(rows, data.total)} rows: choose no more than these")  # fmt: skip
        for name, features in (("mean_basis", self.mean_basis), ("covariance_basis", self.covariance_basis)):
            if features > data.total:
                raise ConfigError(f"method.{name}={features} is more than the {data.total} training rows: choose no"
                                  " more than these")  # fmt: skip
        if self.natural_step is not None and self.parametrisation != "orthogonal":
            raise ConfigError("method.natural_step is for method.parametrisation=orthogonal, whose divergence is a sum"
                              " of q's and the mean's; leave it null")  # fmt: skip
        first = jax.random.permutation(key, data.total)[: max(rows, self.covariance_basis)]
        X = data.X[first]
        kernel = SquaredExponential(jnp.zeros((), dtype), first_log_lengthscales2(X, self.lengthscale_start))
        nowhere = jnp.asarray(0)
        parameters = Parameters(
            kernel,
            jnp.asarray(jnp.log(self.target_noise), dtype),
            waiting(self.mean_basis, d, dtype),
            jnp.zeros(self.mean_basis, dtype),
            waiting(self.covariance_basis, d, dtype).added(X[: self.covariance_basis], nowhere),
            standard(self.covariance_basis, dtype),
        )
        natural = None
        if self.natural_step is not None:
            m = self.covariance_basis
            natural = Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))
        return State(parameters, nowhere, natural, self.optimiser.init(parameters), data.classes == 0)

    def tried(self, state: State, rate: float) -> State:
        return eqx.tree_at(lambda s: s.optimiser, state, with_rate(state.optimiser, rate))

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        grown = eqx.tree_at(
            lambda p: p.alpha, state.parameters, state.parameters.alpha.added(batch.X[: self.growth], state.count)
        )
        count, natural = jnp.minimum(state.count + self.growth, self.mean_basis), state.natural
        if natural is not None:
            natural = self._natural_gradient(grown, natural, batch)
            grown = eqx.tree_at(lambda p: p.q, grown, normal(natural))

        def minus_bound(parameters):
            p = self._direct(parameters)
            return -self._bound(p, sampled_square(p, count, self.columns, key=key), batch)

        value, gradient = jax.value_and_grad(minus_bound)(grown)
        if natural is not None:
            gradient = eqx.tree_at(lambda g: g.q, gradient, jax.tree.map(jnp.zeros_like, gradient.q))
        updates, optimiser = self.optimiser.update(gradient, state.optimiser, grown)
        moved = optax.apply_updates(grown, updates)
        return State(moved, count, natural, optimiser, state.regression), Info(-value)

    def _natural_gradient(self, p: Parameters, natural: Sums, batch: Batch) -> Sums:
        """q(w)'s natural parameters after a step of size γ, as svi's; the mean's own basis is an offset to it."""
        shared = parts(p, self.parametrisation)
        mean, variance = marginals(p, shared, batch.X)
        slope, half = jax.grad(lambda m, v: jnp.sum(self._expected_log(p, batch, m, v)), argnums=(0, 1))(mean, variance)
        V = jnp.sqrt(p.kernel.amplitude) * (shared.A @ p.beta.cross(p.unit, batch.X))
        sites = matched(V.T @ p.q.mean, jnp.zeros_like(mean), slope, -2.0 * half)
        new = site_sums(V, sites.times(batch.scale * batch.weight))
        gamma = self.natural_step or 0.0
        return jax.tree.map(lambda a, b: gamma * a + (1.0 - gamma) * b, new, natural)

    def _direct(self, parameters: Parameters) -> Parameters:
        """The parameters in the direct parametrisation, from those that are optimised."""
        if self.parametrisation != "jacobi":
            return parameters
        # In units of f, a = a₀/ρ² and L = L₀/ρ² (A.1); in those of g, which is f/ρ, both are divided by ρ.
        rho = jnp.exp(0.5 * parameters.kernel.log_amplitude)
        return eqx.tree_at(lambda p: (p.a, p.q.root), parameters, replace_fn=lambda leaf: leaf / rho)

    def _bound(self, p: Parameters, of_a: Float[Array, ""], batch: Batch) -> Float[Array, ""]:
        """The bound, with aᵀK_α a or an estimate of it."""
        shared = parts(p, self.parametrisation)
        mean, variance = marginals(p, shared, batch.X)
        expected = self._expected_log(p, batch, mean, variance)
        return batch.scale * jnp.sum(batch.weight * expected) - divergence(p, shared, of_a)

    def _expected_log(self, p: Parameters, batch: Batch, mean, variance) -> Float[Array, " B"]:
        of_y = likelihood(batch.classes == 0, self.likelihood, self.nodes)
        return of_y.expected_log(batch.y, mean, variance, jnp.exp(p.log_noise))

    def bound(self, parameters: Parameters, data: Batch) -> Float[Array, ""]:
        """The lower bound on the log evidence, with every column of K_α (paper, equations 5 and 9)."""
        p = self._direct(parameters)
        return self._bound(p, square(p), data)

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)

    def predict(self, state: State, X: Float[Array, "N D"]) -> Bernoulli | Gaussian | Laplace:
        p = self._direct(state.parameters)
        mean, variance = marginals(p, parts(p, self.parametrisation), X)
        of_y = likelihood(state.regression, self.likelihood, self.nodes)
        return of_y.predictive(mean, variance, jnp.exp(p.log_noise))

    def divergence(self, state: State) -> Float[Array, ""] | None:
        if not state.regression:
            return None
        p = self._direct(state.parameters)
        return divergence(p, parts(p, self.parametrisation), square(p))

    def kept(self, state: State) -> dict[str, Array]:
        return {"inducing": state.parameters.alpha.Z, "covariance_inducing": state.parameters.beta.Z}

    def diagnose(self, state: State) -> str:
        K = state.parameters.beta.gram(state.parameters.unit, state.parameters.beta)
        return describe_failure(f"K of the covariance's basis of the {state.parameters.kernel.describe()}",
                                K, str(K.dtype)) or ""  # fmt: skip
