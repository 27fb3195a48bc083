"""A sparse variational GP with a Matern 5/2 kernel and Student t noise, the first example of docs/add_a_method.md."""

import equinox as eqx
import jax.numpy as jnp

from gpbench.core.features import InducingPoints, inducing_points
from gpbench.core.gaussians import Normal, residual, standard_normal
from gpbench.core.kernels import kernel_spec
from gpbench.core.likelihoods import Likelihood, likelihood_spec
from gpbench.core.linalg import inverse_cholesky
from gpbench.methods.base import inducing_count
from gpbench.methods.parts.gradient import GradientMethod
from gpbench.methods.parts.sparse_layer import SparseLayer


class Parameters(eqx.Module):
    layer: SparseLayer
    likelihood: Likelihood
    q: Normal  # of the whitened inducing outputs


class RobustGP(GradientMethod):
    """Hensman et al. (2013) with heavy-tailed noise: L-BFGS on all rows, or an optimiser of optax on minibatches."""

    tasks = frozenset({"regression"})

    inducing: float | int = eqx.field(static=True, kw_only=True, default=0.3)

    def init_parameters(self, data, *, key):
        X = data.X[: data.total]  # the rows that count come first
        Z = inducing_points(X, inducing_count(self.inducing, len(X)), "rows", key=key)
        kernel = kernel_spec("matern52").initial(Z, start="median")
        likelihood = likelihood_spec("student_t").initial("regression", 0, noise=0.1, dtype=X.dtype)
        return Parameters(SparseLayer(kernel, None, InducingPoints(Z)), likelihood, standard_normal(len(Z), X.dtype))

    def marginals(self, parameters, X):
        cov = parameters.layer.covariances(X)
        V = inverse_cholesky(cov.zz) @ cov.zx  # V = L⁻¹ Kzx
        mean, variance = parameters.q.project(V)
        return mean, variance + residual(cov, V)

    def loss(self, parameters, batch, *, key):
        expected = parameters.likelihood.expected_log_prob(*self.marginals(parameters, batch.X), batch.y)
        return parameters.q.kl() - batch.scale * jnp.sum(batch.weight * expected), None

    def objective(self, state, data):
        return -self.loss(state.parameters, data, key=None)[0]

    def predict(self, state, X, *, key):
        return state.parameters.likelihood.predictive(*self.marginals(state.parameters, X))
