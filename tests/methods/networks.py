"""Networks in NumPy, which the tests of Bayesian networks hold theirs against."""

import jax
import numpy as np
from scipy.stats import norm


def parameters_of(network):
    """[(weight, bias, scale)] of every layer, in NumPy; leaves may have leading axes."""
    return [(np.asarray(layer.weight), np.asarray(layer.bias), layer.scale) for layer in network.layers]


def forward(layers, X, masks=None, output=0):
    """One output (..., N), or those of a slice, of networks whose weights have leading axes (..., I, O).

    masks: for every layer the factors (..., I) of its inputs, those of dropout.
    """
    for depth, (weight, bias, scale) in enumerate(layers):
        X = np.maximum(X, 0.0) if depth else X
        X = X if masks is None else X * masks[depth][..., None, :]
        X = (X @ weight + bias[..., None, :]) / scale
    return X[..., output]


def sample(q, count, seed=0):
    """Parameters of `count` networks from q, as `parameters_of` has them with a leading axis."""
    rng = np.random.default_rng(seed)
    draw = lambda m, log_s: np.asarray(m) + np.exp(log_s) * rng.normal(size=(count, *m.shape))
    return parameters_of(jax.tree.map(draw, q.mean, q.log_std))


def log_likelihood(f, y, noise):
    """Σ log N(y | f, noise) over the last axis."""
    return norm.logpdf(np.asarray(y), f, np.sqrt(noise)).sum(-1)


def features(X, scaled):
    """The matrix Φ of a network without hidden layers, f = Φ w with the bias last in w."""
    Phi = np.column_stack([X, np.ones(len(X))])
    return Phi / np.sqrt(Phi.shape[1]) if scaled else Phi


def vector(network):
    """The parameters of a network without hidden layers as one vector (..., D + 1), in the order of `features`."""
    ((weight, bias, _),) = parameters_of(network)
    return np.concatenate([weight[..., 0], bias], axis=-1)


def estimate(samples):
    """Mean over the first axis, and its standard error."""
    samples = np.asarray(samples)
    return samples.mean(0), samples.std(0, ddof=1) / np.sqrt(len(samples))


@jax.jit
def losses(method, parameters, data, keys):
    """The loss at every key."""
    return jax.vmap(lambda key: method.loss(parameters, data, key=key)[0])(keys)
