"""`svi`: scalable variational Gaussian processes for any likelihood.

Hensman, Fusi and Lawrence, UAI 2013; Hensman, Matthews and Ghahramani, AISTATS 2015; paper `sep`, section 3.  The bound
(its equation 8) is that of `VariationalMethod` with whitened inducing outputs u = L w, Kzz = L Lᵀ.
With more than two classes every class has a latent function of its own: one kernel and set of features, and a q each.

`tsvgp` is the tighter bound of Titsias, ICML 2025, for Gaussian noise σ²: with dₙ the variance of fₙ given u, the term
-dₙ/(2σ²) of E_q log p(yₙ|fₙ) becomes -½ log(1 + dₙ/σ²).
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import standard_normal
from gpbench.core.likelihoods import Gaussian
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.parts.sparse_layer import SparseMethod
from gpbench.methods.parts.variational import Parameters, VariationalMethod, repeat


class SVI(SparseMethod, VariationalMethod):
    """Configuration of `svi`; see the module's docstring, and `VariationalMethod` for what moves what."""

    conditional: Literal["prior", "scaled"] = eqx.field(static=True, kw_only=True, default="prior")
    """q(fₙ|u): "prior" is p(fₙ|u); "scaled" scales its variance by the optimal factor 1 / (1 + dₙ/σ²), which needs
    Gaussian noise (`tsvgp`)."""

    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        likelihood = self.initial_likelihood(data)
        if self.conditional == "scaled" and not isinstance(likelihood, Gaussian):
            raise ConfigError(f"{self.name}: the tighter bound needs Gaussian noise, and the likelihood is"
                              f" {self.likelihood}: set method.conditional=prior, or use svi")  # fmt: skip
        layer = self.initial_layer(data, additive_noise=data.task != "regression", key=key)
        q = standard_normal(layer.gram().shape[0], data.X.dtype)
        return Parameters(layer, likelihood, repeat(q, likelihood.latents()))

    def tightening(self, parameters: Parameters, rest: Float[Array, " N"]) -> Float[Array, " N"] | float:
        if self.conditional != "scaled" or not isinstance(parameters.likelihood, Gaussian):
            return 0.0
        ratio = rest / parameters.likelihood.noise
        return 0.5 * (ratio - jnp.log1p(ratio))

    def arrays(self, state: GradientState) -> dict[str, Array]:
        return {"inducing": state.parameters.layer.features.Z}
