"""Counts with exposures: expected counts are proportional to them, in training, predictions and scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy.special import gammaln
from scipy.stats import nbinom

from gpbench.cli import main
from gpbench.estimators import Regressor
from gpbench.methods.baselines.constant import Constant
from gpbench.methods.parts.variational import kl_of
from gpbench.records.store import Store
from gpbench.train import batches

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, 80)
DAYS = RNG.uniform(1.0, 40.0, 80)
Y = RNG.poisson(DAYS * np.exp(np.sin(2.0 * X) - 2.0)).astype(float)
FRAME = pandas.DataFrame({"days": DAYS, "x": X, "y": Y})
CARD = "name: beds\ntask: {}\nexposure: {}\nsources:\n  - {{kind: file, path: beds.csv, target: y}}\n"
POISSON = {"method.likelihood": "poisson", "method.inducing": 20}


def folder_of(folder, frame=FRAME, task="count", exposure="days"):
    (folder / "dataset").mkdir()
    (folder / "dataset" / "beds.yaml").write_text(CARD.format(task, exposure))
    frame.to_csv(folder / "beds.csv", index=False)
    return ["dataset=beds", "split=0", f"run.results={folder}/r", "--config-dir", str(folder)]


def test_the_bound_is_that_of_rates_times_exposures():
    """In closed form at the marginals of f, whose kernel has not seen the exposures."""
    model = Regressor("svi", options=POISSON, exposure=1).fit(np.column_stack([X, DAYS]), Y)
    from gpbench.estimators.compiled import programs_of

    method, state = programs_of(model.config_).method, jax.tree.map(jnp.asarray, model.state_)
    rows = np.column_stack([(X - X.mean()) / X.std(), np.log(DAYS)])
    data = batches.whole(jnp.asarray(rows), jnp.asarray(Y), 1, exposure=True)
    m, v = (np.asarray(array) for array in method.marginals(state, data.X))
    rate = float(state.parameters.likelihood.log_rate)
    terms = Y * (rate + m + np.log(DAYS)) - DAYS * np.exp(rate + m + v / 2) - gammaln(Y + 1)
    bound = terms.sum() - kl_of(state.parameters) + state.parameters.layer.log_prior()
    assert float(jax.jit(method.objective)(state, data)) == pytest.approx(float(bound), rel=1e-9)


@pytest.mark.parametrize("method", ["svi", "gam"])
def test_equal_exposures_change_nothing_and_a_double_one_doubles_the_mean(method):
    options = {"method.likelihood": "poisson", "method.steps": 10}  # more magnify rounding
    plain = Regressor(method, options=options).fit(X[:, None], Y)
    frame = pandas.DataFrame({"days": np.full(80, 3.0), "x": X})
    model = Regressor(method, options=options, exposure="days").fit(frame, Y)
    mean, std = model.predict(frame, return_std=True)
    np.testing.assert_allclose([mean, std], plain.predict(X[:, None], return_std=True), rtol=1e-6)
    np.testing.assert_allclose(model.predict(frame.assign(days=6.0)), 2.0 * mean, rtol=1e-9)


def test_the_unit_of_an_exposure_changes_no_score_of_constant():
    objectives = []
    for days in (DAYS, 1e6 * DAYS):
        rows = jnp.asarray(np.column_stack([X, np.log(days)]))
        data, method, key = batches.whole(rows, jnp.asarray(Y), 1, exposure=True), Constant(), jax.random.key(0)
        objectives.append(float(method.step(method.init(data, key=key), data, key=key)[1].objective))
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-9)


def test_runs_score_counts_at_their_exposures_also_from_streamed_minibatches(tmp_path, refused):
    words = folder_of(tmp_path)
    assert main(["run", "method=constant", "run.predictions=true", *words]) == 0
    store = Store(tmp_path / "r")
    ours = store.predictions(store.last().id)
    rest = np.setdiff1d(np.arange(80), ours["row"])
    rate = Y[rest].sum() / DAYS[rest].sum()
    np.testing.assert_allclose(ours["mean"], rate * DAYS[ours["row"]], rtol=1e-9)
    gaps = (Y[rest] - rate * DAYS[rest]) ** 2 - rate * DAYS[rest]
    shape = rate**2 * np.sum(DAYS[rest] ** 2) / np.sum(gaps)
    log_prob = nbinom.logpmf(Y[ours["row"]], shape, shape / (shape + ours["mean"]))
    np.testing.assert_allclose(ours["log_prob"], log_prob, rtol=1e-5)
    record = store.last()
    assert record.setting == "exposure=days"
    assert not {"excess_loss", "spread", "excess_rmse"} & (record.diagnostics or {}).keys()
    words += ["method=svi_minibatch", "method.batch_size=8", "method.steps=30", "run.save=true", "run.predictions=true"]
    assert main(["run", *words]) == 0
    trained = store.predictions((record := store.last()).id)
    assert main(["run", *words, "run.stream=true", "run.again=true"]) == 0
    np.testing.assert_allclose(store.predictions(record.id)["log_prob"], trained["log_prob"], rtol=1e-6)
    FRAME.drop(columns="y").iloc[trained["row"]].to_csv(tmp_path / "new.csv", index=False)
    predict = ["predict", "--last", "--results", f"{tmp_path}/r", "--data", f"{tmp_path}/new.csv"]
    predict += ["--config-dir", str(tmp_path), "--out", f"{tmp_path}/out.csv"]
    assert "whose column only a header tells" in refused(*predict, "--no-header", code=3)
    assert main(predict) == 0
    frame = pandas.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(frame["mean"], trained["mean"], rtol=1e-6)
    np.testing.assert_allclose(frame["rate"] * DAYS[trained["row"]], frame["mean"], rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "words", "line"),
    [
        ({"frame": FRAME.assign(days=np.arange(80.0))}, [], "`exposure: days` is not above 0 (row 1)"),
        ({"exposure": "nights"}, [], "`exposure: nights` must be an input of numbers"),
        ({"task": "regression"}, [], "`exposure: days` is for `task: count`"),
        ({}, ["run.keep=true"], "run.keep draws no counts with an exposure"),
    ],
)
def test_exposures_that_cannot_be_used_are_one_line(change, words, line, tmp_path, refused):
    code = 3 if change else 2
    assert line in refused("run", "method=svi", *words, *folder_of(tmp_path, **change), code=code)


def test_what_an_estimator_has_no_exposure_of_is_refused():
    rows = np.column_stack([X, DAYS])
    for message, options, exposure, inputs in (
        ("exposure is for counts", None, 1, rows),
        ("exposure=2 is none of 0, 1", POISSON, 2, rows),
        ("must be without gaps, beside another", POISSON, 0, rows[:, :1]),
        ("must be above 0", POISSON, 0, rows),
    ):
        with pytest.raises(ValueError, match=message):
            Regressor("svi", options=options, exposure=exposure).fit(inputs, Y)
