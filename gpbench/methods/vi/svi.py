"""`svi`: scalable variational Gaussian processes for any likelihood.

Hensman, Fusi and Lawrence, UAI 2013; Hensman, Matthews and Ghahramani, AISTATS 2015; paper `sep`, section 3.  The bound
(its equation 8) is that of `VariationalMethod` with whitened inducing outputs u = L w, Kzz = L Lᵀ.
With more than two classes every class has a latent function of its own: one kernel and set of features, and a q each.
So has the log noise of the likelihood `heteroscedastic`.

`svgp` starts from the kernel and noise of an exact GP of some rows, and learns them or not (paper `qsgp`, section I).

`tsvgp` is the tighter bound of Titsias, ICML 2025, for Gaussian noise σ²: with dₙ the variance of fₙ given u, the term
-dₙ/(2σ²) of E_q log p(yₙ|fₙ) becomes -½ log(1 + dₙ/σ²).

`ppgpr` is the parametric predictive GP of Jankowiak, Pleiss and Gardner, ICML 2020: Σ log E_q p(yₙ|fₙ) - β KL[q || p],
which is no bound; with other than Gaussian noise, and with a prior on lengthscales, it is ours.  `dkl` has the kernel
of a network's outputs (`core.kernels.Deep`; Wilson et al., NIPS 2016), whose inputs the inducing points are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import standard_normal
from gpbench.core.likelihoods import Gaussian, Likelihood
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.quadrature import PerRow
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Batch
from gpbench.methods.parts.exact import SubsetStart
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.parts.sparse_layer import SparseMethod
from gpbench.methods.parts.stopping import StopMethod
from gpbench.methods.parts.variational import Latent, VariationalMethod, VariationalParameters, repeat
from gpbench.schema import setting


class SVI(SparseMethod, VariationalMethod, SubsetStart, StopMethod):
    """Sparse variational Gaussian processes (Hensman et al. 2013, 2015): `svi`.  `VariationalMethod` says how it is
    optimised."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression", "count", "binary", "multiclass"})
    searchable: ClassVar[tuple[str, ...]] = (*StopMethod.searchable, "beta")

    conditional: str = setting(
        "prior",
        ["prior", "scaled"],
        "Form of q(fₙ|u): p(fₙ|u), or its variance scaled by the optimal factor 1 / (1 + dₙ/σ²), for Gaussian "
        "noise (tsvgp).",
    )
    data_term: str = setting(
        "expected",
        ["expected", "predictive"],
        "Term of each row in the objective: E_q log p(yₙ|fₙ), of the bound, or log E_q p(yₙ|fₙ) (ppgpr).",
    )
    beta: float = setting(1.0, "positive", "Weight β of KL[q || p] in the objective; below 1 no bound.")
    fixed: bool = setting(
        False,
        "flag",
        "Kernel, additive noise and likelihood keep their initial values, and training moves q and the inducing "
        "features alone.",
    )

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> VariationalParameters:
        likelihood = self.initial_likelihood(data)
        fault = f"the tighter bound needs Gaussian noise, and the likelihood is {self.likelihood}"
        fits = self.conditional == "prior" or isinstance(likelihood, Gaussian)
        require(fits, f"{self.name}: {fault}: set method.conditional=prior, or use svi", ConfigError)
        fault = "method.data_term=predictive has no tighter form: set method.conditional=prior"
        require(self.conditional == "prior" or self.data_term == "expected", f"{self.name}: {fault}", ConfigError)
        fault = f"method.beta={self.beta:g} leaves nothing to choose: set method.search=null"
        require(self.beta == 1.0 or "beta" not in dict(self.search), f"{self.name}: {fault}", ConfigError)
        beta = None if self.beta == 1.0 and "beta" not in dict(self.search) else jnp.asarray(self.beta, data.X.dtype)
        other = "data_term=predictive" if self.data_term == "predictive" else "beta" if beta is not None else ""
        fault = f"method.{other} has another optimum than natural gradients seek: set method.natural_step=null"
        require(not other or self.natural_step is None, f"{self.name}: {fault}", ConfigError)
        kernel = None
        if self.subset_rows is not None and data.task == "regression":
            if not isinstance(likelihood, Gaussian):
                fault = f"method.subset_rows={self.subset_rows} fits an exact GP, with Gaussian noise"
                raise ConfigError(f"{fault}: set method.subset_rows=null for other likelihoods")
            gp = self.subset_gp(data, self.subset_rows, likelihood.floor)
            kernel, likelihood = gp.kernel, gp.likelihood
        layer = self.initial_layer(data, additive_noise=data.classes > 1, key=key, kernel=kernel)
        q = standard_normal(jax.eval_shape(layer.gram).shape[0], data.X.dtype)
        return VariationalParameters(layer, likelihood, repeat(q, likelihood.latents()), beta)

    def loss(
        self, parameters: VariationalParameters, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], None]:
        """Minus the bound.  With `fixed` its gradient in other parameters is 0, so that L-BFGS leaves these alone."""
        if self.fixed:
            constant = jax.lax.stop_gradient(parameters)
            parameters = eqx.tree_at(_variational, constant, _variational(parameters))
        return super().loss(parameters, batch, key=key)

    def trainable(self, parameters: VariationalParameters) -> Any:
        """The optimiser's parameters; with `fixed` the inducing features, and q unless natural gradients move it."""
        if not self.fixed:
            return super().trainable(parameters)
        return _variational(parameters) if self.natural_step is None else parameters.layer.features

    def row_terms(self, likelihood: Likelihood, mean: Latent, variance: Latent, rest: PerRow, y: PerRow) -> PerRow:
        if self.data_term == "predictive":
            return likelihood.log_normaliser(mean, variance, y)
        terms = super().row_terms(likelihood, mean, variance, rest, y)
        if self.conditional != "scaled" or not isinstance(likelihood, Gaussian):
            return terms
        ratio = rest / likelihood.noise
        return terms + 0.5 * (ratio - jnp.log1p(ratio))

    def with_settings(self, state: GradientState[Any], settings: Mapping[str, float]) -> GradientState[Any]:
        """An initial state with another `beta` or `stop_after`."""
        state = super().with_settings(state, settings)
        if "beta" not in settings:
            return state
        beta = jnp.asarray(settings["beta"], state.parameters.beta.dtype)
        return replace(state, parameters=replace(state.parameters, beta=beta))

    def settings(self, state: GradientState[Any]) -> dict[str, Array]:
        beta = state.parameters.beta
        return super().settings(state) | ({} if beta is None else {"beta": beta})

    def kl(self, state: GradientState[VariationalParameters]) -> Float[Array, ""] | None:
        return super().kl(state) if self.data_term == "expected" else None

    def covariance(self, state: GradientState[VariationalParameters], X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        parameters: Any = state.parameters
        if not isinstance(parameters.likelihood, Gaussian):
            raise ConfigError(f"{self.name}: a joint covariance needs Gaussian noise: set method.likelihood=gaussian")
        return parameters.layer.covariance(inverse_cholesky(parameters.layer.gram()), parameters.q, X)


def _variational(parameters: VariationalParameters) -> tuple[Any, Any]:
    """Parameters of the approximation, not of the model: inducing features and q."""
    return parameters.layer.features, parameters.q
