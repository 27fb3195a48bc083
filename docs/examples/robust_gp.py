"""A sparse variational GP with Student t noise, a loss and an optimiser (Hensman et al. 2013)."""

import equinox as eqx

from gpbench.core.gaussians import Normal, standard_normal
from gpbench.core.likelihoods import Likelihood, likelihood_spec
from gpbench.methods import GradientMethod, SparseLayer, SparseMethod
from gpbench.schema import setting


class RobustParameters(eqx.Module):
    layer: SparseLayer
    likelihood: Likelihood
    q: Normal  # of the whitened inducing outputs w


class RobustGP(SparseMethod, GradientMethod):
    """Variational inference with heavy-tailed noise, by L-BFGS or by an optimiser of optax on minibatches."""

    tasks = frozenset({"regression"})

    df: float = setting(4.0, "positive", "Degrees of freedom of the noise.")

    def init_parameters(self, data, *, key):
        layer = self.initial_layer(data, additive_noise=False, key=key)
        noise = likelihood_spec({"student_t": {"df": self.df}})
        likelihood = noise.initial("regression", 0, noise=0.1, dtype=data.X.dtype)
        return RobustParameters(layer, likelihood, standard_normal(len(layer.gram()), data.X.dtype))

    def marginals(self, parameters, X):
        V, rest = parameters.layer.whitened(X)  # f = Vᵀw + an independent rest
        mean, variance = parameters.q.project(V)
        return mean, variance + rest

    def loss(self, parameters, batch, *, key):
        expected = parameters.likelihood.expected_log_prob(*self.marginals(parameters, batch.X), batch.y)
        return parameters.q.kl() - batch.sum(expected), None

    def predict(self, state, X, *, key):
        return state.parameters.likelihood.predictive(*self.marginals(state.parameters, X))
