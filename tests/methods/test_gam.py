"""`gam` against the exact additive Gaussian process, its posteriors against each other, and bad components."""

import itertools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import FROZEN, KEY, bound_of, differences, predict, train
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from gpbench.core.additive import CoupledCovariance, coupled_precision
from gpbench.core.gaussians import Natural
from gpbench.errors import ConfigError
from gpbench.methods.additive.gam import GAM
from gpbench.train.batches import whole

N, NOISE = 14, 0.1


def rows(n=N, task="regression", seed=0):
    """A function of two inputs and their product on rows between -1 and 2, or its sign."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 2, size=(n, 2))
    f = np.sin(3 * X[:, 0]) + X[:, 1] + 0.5 * X[:, 0] * X[:, 1] - 0.7
    y = f + 0.3 * rng.normal(size=n)
    classes = 0 if task == "regression" else 2
    return whole(jnp.asarray(X), jnp.asarray(np.sign(y) if classes else y), classes)


def gam(**fields):
    """A `gam` of both inputs and their interaction whose hyper-parameters stay where they are, apart from `fields`."""
    settings = {"inducing": N, "pairs": [[0, 1]], "optimiser": FROZEN, "natural_step": "auto", "target_noise": NOISE}
    return GAM(name="gam", **settings | fields)


@jax.jit
def effects_at(method, state, X):
    """`method.latents`, compiled."""
    return method.latents(state, X)


def at_rows(method, data):
    """An initial state whose inducing points are the training rows."""
    state = method.init(data, key=KEY)
    unit = state.parameters.layer.unit(data.X)
    stacks = state.parameters.layer.stacks
    Zs = [jnp.stack([unit[:, np.asarray(inputs)] for inputs in stack.inputs]) for stack in stacks]
    return eqx.tree_at(lambda s: [stack.Z for stack in s.parameters.layer.stacks], state, Zs)


@jax.jit
def covariances_of(layer, X):
    """Prior covariances of the constant and of every component, at the rows X."""
    unit = layer.unit(X)
    kernels = [jnp.exp(layer.log_constant) * jnp.ones((len(X), len(X)))]
    for stack in layer.stacks:
        for i, inputs in enumerate(stack.inputs):
            kernel, x = jax.tree.map(lambda leaf, i=i: leaf[i], stack.kernel), unit[:, np.asarray(inputs)]
            kernels.append(kernel.cross(x, x))
    return kernels


def test_the_start_is_made_by_few_programs_and_all_pairs_are_those_of_a_list(caplog):
    data = rows(n=23)  # a number of rows that no other test has compiled anything for
    with jax.log_compiles(), caplog.at_level("WARNING"):
        gam(pairs=[]).init(data, key=KEY)
    programs = [record for record in caplog.records if record.getMessage().startswith("Compiling ")]
    assert 1 <= len(programs) <= 12
    every = " ".join(map(str, gam(pairs="all").components_of(jnp.eye(3))))
    assert every == "[0] [1] [2] [0, 1] [0, 2] [1, 2]"
    assert eqx.tree_equal(*(gam(pairs=pairs).init(rows(), key=KEY) for pairs in ("all", [[0, 1]])))


def exact(layer, X):
    """`covariances_of`, as NumPy's arrays."""
    return list(map(np.asarray, covariances_of(layer, X)))


@pytest.fixture(scope="module")
def solution():
    """Data, the layer with Z = X, and the exact log evidence, effects' means and their variances."""
    data = rows()
    layer = at_rows(gam(), data).parameters.layer
    kernels = exact(layer, data.X)
    total = sum(kernels) + NOISE * np.eye(N)
    y = np.asarray(data.y)
    means = [K @ np.linalg.solve(total, y) for K in kernels[1:]]
    variances = [np.diag(K - K @ np.linalg.solve(total, K)) for K in kernels[1:]]
    evidence = multivariate_normal.logpdf(y, np.zeros(N), total)
    return data, evidence, np.stack(means, 1), np.stack(variances, 1)


@pytest.mark.parametrize("posterior", ["coupled_covariance", "coupled_precision"])
def test_coupled_posteriors_are_exact_with_inducing_points_at_the_rows(solution, posterior):
    data, evidence, means, variances = solution
    method = gam(posterior=posterior)
    state, _ = train(method, data, 2, state=at_rows(method, data))
    np.testing.assert_allclose(bound_of(method, state.parameters, data), evidence, atol=2e-4)
    effects = effects_at(method, state, data.X)
    np.testing.assert_allclose(effects["effects"], means, atol=1e-5)
    np.testing.assert_allclose(effects["effect_variances"], variances, atol=1e-5)
    predicted = predict(method, state, data.X).summary()["mean"]
    constant = state.parameters.q.moments()[0][0] * jnp.exp(0.5 * state.parameters.layer.log_constant)
    np.testing.assert_allclose(predicted, constant + effects["effects"].sum(1), atol=1e-10)


def test_the_mean_field_has_the_exact_means_narrower_bands_and_the_lowest_bound(solution):
    data, evidence, means, variances = solution
    method = gam(posterior="mean_field")
    state, _ = train(method, data, 2, state=at_rows(method, data))
    effects = effects_at(method, state, data.X)
    np.testing.assert_allclose(effects["effects"], means, atol=1e-5)
    assert (effects["effect_variances"] < variances + 1e-6).all()
    assert bound_of(method, state.parameters, data) < evidence - 0.5


def count_of_numbers(posterior, total):
    """How many numbers q of this many inducing outputs has."""
    q = jax.eval_shape(lambda: posterior(Natural(jnp.eye(total), jnp.zeros(total))))
    return sum(leaf.size for leaf in jax.tree.leaves(q))


def test_the_joint_precision_stores_values_linear_in_components_and_quadratic_in_inducing_points():
    """M² C with M columns, and the mean and the constant beside it.  The joint covariance is quadratic in both."""
    for C, M in itertools.product((2, 4, 8), (4, 8, 16)):
        T = C * M + 1
        assert count_of_numbers(partial(coupled_precision, rank=M), T) == C * M**2 + C * M + M + 1
        assert count_of_numbers(lambda factor: CoupledCovariance(factor.posterior()), T) == T**2 + T


def test_the_bound_grows_with_the_rank_up_to_the_exact_evidence(solution):
    """Columns that are too few lose ½ Σ (λ - log(1 + λ)) over the eigenvalues λ of Σ_c K_c / σ² that they leave out."""
    data, evidence, *_ = solution
    eigenvalues = np.linalg.eigvalsh(sum(exact(at_rows(gam(), data).parameters.layer, data.X)) / NOISE)[::-1]
    bounds = []
    for rank in (6, N):  # N rows inform N directions
        method, left = gam(rank=rank), eigenvalues[rank:]
        state, _ = train(method, data, 2, state=at_rows(method, data))
        bounds.append(float(bound_of(method, state.parameters, data)))
        assert bounds[-1] == pytest.approx(evidence - 0.5 * np.sum(left - np.log1p(left)), abs=1e-3)
    assert (np.diff(bounds) > 1e-3).all() and bounds[0] < evidence
    assert bounds[-1] == pytest.approx(evidence, abs=2e-4)


def optimum(posterior, data):
    """The largest bound over q alone, by SciPy's L-BFGS."""
    method = gam(inducing=3, posterior=posterior, natural_step=None, optimiser=None)
    parameters = method.init(data, key=KEY).parameters
    start, unravel = ravel_pytree(parameters.q)
    loss = lambda q: -method.bound(eqx.tree_at(lambda p: p.q, parameters, unravel(q)), data)
    evaluate = jax.jit(jax.value_and_grad(loss))
    options = {"maxiter": 3000, "gtol": 1e-9, "ftol": 1e-15}
    as_arrays = lambda q: tuple(map(np.asarray, evaluate(q)))
    return -minimize(as_arrays, start, jac=True, method="L-BFGS-B", options=options).fun


def test_a_square_free_factor_reaches_the_optimum_of_the_joint_covariance():
    """With labels: the two parametrisations have one optimum."""
    data = rows(task="binary")
    assert optimum("coupled_precision", data) == pytest.approx(optimum("coupled_covariance", data), abs=1e-6)


@pytest.mark.parametrize("posterior", ["mean_field", "coupled_covariance", "coupled_precision"])
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_natural_steps_end_where_the_gradient_in_q_is_zero(posterior, task):
    data = rows(30, task)
    method = gam(inducing=4, posterior=posterior, rank=5 if posterior == "coupled_precision" else None)
    state, objective = train(method, data, 80)
    gradient = jax.jit(jax.grad(lambda q: method.bound(eqx.tree_at(lambda p: p.q, state.parameters, q), data)))
    for leaf in jax.tree.leaves(gradient(state.parameters.q)):
        np.testing.assert_allclose(
            jnp.tril(leaf) if leaf.ndim == 3 or leaf.shape[-1:] == leaf.shape[-2:-1] else leaf, 0.0, atol=1e-4
        )
    assert objective[-1] > objective[0]


def test_the_bound_by_blocks_is_that_of_all_rows_and_its_gradient_that_of_differences(monkeypatch):
    monkeypatch.setattr("gpbench.methods.additive.gam._BLOCK", 5)
    data = rows(12, "binary")
    method = gam(inducing=3, kernel="matern32", natural_step=None, optimiser=optax.adam(0.01), rank=4)
    start, unravel = ravel_pytree(method.init(data, key=KEY).parameters)
    flat = start + 0.05 * jnp.asarray(np.random.default_rng(0).normal(size=start.size))
    function = jax.jit(lambda flat: method.bound(unravel(flat), data))
    np.testing.assert_allclose(function(flat), super(GAM, method).bound(unravel(flat), data), rtol=1e-12)
    expected, gradient = unravel(jnp.asarray(differences(function, flat))), unravel(jax.jit(jax.grad(function))(flat))
    scaling = lambda p: (p.layer.low, p.layer.width)  # by the training rows, and not trained
    assert not any(leaf.any() for leaf in scaling(gradient))
    gradient = eqx.tree_at(scaling, gradient, scaling(expected))
    np.testing.assert_allclose(ravel_pytree(gradient)[0], ravel_pytree(expected)[0], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("natural_step", ["auto", 0.5, None])
def test_fixed_points_stay_on_their_grid_and_all_else_is_learned_as_before(natural_step):
    data, fields = rows(40), {"inducing": 9, "optimiser": optax.adam(0.05), "natural_step": natural_step}
    first, fixed, free = (
        train(gam(**fields, fixed_points=is_fixed), data, steps)[0].parameters
        for is_fixed, steps in [(True, 0), (True, 1), (False, 1)]
    )
    last = train(gam(**fields, fixed_points=True), data, 5)[0].parameters
    grids = np.linspace(0, 1, 9)[:, None], np.stack(np.meshgrid(*[np.linspace(0, 1, 3)] * 2, indexing="ij"), -1)
    for stack, grid in zip(last.layer.stacks, grids, strict=True):
        np.testing.assert_array_equal(stack.Z, np.broadcast_to(grid.reshape(9, -1), stack.Z.shape))
    assert not np.array_equal(free.layer.stacks[0].Z, first.layer.stacks[0].Z)
    # a natural step of q comes after the others, which have moved the points of the free one
    learned = [(p.likelihood, [s.kernel for s in p.layer.stacks], None if natural_step else p.q) for p in (fixed, free)]
    np.testing.assert_allclose(*(ravel_pytree(leaves)[0] for leaves in learned), rtol=1e-10)


def test_an_input_that_does_not_vary_has_no_component_and_is_refused_where_it_is_named():
    data = rows()
    constant = eqx.tree_at(lambda d: d.X, data, data.X.at[:, 1].set(2.0))
    alone = gam(components=[[0]], pairs=[]).init(constant, key=KEY)
    assert eqx.tree_equal(gam(pairs=[]).init(constant, key=KEY), alone)
    assert alone.parameters.layer.components == ((0,),)
    with pytest.raises(ConfigError, match=r"input 1 has one value in all training rows.*leave it out"):
        gam(components=[[0], [1]], pairs=[]).init(constant, key=KEY)
    with pytest.raises(ConfigError, match="no input varies"):
        gam(pairs="all").init(eqx.tree_at(lambda d: d.X, data, jnp.ones_like(data.X)), key=KEY)


def test_effects_on_grids_are_those_of_rows_and_shares_are_their_variances():
    data = rows(60)
    method = gam(inducing=9)
    state, _ = train(method, data, 2)
    kept = {name: np.asarray(value) for name, value in jax.jit(method.effects)(state).items()}
    low, high = np.asarray(data.X.min(0)), np.asarray(data.X.max(0))
    assert kept["effect1_inputs"].tolist() == [[0], [1]] and kept["effect2_inputs"].tolist() == [[0, 1]]
    for size, columns in ((1, [[0], [1]]), (2, [[0, 1]])):
        for i, inputs in enumerate(columns):
            X = np.tile(high, (len(kept[f"effect{size}_grid"]), 1))  # other inputs do not matter
            X[:, inputs] = low[inputs] + kept[f"effect{size}_grid"] * (high - low)[inputs]
            expected = effects_at(method, state, jnp.asarray(X))
            component = i if size == 1 else 2
            np.testing.assert_allclose(kept[f"effect{size}_mean"][i], expected["effects"][:, component], atol=1e-8)
            variances = expected["effect_variances"][:, component]
            np.testing.assert_allclose(kept[f"effect{size}_std"][i] ** 2, variances, atol=1e-8)
    layer, q = state.parameters.layer, state.parameters.q
    w = np.random.default_rng(0).multivariate_normal(*map(np.asarray, q.moments()), size=4000) - q.moments()[0]
    X = jnp.asarray(low + kept["effect1_grid"] * (high - low)[:1])  # of the first input alone
    X = jnp.concatenate([X[:, :1], jnp.full((len(X), 1), high[1])], axis=1)
    farthest = np.max(np.abs(layer.draws(X, 0, jnp.asarray(w))) / kept["effect1_std"][0], axis=1)
    assert kept["effect1_joint"][0] == pytest.approx(np.quantile(farthest, 0.95), rel=0.15) and farthest.max() > 1.96
    # the mean of f² over a grid: the posterior's own, which is that of the mean and the variance
    second = [np.mean(kept["effect1_mean"][i] ** 2 + kept["effect1_std"][i] ** 2) for i in (0, 1)]
    second.append(np.mean(kept["effect2_mean"] ** 2 + kept["effect2_std"] ** 2))
    np.testing.assert_allclose(kept["shares"].sum(1), 1.0, rtol=1e-10)
    np.testing.assert_allclose(kept["shares"].mean(0), np.array(second) / sum(second), atol=0.05)
