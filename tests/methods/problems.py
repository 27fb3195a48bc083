"""Small problems for the methods' tests, and how to train on them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.extend.core import jaxprs_in_params

from gpbench.core.features import InducingPoints, ScaledFeatures
from gpbench.core.kernels import SquaredExponential
from gpbench.methods.base import Batch
from gpbench.methods.ep.sep import SEP
from gpbench.methods.parts.gradient import EvidenceMethod
from gpbench.methods.parts.sparse_layer import SparseLayer
from gpbench.train.batches import whole

KEY = jax.random.key(0)

FROZEN = optax.sgd(0.0)
"""Moves nothing: the hyper-parameters stay where they start."""

KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))
"""A kernel of two inputs in which nothing is 1."""


def inputs(n, seed=0):
    """Standard normal inputs in two dimensions."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, 2)))


def classes(X, seed=1):
    """Labels that mostly follow the first input."""
    noise = 0.5 * np.random.default_rng(seed).normal(size=len(X))
    return jnp.asarray(np.where(np.asarray(X)[:, 0] + noise > 0, 1.0, -1.0))


def targets(X, seed=1):
    """A smooth function of two inputs, with noise."""
    X, noise = np.asarray(X), np.random.default_rng(seed).normal(size=len(X))
    return jnp.asarray(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * noise)


def binary(n):
    """n rows of `inputs` and `classes` as one batch."""
    X = inputs(n)
    return whole(X, classes(X), 2)


def regression(n=25):
    """n rows of `inputs` and `targets` as one batch."""
    X = inputs(n)
    return whole(X, targets(X))


def curved(n=30, seed=0):
    """Two classes with a curved boundary and noise, as one batch."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 0.7 + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return whole(jnp.asarray(X), jnp.asarray(y), 2)


def layer_at(Z, noise: float | None = 0.05, *, kernel=KERNEL, generalised=False):
    """A sparse layer with inducing features at `Z`, of scale 1 where they are generalised."""
    features = ScaledFeatures(Z, jnp.zeros_like(Z)) if generalised else InducingPoints(Z)
    return SparseLayer(kernel, None if noise is None else jnp.asarray(np.log(noise)), features)


def sep(**fields):
    """A `sep` whose hyper-parameters stay where they are, apart from `fields`."""
    return SEP(**{"name": "sep", "optimiser": FROZEN, "inducing": 8, **fields})


def start_at(method, data, parameters):
    """An initial state of a gradient method with `parameters`."""
    return eqx.tree_at(lambda s: s.parameters, method.init(data, key=KEY), parameters)


def start_layer(method, data, layer):
    """An initial state with these hyper-parameters and inducing points, of a method of any kind."""
    state = method.init(data, key=KEY)
    if isinstance(method, SEP):
        return eqx.tree_at(lambda s: (s.layer, s.approximation.layer), state, (layer, layer))
    if isinstance(state.parameters, SparseLayer):
        return eqx.tree_at(lambda s: s.parameters, state, layer)
    return eqx.tree_at(lambda s: s.parameters.layer, state, layer)


def minibatches(data, size, steps):
    """The batches of the first `steps` steps, stacked: epochs in random order, whose last batch may be short.

    A short batch is filled with rows of weight 0 that are not in it.
    """
    n, random, batches = data.total, np.random.default_rng(0), []
    X, y = np.asarray(data.X), np.asarray(data.y)
    while len(batches) < steps:
        order = random.permutation(n)
        for first in range(0, n, size):
            index, weight = np.resize(order, 2 * n)[first : first + size], np.arange(size) < n - first
            arrays = (X[index], y[index], index, weight.astype(X.dtype))
            batches.append(Batch(*map(jnp.asarray, arrays), n, data.classes))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *batches[:steps])


# Methods have no array leaves: they are arguments like any other, by which programs are cached.


@jax.jit
def run_steps(method, data, state, batches, index):
    """A step of the method for every index, on the stacked batches or else on all rows."""

    def one(state, t_and_batch):
        t, batch = t_and_batch
        return method.step(state, data if batch is None else batch, key=jax.random.fold_in(KEY, t))

    return jax.lax.scan(one, state, (index, batches))


def train(method, data, steps, state=None, key=KEY):
    """The state after `steps` steps, from `state` or else the initial one, and the objective of every step."""
    state = method.init(data, key=key) if state is None else state
    whole = method.batch_size is None or method.batch_size >= data.total
    batches = None if whole else minibatches(data, method.batch_size, steps)
    state, info = run_steps(method, data, state, batches, np.arange(steps))
    return state, info.objective


@jax.jit
def objective_of(method, state, data):
    """`method.objective`, compiled."""
    return method.objective(state, data)


@jax.jit
def predict(method, state, X):
    """`method.predict`, compiled."""
    return method.predict(state, X, key=KEY)


@jax.jit
def bound_of(method, parameters, data):
    """`method.bound`, or `method.evidence` where the bound is in closed form, compiled."""
    evaluate = method.evidence if isinstance(method, EvidenceMethod) else method.bound
    return evaluate(parameters, data)


def evaluated(method, data, parameters):
    """The evidence at `parameters`, and a state at these from which predictions are made."""
    value, posterior = bound_of(method, parameters, data)
    return value, eqx.tree_at(lambda s: s.optimiser.extra, start_at(method, data, parameters), posterior)


def differences(function, x, step=1e-5):
    """The gradient of a function of one array by central differences, in one compiled call."""
    along = jax.jit(jax.vmap(function))
    steps = step * np.eye(x.size)
    return (along(x + steps) - along(x - steps)) / (2 * step)


def equations(program):
    """The equations of a traced program and of those inside it, loops too, each call counted."""
    for equation in program.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from equations(inner)
