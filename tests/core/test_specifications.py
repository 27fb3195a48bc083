"""Specifications of kernels and likelihoods, and where training starts: lengthscales and inducing points."""

import itertools
import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_values import VALUES, X, cross, stationary
from scipy.linalg.lapack import dpstrf
from sklearn.cluster import KMeans

from gpbench.core import clusters, greedy
from gpbench.core.features import SelectedPoints, inducing_points
from gpbench.core.greedy import select_rows
from gpbench.core.kernels import ANOVA, Linear, Matern52, SquaredExponential, Stationary, kernel_spec, require_family
from gpbench.core.kernels.base import initial_log_lengthscales2
from gpbench.core.likelihoods import Gaussian, Probit, Softmax, likelihood_spec
from gpbench.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "sizes"),
    [
        ("matern52", [1, 3]),
        ({"matern52": {"isotropic": True}}, [1, 1]),
        ({"matern52": {"inputs": [0, 2]}}, [1, 2]),
        ({"product": ["matern12", "squared_exponential"]}, [1, 3, 3]),
        ({"product": ["matern12", "linear"]}, [3, 3]),
        ({"product": [{"matern12": {"inputs": [1]}}, {"product": ["constant", "linear"]}]}, [1, 3]),
        ({"sum": ["matern12", {"product": ["matern12", "constant"]}]}, [1, 3, 1, 3]),
        ("anova", [2, 3]),
    ],
)
def test_a_product_has_one_scale_and_a_base_of_anova_none(value, sizes):
    kernel = kernel_spec(value).initial(jnp.asarray(X), start="median")
    assert [leaf.size for leaf in jax.tree.leaves(kernel)] == sizes


@pytest.mark.parametrize("start", ["median", "root_median", "median_each"])
def test_an_isotropic_kernel_is_the_one_with_equal_lengthscales(start):
    spec = kernel_spec({"matern52": {"isotropic": True}})
    one = spec.initial(jnp.asarray(X), start=start)
    each = eqx.tree_at(lambda k: k.log_lengthscale2, one, jnp.full(3, one.log_lengthscale2[0]))
    np.testing.assert_allclose(cross(one), cross(each), rtol=1e-14)
    if start != "median_each":
        ard = kernel_spec("matern52").initial(jnp.asarray(X), start=start)
        np.testing.assert_allclose(each.lengthscales, ard.lengthscales)


def test_equal_kernels_have_equal_specifications_however_they_are_spelled():
    spellings = [
        "matern52",
        {"matern52": None},
        {"matern52": {}},
        {"matern52": {"isotropic": False, "inputs": None}},
        kernel_spec("matern52"),
    ]
    assert len({kernel_spec(value) for value in spellings}) == 1
    assert kernel_spec({"linear": {"inputs": [2, 0]}}) == kernel_spec({"linear": {"inputs": [0, 2]}})
    assert kernel_spec("anova") == kernel_spec({"anova": {"base": "squared_exponential", "order": 2}})
    assert kernel_spec({"rational_quadratic": {"alpha": 1}}) == kernel_spec("rational_quadratic")
    assert len({kernel_spec(value) for value in VALUES.values()}) == len(VALUES)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("matern52", "matern52"),
        ({"matern52": {"isotropic": True, "inputs": [0, 2]}}, "matern52(isotropic, inputs=[0, 2])"),
        ({"sum": ["squared_exponential", "linear"]}, "squared_exponential + linear"),
        ({"product": [{"sum": ["linear", "constant"]}, "periodic"]}, "(linear + constant) * periodic"),
        ({"anova": {"order": 3, "base": "matern12"}}, "anova(order=3, base=matern12)"),
    ],
)
def test_a_specification_prints_as_short_text(value, text):
    assert str(kernel_spec(value)) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("matern53", "unknown kernel 'matern53': did you mean matern52"),
        (None, "a kernel is a name or a name with its options, not null"),
        ({"matern52": [1]}, "the options of kernel matern52 must be a mapping"),
        ({"matern52": {"isotropc": True}}, "kernel matern52 has no option 'isotropc': did you mean isotropic?"),
        ({"matern52": {"isotropic": 1}}, "kernel matern52: isotropic=1: must be true or false"),
        ({"matern52": {"inputs": 0}}, "kernel matern52: inputs="),
        ({"matern52": {"inputs": [1, 1]}}, "kernel matern52: inputs="),
        ({"periodic": {"period": 0}}, "kernel periodic: period=0: must be a number above 0"),
        ({"product": ["linear"]}, "kernel product must be a list of two or more kernels"),
        ({"sum": ["linear", "matern"]}, "unknown kernel 'matern'"),
        ({"anova": {"order": 0}}, "kernel anova: order=0: must be a whole number from 1"),
        ({"anova": {"base": {"linear": {"inputs": [0]}}}}, "kernel anova: base="),
    ],
)
def test_a_wrong_value_is_one_line_that_says_how_to_mend_it(value, message, one_line):
    with one_line(ConfigError, match="^" + re.escape(message)):
        kernel_spec(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"linear": {"inputs": [0, 3]}}, r"kernel linear\(inputs=\[0, 3\]\): the data have only the inputs 0 to 2"),
        ({"anova": {"order": 4}}, "kernel anova has order 4, but only 3 inputs: choose an order up to 3"),
    ],
)
def test_inputs_that_the_data_do_not_have_are_an_error(value, message):
    with pytest.raises(ConfigError, match=message):
        kernel_spec(value).initial(jnp.asarray(X), start="median")


def test_a_method_that_needs_a_family_says_which_kernels_it_accepts():
    require_family(kernel_spec({"squared_exponential": {"isotropic": True}}), SquaredExponential, "svdgp")
    require_family(stationary(Matern52), (Matern52, Linear), "svdgp")
    line = r"^svdgp needs a squared exponential kernel, not matern52: choose method\.kernel=squared_exponential$"
    with pytest.raises(ConfigError, match=line):
        require_family(kernel_spec("matern52"), SquaredExponential, "svdgp")
    with pytest.raises(ConfigError, match=r"not squared_exponential\(inputs=\[0\]\)"):
        require_family(kernel_spec({"squared_exponential": {"inputs": [0]}}), SquaredExponential, "svdgp")
    with pytest.raises(ConfigError, match=r"needs a squared exponential, matern12, .* or periodic kernel, not linear"):
        require_family(Linear(jnp.zeros(2)), Stationary, "this method")


def test_auto_chooses_by_the_task_and_a_choice_does_not_depend_on_the_order_of_its_options():
    auto = likelihood_spec("auto")
    names = {of: type(auto.initial(of, 3, noise=0.1, dtype="float64")) for of in ("regression", "binary", "multiclass")}
    assert names == {"regression": Gaussian, "binary": Probit, "multiclass": Softmax}
    one, other = ({"student_t": dict(items)} for items in ([("df", 3), ("nodes", 32)], [("nodes", 32), ("df", 3)]))
    assert likelihood_spec(one) == likelihood_spec(other) == likelihood_spec(likelihood_spec(one))
    assert hash(likelihood_spec(one)) == hash(likelihood_spec(other))
    assert likelihood_spec({"probit": None}).options == ()


@pytest.mark.parametrize(
    "value, message",
    [
        ("studentt", "unknown likelihood 'studentt': did you mean student_t?"),
        ({"student_t": {"dof": 3}}, "likelihood student_t has no option 'dof': did you mean df?"),
        ({"student_t": {"df": -1}}, "df=-1: must be a number above 0"),
        ({"student_t": {"learn_df": 1}}, "learn_df=1: must be true or false"),
        ({"student_t": {"nodes": 2.5}}, "nodes=2.5: must be a whole number from 8"),
        ({"student_t": 3}, "the options of likelihood student_t must be a mapping"),
        ({"probit": {}, "logistic": {}}, "a likelihood is a name or a name with its options"),
        ({"softmax": {"samples": 100}}, "samples=100: must be a power of two"),
        ({"robust_max": {"epsilon": 1.5}}, "epsilon=1.5: must be a number between 0 and 1"),
    ],
)
def test_a_wrong_likelihood_is_one_line(value, message, one_line):
    with one_line(ConfigError, says=message):
        likelihood_spec(value)


def test_a_likelihood_that_does_not_fit_names_those_that_do_and_an_anova_base_may_be_any_family():
    with pytest.raises(ConfigError, match="probit does not fit regression data; choose gaussian, laplace, student"):
        likelihood_spec("probit").initial("regression", 0, noise=0.1, dtype="float64")
    with pytest.raises(ConfigError, match="samples=128 is too few for 40 classes; try 256"):
        likelihood_spec("softmax").initial("multiclass", 40, noise=0.1, dtype="float64")
    for name in ("linear", "periodic", "rational_quadratic"):
        kernel = kernel_spec({"anova": {"base": name}}).initial(jnp.asarray(X), start="median")
        assert isinstance(kernel, ANOVA)
        assert np.isfinite(cross(kernel)).all()


CORNERS = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])  # distances 5, 5, 10; along the inputs 3, 3, 6 and 4, 4, 8


@pytest.mark.parametrize(
    ("start", "lengthscales"), [("median", [5.0, 5.0]), ("root_median", [5**0.5] * 2), ("median_each", [3.0, 4.0])]
)
def test_initial_lengthscales(start, lengthscales):
    np.testing.assert_allclose(jnp.exp(0.5 * initial_log_lengthscales2(CORNERS, start)), lengthscales, rtol=1e-12)


def test_a_constant_input_starts_at_one_and_more_points_than_different_rows_are_copies_of_them():
    with_constant = jnp.concatenate([CORNERS, jnp.ones((3, 1))], axis=1)
    assert initial_log_lengthscales2(with_constant, "median_each")[2] == 0.0
    with warnings.catch_warnings(action="error"):
        Z = inducing_points(jnp.concatenate([CORNERS, CORNERS, CORNERS]), 7, "kmeans", key=jax.random.key(0))
    np.testing.assert_allclose(np.unique(Z, axis=0), CORNERS)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [RNG.normal(size=(700, 3)), RNG.integers(0, 4, (300, 2)).astype(float)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centres_are_those_of_scikit_learn_whichever_computes_them(rows, dtype, monkeypatch):
    rows = rows.astype(dtype)
    start = rows[:60]  # of the integers some are equal: their centres lose their rows
    with warnings.catch_warnings(action="ignore"):
        known = KMeans(60, init=start, n_init=1, max_iter=50).fit(rows).cluster_centers_
    for large in (np.inf, 0):
        monkeypatch.setattr(clusters, "_LARGE", large)
        centres = clusters.kmeans(rows, start)
        assert centres.dtype == dtype
        np.testing.assert_allclose(centres, known, atol=10 * np.finfo(dtype).eps)


def test_the_median_distance_is_of_pairs_of_different_rows_and_points_not_in_use_tell_nothing():
    rows = RNG.normal(size=(300, 4))
    rows[200:] = rows[:100]
    distances = [np.sqrt(np.sum((x - y) ** 2)) for x, y in itertools.combinations(rows, 2)]
    assert clusters.median_distance(rows) == pytest.approx(np.median([d for d in distances if d > 0]), rel=1e-14)
    assert clusters.median_distance(np.ones((5, 2))) == 1.0
    points = SelectedPoints(POINTS[:5], jnp.array([1.0, 1.0, 0.0, 1.0, 0.0]))
    kept = np.array([0, 1, 3])
    gram, cross = np.asarray(points.gram(KERNEL)), np.asarray(points.cross(KERNEL, POINTS))
    np.testing.assert_array_equal(gram[np.ix_(kept, kept)], KERNEL.cross(POINTS[kept], POINTS[kept]))
    np.testing.assert_array_equal(gram[[2, 4]], np.eye(5)[[2, 4]])
    np.testing.assert_array_equal(cross[[2, 4]], 0.0)
    np.testing.assert_allclose(cross[kept], KERNEL.cross(POINTS[kept], POINTS), rtol=1e-12)


KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))
POINTS = jnp.asarray(np.random.default_rng(0).normal(size=(60, 2)))
K = np.asarray(KERNEL.cross(POINTS, POINTS))


def left(K, chosen):
    """diag(K - Q) of the chosen rows, by dense algebra."""
    return np.diag(K) - np.sum(K[:, chosen].T * np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]), axis=0)


def test_pivots_are_those_of_lapack_and_the_choice_ends_where_the_weighted_rest_is_small_enough():
    weight = jnp.where(jnp.arange(60) < 30, 2.0, 0.5)
    enough = 0.3 * float(weight @ np.diag(K))
    selection = select_rows(KERNEL, POINTS, 20, weight=weight, enough=enough)
    chosen = np.asarray(selection.index)[: int(selection.count)]
    assert 0 < len(chosen) < 20
    assert weight @ left(K, chosen) <= enough < weight @ left(K, chosen[:-1])
    selection = select_rows(KERNEL, POINTS, 20)
    _, pivots, _, _ = dpstrf(K)
    np.testing.assert_array_equal(selection.index, pivots[:20] - 1)
    np.testing.assert_allclose(selection.rest, left(K, np.asarray(selection.index)), atol=1e-12)
    assert selection.count == 20 and selection.index[0] == 0  # of equal variances the first


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_copies_of_rows_end_the_choice_and_the_places_left_are_filled_with_other_rows(dtype):
    some = POINTS[:20].astype(dtype)
    copies = jnp.concatenate([some, some])
    kernel = SquaredExponential(jnp.array(0.7, dtype), jnp.log(jnp.array([0.1, 0.1], dtype)))
    selection = select_rows(kernel, copies, 40)
    assert selection.count == 20 and selection.rest.dtype == dtype
    np.testing.assert_array_equal(np.sort(selection.index[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(selection.index), np.arange(40))


def test_too_much_memory_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"^20 rows of the kernel matrix of 60 training rows, for a greedy choice"):
        greedy.select_rows(KERNEL, POINTS, 20)
