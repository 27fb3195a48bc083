"""`qsgp`: estimates against enumeration, bounds against dense formulas, and the limits where the posterior is exact."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.bases import KernelFunctions, RandomFeatures
from gpbench.core.bases.base import take
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Gaussian, Laplace, Logistic
from gpbench.methods.base import Batch
from gpbench.methods.parts import basis_weights
from gpbench.methods.parts.basis_bound import Draw, Hyper, Sample, negative_bound, paired_loss
from gpbench.methods.parts.basis_weights import ControlVariate, Weights, columns
from gpbench.train.batches import whole

N, M, K = 5, 4, 2
RNG = np.random.default_rng(0)
X, Y = jnp.asarray(RNG.normal(size=(N, 2))), jnp.asarray(RNG.normal(size=N))
KERNEL = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4]))
HYPER = Hyper(KERNEL, Gaussian(jnp.asarray(np.log(0.2))))
BASES = {"rff": RandomFeatures(jax.random.key(3), M, 1, 0), "inducing": KernelFunctions.around(X[:M], 1)}


def weights(k=K, *, sites=False, relevance=False):
    """Random parameters of M weights in blocks of one."""
    value = lambda *shape: jnp.asarray(0.3 * RNG.normal(size=(M, 1, *shape)))
    return Weights(value(), value(k), value() if sites else None, value() if relevance else None)


def dense_factor(q, scales2):
    """C (M, M) of a chevron, from its columns and the squares of its other diagonal entries."""
    C = np.diag(np.sqrt(np.asarray(scales2)))
    C[:, : q.width] += np.asarray(columns(q, jnp.arange(M)))[:, 1:]
    return C


def prior(name, q):
    """S (M, M) of the weights' prior precision."""
    if q.log_precision is not None:
        return np.diag(np.exp(np.asarray(q.log_precision).ravel()))
    return np.asarray(KERNEL.cross(X[:M], X[:M])) if name == "inducing" else np.eye(M)


def squares(basis):
    """The exact mean squares of the functions without their unit."""
    return jnp.mean(basis.values(KERNEL, X, basis.locations(jnp.arange(M), 2, X.dtype)) ** 2, axis=0)[:, None]


@eqx.filter_jit
def estimate(hyper, q, batch, blocks, third, basis, control, draws):
    """Value and gradient, scattered to all weights."""
    sq = None if q.log_scale is not None else squares(basis)[blocks]
    sample = Sample(basis, blocks, basis.locations(blocks, 2, X.dtype), sq, jnp.asarray(N), draws, third)
    loss = lambda hyper, drawn: negative_bound(hyper, drawn, sample, batch, control)
    (value, _), (of_hyper, of_drawn) = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(hyper, take(q, blocks))
    scattered = jax.tree.map(lambda leaf, g: jnp.zeros_like(leaf).at[blocks].add(g), q, of_drawn)
    return value, of_hyper, scattered


EVERY = jnp.arange(M)
BOTH = jnp.concatenate([EVERY, EVERY])


def control_for(name, q):
    """A control variate whose functions are those of other hyper-parameters, as after some training of them."""
    kernel = KERNEL if name == "inducing" else SquaredExponential(jnp.asarray(0.5), jnp.asarray([0.4, -0.1]))
    support = X[-2:]
    running = BASES[name].evaluate(kernel, support, EVERY) @ columns(q, EVERY)
    gram = kernel.cross(support, support)
    root = jnp.linalg.inv(jnp.linalg.cholesky(gram)) if name == "inducing" and q.log_precision is None else None
    return ControlVariate(support, kernel, running, root)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize(
    "name, relevance, controlled",
    [("rff", False, True), ("inducing", False, True), ("inducing", True, True), ("rff", False, False)],
)
def test_the_mean_over_all_draws_and_rows_is_the_bound_and_its_gradient(name, relevance, controlled, replacement):
    """Theorems 1 and 2, propositions 2 and 3: every pair of draws of 2 of 4 functions, and every single row."""
    q, basis = weights(relevance=relevance), BASES[name]
    control = control_for(name, q) if controlled else None
    draw = itertools.product(range(M), repeat=2) if replacement else itertools.permutations(range(M), 2)
    pairs = jnp.asarray([a + b for a, b in itertools.product(list(draw), repeat=2)])
    rows = jnp.arange(N)

    def one(pair, row):
        batch = Batch(X[row][None], Y[row][None], row[None], jnp.ones(1), N)
        return estimate(HYPER, q, batch, pair, None, basis, control, 2)

    each = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(pairs, rows)
    average = jax.tree.map(lambda leaf: leaf.mean((0, 1)), each)
    full = estimate(HYPER, q, whole(X, Y), BOTH, None, basis, None, 2)
    for ours, theirs in zip(jax.tree.leaves(average), jax.tree.leaves(full), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name, relevance", [("rff", False), ("inducing", False), ("inducing", True)])
def test_the_full_estimate_is_equation_2(name, relevance):
    q, basis = weights(relevance=relevance), BASES[name]
    S = prior(name, q)
    Phi, mean, noise = np.asarray(basis.evaluate(KERNEL, X, EVERY)), np.asarray(q.mean).ravel(), 0.2
    scales2 = noise / ((Phi**2).sum(0) + noise * np.diag(S))  # c_rr² of proposition 1
    C = dense_factor(q, np.where(np.arange(M) < K, 0.0, scales2))
    error = ((Y - Phi @ mean) ** 2).sum() + ((Phi @ C) ** 2).sum()
    log_prior = 0.0 if name == "inducing" and not relevance else np.linalg.slogdet(S)[1]
    kl = 0.5 * (mean @ S @ mean + np.trace(S @ C @ C.T) - 2 * np.log(np.diag(C)).sum() - log_prior - M)
    expected = 0.5 * (error / noise + N * np.log(2 * np.pi * noise)) + kl
    value, *_ = estimate(HYPER, q, whole(X, Y), BOTH, None, basis, None, 2)
    np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("name, relevance", [("rff", False), ("inducing", False), ("inducing", True)])
def test_the_gradient_of_the_full_estimate_is_that_of_differences(name, relevance):
    """In a random direction of all weights, and of the hyper-parameters too where they may move."""
    q, basis, moves = weights(relevance=relevance), BASES[name], float(name == "rff" or relevance)
    full = lambda hyper, q: estimate(hyper, q, whole(X, Y), BOTH, None, basis, None, 2)
    random = lambda tree: jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape)), tree)
    direction = jax.tree.map(lambda leaf: moves * leaf, random(HYPER)), random(q)
    at = lambda step: full(*jax.tree.map(lambda leaf, d: leaf + step * d, (HYPER, q), direction))[0]
    _, *gradient = full(HYPER, q)
    products = jax.tree.map(lambda g, d: jnp.sum(g * d), tuple(gradient), direction)
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-6)


SITES = {"logistic": Logistic(nodes=101), "laplace": Laplace(jnp.asarray(np.log(0.3)))}


def bounds_of_sites(name, q, count, draws, *, replacement, printed=False):
    """The mean of theorem 3 over draws of `count` functions, its standard error, and E log p(y|f) itself."""
    hyper, basis = Hyper(KERNEL, SITES[name]), BASES["rff"]
    targets = jnp.sign(Y) if name == "logistic" else Y

    def blocks_of(key):
        pick = lambda key: jax.random.choice(key, M, (count,), replace=replacement)
        return [pick(k) for k in jax.random.split(key, 3)]

    def likelihood_part(blocks, third, draws):
        sample = Sample(basis, blocks, basis.locations(blocks, 2, X.dtype), None, jnp.asarray(N), draws, third)
        value, _ = negative_bound(hyper, take(q, blocks), sample, whole(X, targets))
        nothing = Batch(X, targets, jnp.arange(N), jnp.full(N, 1e-30), 0)
        return negative_bound(hyper, take(q, blocks), sample, nothing)[0] - value

    def one(key):
        i, j, r = blocks_of(key)
        return likelihood_part(jnp.concatenate([i, j]), r, 2) if printed else likelihood_part(i, None, 1)

    values = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), draws)))
    exact = float(likelihood_part(EVERY, None, 1))
    return values.mean(), values.std() / np.sqrt(draws), exact


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("k", [0, K])
def test_theorem_3_as_corrected_is_a_bound_that_tends_to_the_exact_one(name, k):
    q = weights(k, sites=True)
    gaps = []
    for count in (1, 2, 3, 4):
        mean, error, exact = bounds_of_sites(name, q, count, 4_000, replacement=False)
        assert mean <= exact + 3 * error + 1e-12
        gaps.append(exact - mean)
    assert gaps[0] > gaps[1] > gaps[2] > 0 and abs(gaps[3]) < 1e-10


@pytest.mark.parametrize("name", SITES)
def test_with_replacement_the_bias_stays_where_the_draw_is_as_large_as_the_basis(name):
    mean, error, exact = bounds_of_sites(name, weights(sites=True), M, 4_000, replacement=True)
    assert mean < exact - 5 * error


def test_a_function_that_is_drawn_twice_has_one_random_number():
    """With replacement and one wide direction: two numbers for it would halve its part of the argument's variance."""
    wide = jnp.full((M, 1), -8.0).at[0].set(0.0)
    q = eqx.tree_at(lambda q: (q.mean, q.log_scale), weights(0, sites=True), (jnp.zeros((M, 1)), wide))
    mean, error, exact = bounds_of_sites("laplace", q, M, 4_000, replacement=True)
    assert exact - 1.0 < mean < exact + 3 * error


def test_theorem_3_as_printed_has_the_variance_of_f_where_the_deviation_belongs():
    """With all functions in each draw."""
    q = weights(sites=True)
    mean, *_ = bounds_of_sites("logistic", q, M, 1, replacement=False, printed=True)
    Phi = np.asarray(BASES["rff"].evaluate(KERNEL, X, EVERY))
    C = dense_factor(q, np.where(np.arange(M) < K, 0.0, np.exp(2 * np.asarray(q.log_scale).ravel())))
    f, v = Phi @ np.asarray(q.mean).ravel(), ((Phi @ C) ** 2).sum(1)
    z, w = np.polynomial.hermite_e.hermegauss(101)
    expected = sum((-np.logaddexp(0, -s * (a + b * z)) @ w / w.sum()) for s, a, b in zip(np.sign(Y), f, v))
    np.testing.assert_allclose(mean, expected, rtol=1e-9)


RANDOM = np.random.default_rng(0)
ROWS, TARGETS, WEIGHT = (jnp.asarray(RANDOM.normal(size=shape)) for shape in ((5, 2), (5, 3), (5,)))
OF_PAIRS = {"rff": RandomFeatures(jax.random.key(3), 12, 2, 0), "inducing": KernelFunctions.around(ROWS, 2)}
BLOCKS = jnp.asarray([0, 2]), jnp.asarray([2, 1])


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", OF_PAIRS)
def test_three_passes_have_the_value_and_the_gradient_of_the_loss(name, learned, monkeypatch):
    """In the columns, in what the loss depends on, and in the kernel where it is learned; over several tiles."""
    monkeypatch.setitem(basis_weights._TILES, jax.default_backend(), 2)
    basis = OF_PAIRS[name]
    locations = [basis.locations(blocks, 2, ROWS.dtype) for blocks in BLOCKS]
    columns, factors = jnp.asarray(RANDOM.normal(size=(2, 4, 3))), jnp.asarray(RANDOM.normal(size=(2, 4)))

    def loss(precision, left, right):
        return precision * jnp.sum(WEIGHT[:, None] * (left - TARGETS) * (2.0 * right - TARGETS))

    def ours(kernel, columns, precision):
        draws = [*map(Draw, locations, columns, factors)]
        affine = lambda left, right: loss(precision, left, right)
        return paired_loss(affine, basis, kernel, ROWS, draws, weight=WEIGHT, learned=learned)

    def plain(kernel, columns, precision):
        Phi = [basis.functions(kernel, ROWS, of_draw) for of_draw in locations]
        sums = jnp.concatenate([WEIGHT @ functions**2 for functions in Phi])
        return loss(precision, Phi[0] @ columns[0], Phi[1] @ columns[1]) + factors.ravel() @ sums, sums

    wanted = (0, 1, 2) if learned else (1, 2)
    results = [
        jax.jit(jax.value_and_grad(function, argnums=wanted, has_aux=True))(KERNEL, columns, jnp.asarray(0.7))
        for function in (ours, plain)
    ]
    for of_ours, of_plain in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(of_ours, of_plain, rtol=1e-10, atol=1e-12)
