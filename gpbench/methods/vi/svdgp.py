"""`svdgp` and `odsvgp`: decoupled variational Gaussian processes, whose mean has a basis of its own.

Cheng and Boots, NIPS 2017 (paper `svdgp`); with `parametrisation=orthogonal` Salimbeni, Cheng, Boots and Deisenroth,
NeurIPS 2018.  A step costs O(M_α (B + C) D + B M_β² + M_β³) with B rows and C columns of K_α.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.decoupled import Decoupled, Direct, Hybrid, Jacobi, Orthogonal
from gpbench.core.features import unused_features
from gpbench.core.gaussians import MeanVariance, Natural, standard_normal, unit_factor
from gpbench.core.kernels import SquaredExponential, require_family
from gpbench.core.linalg import describe_failure
from gpbench.core.natural_gradient import natural_gradient_step
from gpbench.errors import refuse
from gpbench.methods.base import Batch, size_label
from gpbench.methods.parts.gradient import GradientState, MarginalMethod, SampledMethod
from gpbench.methods.parts.settings import KernelMethod, LikelihoodMethod
from gpbench.schema import setting

_CLASSES: dict[str, Any] = {"direct": Direct, "jacobi": Jacobi, "hybrid": Hybrid, "orthogonal": Orthogonal}


class SVDGP(KernelMethod, LikelihoodMethod, SampledMethod, MarginalMethod):
    """Decoupled variational Gaussian processes (Cheng and Boots 2017): `svdgp`.  With `parametrisation=orthogonal` they
    are those of Salimbeni et al. (2018): `odsvgp`.  The bases grow with the minibatches (paper, algorithm 1): every
    step puts the next `growth` rows of its batch into them as features of scale 1, until they are full.  Buffers have
    their final size from the start, so that nothing is compiled again."""

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "regression"})
    likelihoods: ClassVar[tuple[str, ...] | None] = ("gaussian", "laplace", "student_t", "probit", "logistic")
    kernels: ClassVar[tuple[str, ...] | None] = ("squared_exponential",)
    sample_weights: ClassVar[bool] = True
    label_fields: ClassVar[frozenset[str]] = frozenset({"mean_basis", "covariance_basis", "batch_size"})

    mean_basis: int = setting(128**2, "rows", "Number of features of the mean's basis.")
    covariance_basis: int = setting(128, "rows", "Number of features of the covariance's basis.")
    growth: int = setting(
        128, "rows", "Number of features added in each step, from its batch, until the bases are full."
    )
    columns: int = setting(1024, "count", "Number of columns of the mean basis' Gram matrix in each step.")
    parametrisation: str = setting(
        "direct",
        ["direct", "jacobi", "hybrid", "orthogonal"],
        "Parametrisation of the covariance (`gpbench.core.decoupled`); orthogonal is odsvgp.",
    )
    features: str = setting(
        "generalised",
        ["generalised", "values"],
        "Features with scales of their own that training moves, or values of f, whose scales stay 1.",
    )
    natural_step: float | None = setting(
        None,
        "fraction or null",
        "Size of natural-gradient steps of q(w), for parametrisation=orthogonal; null: the optimiser moves q.",
    )

    @property
    def label(self) -> str:
        return size_label(self, f"m={self.mean_basis}+{self.covariance_basis}")

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Decoupled:
        self._check(data)
        dtype, d, m = data.X.dtype, data.X.shape[1], self.covariance_basis
        index = jax.random.permutation(key, data.total)[: max(self.batch_size or data.total, m)]
        X = data.X[index]
        beta = unused_features(m, d, dtype).fill(X[:m], jnp.asarray(0))
        kernel, likelihood = self.initial_kernel(X, data), self.initial_likelihood(data)
        alpha, a = unused_features(self.mean_basis, d, dtype), jnp.zeros(self.mean_basis, dtype)
        q, cls = standard_normal(m, dtype), _CLASSES[self.parametrisation]
        return cls(kernel, likelihood, alpha, a, beta, q.root if issubclass(cls, Direct) else q)

    def _check(self, data: Batch) -> None:
        require_family(self.kernel, SquaredExponential, self.name)
        rows = min(self.batch_size or data.total, data.total)
        more = f"is more than the {data.total} training rows: choose no more than these"
        growth = f"growth={self.growth} features a step, but a step sees {rows} rows: choose no more than these"
        natural = "natural_step is for method.parametrisation=orthogonal, whose KL is a sum of q's and the mean's; "
        refuse(
            "method.",
            (self.growth > rows, growth),
            (self.mean_basis > data.total, f"mean_basis={self.mean_basis} {more}"),
            (self.covariance_basis > data.total, f"covariance_basis={self.covariance_basis} {more}"),
            (self.natural_step is not None and self.parametrisation != "orthogonal", f"{natural}leave it null"),
        )

    def init_variables(self, parameters: Decoupled, data: Batch) -> Natural | None:
        """The factor q(w) / N(w | 0, I) for natural gradients; None without them."""
        return None if self.natural_step is None else unit_factor(self.covariance_basis, data.X.dtype)

    def update(
        self, parameters: Decoupled, variables: Natural | None, batch: Batch
    ) -> tuple[Decoupled, Natural | None]:
        """Growth of the mean's basis, and then a natural-gradient step of q where `natural_step` sets its size."""
        p = parameters
        alpha = p.alpha.fill(batch.X[: self.growth], p.alpha.count())
        p = eqx.tree_at(lambda p: p.alpha, p, alpha)
        if variables is None or not isinstance(p, Orthogonal):
            return p, variables
        factors = p.factors()
        mean, variance = p.marginals(factors, batch.X)
        V = jnp.sqrt(p.kernel.amplitude) * (factors.A @ p.beta.cross(p.unit, batch.X))
        expected = lambda m, v: p.likelihood.expected_log_prob(m, v, batch.y)
        weight, gamma, offset = batch.scale * batch.weight, self.natural_step or 0.0, mean - V.T @ p.q.mean
        is_concave = p.likelihood.log_concave
        factor = natural_gradient_step(
            variables, expected, mean, variance, V, weight, gamma, offset, log_concave=is_concave
        )
        return eqx.tree_at(lambda p: p.q, p, factor.posterior()), factor

    def trainable(self, parameters: Decoupled) -> Any:
        """The parameters of the optimiser: all but q where natural gradients move it, and scales where they stay 1."""
        p: Any = parameters
        if self.features == "generalised":
            return p if self.natural_step is None else (p.kernel, p.likelihood, p.alpha, p.a, p.beta)
        moving = p.kernel, p.likelihood, p.alpha.Z, p.a, p.beta.Z
        if self.natural_step is not None:
            return moving
        return *moving, p.L if isinstance(p, Direct) else p.q

    def loss(self, parameters: Decoupled, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], None]:
        return -self._bound(parameters, parameters.sampled_square(self.columns, key=key), batch), None

    def _bound(self, p: Decoupled, square: Float[Array, ""], batch: Batch) -> Float[Array, ""]:
        """The bound, with aᵀK_α a or an estimate of it."""
        factors = p.factors()
        expected = p.likelihood.expected_log_prob(*p.marginals(factors, batch.X), batch.y)
        return batch.sum(expected) - p.kl(factors, square)

    def bound(self, parameters: Decoupled, data: Batch) -> Float[Array, ""]:
        """The lower bound on the log evidence, in nats, with every column of K_α (paper, equations 5 and 9)."""
        return self._bound(parameters, parameters.square(), data)

    def objective(self, state: GradientState[Decoupled], data: Batch) -> Float[Array, ""]:
        return self.bound(state.parameters, data)

    def marginals(self, state: GradientState[Decoupled], X: Float[Array, "N D"]) -> MeanVariance:
        p = state.parameters
        return p.marginals(p.factors(), X)

    def kl(self, state: GradientState[Decoupled]) -> Float[Array, ""] | None:
        p = state.parameters
        return p.kl(p.factors(), p.square()) if "regression" in p.likelihood.tasks else None

    def arrays(self, state: GradientState[Decoupled]) -> dict[str, Array]:
        return {"inducing": state.parameters.alpha.Z, "covariance_inducing": state.parameters.beta.Z}

    def diagnose(self, state: GradientState[Decoupled]) -> str:
        p = state.parameters
        return describe_failure(f"K of the covariance's basis of the {p.kernel.describe()}", p.beta.gram(p.unit))
