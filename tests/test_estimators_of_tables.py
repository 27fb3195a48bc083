"""Categories and missing cells of a DataFrame, mistakes in the rows, and joint covariances and samples."""

import pickle
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from gpbench.estimators import Regressor

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 40
CITY = np.array(["Oslo", "Bergen", "Molde"])[np.arange(N) % 3]
SIZE = np.array(["S", "M", "L"])[RNG.integers(0, 3, N)]
AGE = RNG.normal(40.0, 10.0, N)
Y = AGE + 10.0 * (CITY == "Oslo") + RNG.normal(size=N)
FRAME = pandas.DataFrame({"city": CITY, "age": AGE, "member": AGE > 40, "size": SIZE})
ENCODE = {"city": "onehot", "size": {"ordinal": ["S", "M", "L"]}}


def linear(**options):
    return Regressor("linear", **options)


def test_categories_become_the_inputs_of_a_card_and_ordered_ones_keep_the_order_of_their_levels():
    model = linear(encode=ENCODE).fit(FRAME, Y)
    onehot = [(city == CITY).astype(float) for city in ("Bergen", "Molde", "Oslo")]
    numbers = np.column_stack([*onehot, AGE, AGE > 40, [["S", "M", "L"].index(size) for size in SIZE]])
    np.testing.assert_allclose(model.predict(FRAME), linear().fit(numbers, Y).predict(numbers), rtol=1e-9)
    assert list(model.feature_names_in_) == list(FRAME.columns) and model.n_features_in_ == 4
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(FRAME, Y)):
        np.testing.assert_array_equal(copy.predict(FRAME), model.predict(FRAME))
    ordered = FRAME.assign(size=pandas.Categorical(SIZE, ["S", "M", "L"], ordered=True))
    named, known = (linear(encode={**ENCODE, **more}) for more in ({}, {"size": "ordinal"}))
    np.testing.assert_array_equal(known.fit(ordered, Y).predict(ordered), named.fit(FRAME, Y).predict(FRAME))
    weight = (CITY != "Molde").astype(float)
    model = linear(encode=ENCODE).fit(FRAME, Y, sample_weight=weight)
    assert model._table.dataset.levels["city"] == ("Bergen", "Oslo")


def test_columns_of_new_rows_are_taken_by_name_and_others_are_ignored_and_new_levels_are_said(capsys):
    model = linear(encode=ENCODE).fit(FRAME, Y)
    other = FRAME[["size", "member", "age", "city"]].assign(more=1.0)
    np.testing.assert_array_equal(model.predict(other), model.predict(FRAME))
    with pytest.raises(ValueError, match=r"no column 'city'; the table has age, member, size"):
        model.predict(FRAME[["age", "member", "size"]])
    assert np.isfinite(model.predict(FRAME.assign(city="Tromso"))).all()
    assert "column 'city': 'Tromso' is not among its levels, Bergen, Molde, Oslo" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"column 'size': 'XL' is not among its levels, S, M, L"):
        model.predict(FRAME.assign(size="XL"))


@pytest.mark.parametrize("empty", [None, np.nan, pandas.NA])
def test_missing_cells_take_the_mean_and_have_an_input_that_says_so(empty):
    lacking = FRAME.astype(object)
    lacking.loc[::5, "age"] = empty
    lacking.loc[3, "city"] = empty
    impute = {"age": "mean", "city": "median"}
    model = linear(encode=ENCODE, impute=impute).fit(lacking, Y)
    known = np.where(np.arange(N) % 5 == 0, np.nan, AGE)
    filler = dict(zip(model._table.dataset.columns, model._table.filler.values, strict=True))
    assert filler["age"] == pytest.approx(np.nanmean(known))
    assert model._table.dataset.columns[-2:] == ("city missing", "age missing")
    assert np.isfinite(model.predict(lacking)).all()
    with pytest.raises(ValueError, match=r"column 'age' has 8 missing or infinite cells .*; impute='mean' "):
        linear(encode=ENCODE).fit(lacking.drop(index=3), np.delete(Y, 3))


def test_an_array_with_missing_cells_is_filled_too_and_two_underscores_stand_for_a_dot():
    X = np.c_[AGE, AGE**2]
    X[::4, 1] = np.nan
    model = linear(impute="median").fit(X, Y)
    assert np.isfinite(model.predict(X)).all() and len(model._table.dataset.columns) == 3
    assert np.isfinite(cross_val_score(linear(impute="mean"), X, Y, cv=2)).all()
    assert Regressor("svi").set_params(method__inducing=3).options == {"method.inducing": 3}
    with pytest.raises(ValueError, match=r"options=\[1\]: give a dict, as in"):
        Regressor("svi", options=[1]).fit(AGE[:, None], Y)


X = np.c_[AGE, AGE**2]
NAN, INFINITE = X.copy(), X.copy()
NAN[[1, 4], 1], INFINITE[7, 0] = np.nan, np.inf
FITS = {
    "text": (FRAME, Y, "X, column 'city': 'Oslo' is no number; encode={'city': 'onehot'} makes inputs of it"),
    "text in an array": (FRAME.to_numpy(), Y, "X, column 0: 'Oslo' is no number; give a DataFrame with encode="),
    "NaN": (NAN, Y, "X, column 1: 2 of 40 cells are NaN; impute='mean' (or 'median') fills missing cells"),
    "infinite": (INFINITE, Y, "X, column 0: 1 of 40 cells are infinite (inf); mend them"),
    "one dimension": (AGE, Y, "X has the shape (40,), not (rows, inputs). Reshape your data: X.reshape(-1, 1)"),
    "three dimensions": (X[None], Y[:1], "X has the shape (1, 40, 2), not (rows, inputs)"),
    "one row": (X[:1], Y[:1], "X has 1 sample: at least 2 rows are needed"),
    "lengths": (X, Y[:-1], "Found input variables with inconsistent numbers of samples: [40, 39]: give X and y of"),
    "several outputs": (X, np.c_[Y, Y], "y should be a 1d array, got an array of shape (40, 2) instead: fit one"),
    "constant targets": (X, np.ones(N), "data: column 'y': the targets of the 40 training rows are all equal"),
}


def test_a_mistake_in_the_rows_of_fit_or_in_new_rows_is_one_line_with_its_remedy(one_line):
    for X, y, line in FITS.values():
        with one_line(ValueError, match="^" + re.escape(line)):
            linear().fit(X, y)
    model = linear().fit(X, Y)
    lines = {"X, column 1: 2 of 40 cells are NaN": NAN, "X has 3 features, but Regressor is expecting 2": np.c_[X, AGE]}
    lines |= {"X has the shape (2,), not (rows, inputs)": X[0], "X has 0 samples: at least 1 row is needed": X[:0]}
    for line, rows in lines.items():
        for call in (model.predict, model.sample_y, lambda rows: model.score(rows, Y[: len(rows)])):
            with one_line(ValueError, match="^" + re.escape(line)):
                call(rows)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        model.predict(sparse.csr_array(X))


def test_a_mistake_in_the_options_is_one_line(one_line):
    town = "encode: no column 'town' in X; known are age, city, member, size"
    for line, options in {
        "encode={city: dummy}: must be a mapping from columns to onehot or ordinal": {"encode": {"city": "dummy"}},
        town: {"encode": {"town": "onehot"}},
        "column 'size', row 1: ": {"encode": {"city": "onehot"}},
        "impute=mode: must be mean or median, or a mapping": {"impute": "mode"},
        "data: impute: no input 'ago'; did you mean age?": {"impute": {"ago": "mean"}, "encode": ENCODE},
    }.items():
        with one_line(ValueError, match="^" + re.escape(line)):
            linear(**options).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"^encode names columns, and X is an array without names: give a pandas Data"):
        linear(encode={"x1": "onehot"}).fit(X, Y)
    with pytest.raises(ValueError, match=r"X is an array: give a DataFrame with the columns city, age, member, size"):
        linear(encode=ENCODE).fit(FRAME, Y).predict(np.zeros((3, 4)))


DATES = pandas.date_range("2024", periods=N)


def test_dates_and_times_are_no_numbers():
    for dates in (DATES, DATES.tz_localize("UTC"), DATES - DATES[0], pandas.period_range("2024", periods=N)):
        for beside in ({}, {"age": AGE}):
            line = r"^X, column 'day': dates and times are no numbers: leave the column out"
            with pytest.raises(ValueError, match=line):
                linear().fit(pandas.DataFrame({**beside, "day": dates}), Y)
    with pytest.raises(ValueError, match=r"^X: dates and times are no numbers"):
        linear().fit(AGE[:, None], Y).predict(np.asarray(DATES)[:, None])


RAW = RNG.normal(size=(40, 2))
TARGETS = 3.0 + 20.0 * (np.sin(2 * RAW[:, 0]) + 0.5 * RAW[:, 1] + 0.1 * RNG.normal(size=40))
NEW = RNG.normal(size=(7, 2))


def fitted(method: str, **options) -> Regressor:
    return Regressor(method, options={f"method.{key}": value for key, value in options.items()}).fit(RAW, TARGETS)


def squared_exponential(kernel, A, B):
    scaled = [points / np.exp(0.5 * kernel.log_lengthscale2) for points in (A, B)]
    squares = ((scaled[0][:, None] - scaled[1][None]) ** 2).sum(axis=-1)
    return np.exp(kernel.log_amplitude) * np.exp(-0.5 * squares)


def test_the_covariance_of_an_exact_gp_and_of_a_linear_model_is_its_closed_form():
    model = fitted("gpr", steps=10)
    parameters = model.state_.parameters
    rows, new = ((points - RAW.mean(axis=0)) / RAW.std(axis=0) for points in (RAW, NEW))
    K, cross, prior = (squared_exponential(parameters.kernel, *two) for two in ((rows, rows), (rows, new), (new, new)))
    noise = np.asarray(parameters.likelihood.noise)
    expected = prior - cross.T @ np.linalg.solve(K + noise * np.eye(len(RAW)), cross) + noise * np.eye(len(NEW))
    _, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(covariance, expected * TARGETS.std() ** 2, rtol=1e-7, atol=1e-7)
    model = fitted("linear")
    design, new = (np.c_[(points - RAW.mean(axis=0)) / RAW.std(axis=0), np.ones(len(points))] for points in (RAW, NEW))
    noise = float(model.state_.noise)
    expected = noise * (np.eye(7) + new @ np.linalg.solve(design.T @ design + 1e-6 * np.eye(3), new.T))
    _, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(covariance, expected * TARGETS.var(), rtol=1e-8)


@pytest.mark.parametrize("method", ["vsgpr", "pep", "svi"])
def test_the_covariance_of_a_sparse_gp_is_its_closed_form(method):
    model = fitted(method, inducing=12, steps=15)
    _, std = model.predict(NEW, return_std=True)
    _, covariance = model.predict(NEW, return_cov=True)
    noise = float(model.state_.parameters.likelihood.noise) * TARGETS.var()
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-12)
    np.testing.assert_allclose(np.diag(model._covariance(NEW)) * TARGETS.var() + noise, std**2, rtol=1e-6)
    layer, q = model.state_.parameters.layer, posterior(model)
    new = (NEW - RAW.mean(axis=0)) / RAW.std(axis=0)
    Z = np.asarray(layer.features.Z)
    K, cross, prior = (squared_exponential(layer.kernel, *pair) for pair in ((Z, Z), (Z, new), (new, new)))
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(Z)))  # u = root w, w ~ N(mean, RᵀR)
    R = np.tril(q.root)
    S = root @ R.T @ R @ root.T
    gain = np.linalg.solve(K + 1e-12 * np.eye(len(Z)), cross)
    expected = (prior - gain.T @ (K - S) @ gain) * TARGETS.var()
    np.testing.assert_allclose(covariance, expected + noise * np.eye(len(NEW)), rtol=1e-4, atol=1e-4)


def posterior(model):
    state = model.state_
    return state.parameters.q if hasattr(state.parameters, "q") else state.optimiser.extra.q


def test_samples_have_the_mean_and_the_covariance():
    model = fitted("linear")
    mean, covariance = model.predict(NEW, return_cov=True)
    samples = model.sample_y(NEW, n_samples=20_000, random_state=1)
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * error).all()
    # the standard error of a sample covariance is √((c_ii c_jj + c_ij²) / n)
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 20_000)
    assert (np.abs(np.cov(samples) - covariance) < 5 * spread).all()
    np.testing.assert_array_equal(samples, model.sample_y(NEW, n_samples=20_000, random_state=1))


def test_what_has_no_joint_covariance_is_refused_in_one_line():
    model = Regressor("svi", options={"method.likelihood": "student_t", "method.steps": 1}).fit(RAW, TARGETS)
    linear, constant = fitted("linear"), fitted("constant")
    for call, line in (
        (lambda: constant.predict(NEW, return_cov=True), r"constant has no joint covariance: use one of .*gpr, "),
        (lambda: model.sample_y(NEW), "a joint covariance needs Gaussian noise"),
        (lambda: linear.predict(NEW, return_std=True, return_cov=True), "ask for one of return_std and return_cov"),
        (lambda: linear.sample_y(NEW, n_samples=0), "n_samples=0"),
    ):
        with pytest.raises(ValueError, match=line):
            call()
