"""Samples, quantiles and bins of other programs: their scores, what they lack, and faults in a line."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from submitted import bring, data, records

from gpbench.cli import main
from gpbench.core import forms
from gpbench.records.store import Store

RNG = np.random.default_rng(0)
DATASET, _, TEST = data("sinc")
Y = DATASET.y[TEST]
MEAN, STD = Y + 0.2 * RNG.normal(size=len(Y)), 0.3
LEVELS = [round(k / 40, 3) for k in range(1, 40)]


def crps(z):
    """Of a standard normal distribution at z."""
    return z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)


def numbered(start, columns):
    return {f"{start}_{k}": column for k, column in enumerate(columns.T)}


def table(**columns):
    return pd.DataFrame({"dataset": "sinc", "split": 0, "method": "theirs", "row": TEST} | columns)


def moments():
    return table(mean=MEAN, variance=STD**2)


def samples():
    return table(**numbered("sample", MEAN[:, None] + STD * RNG.normal(size=(len(Y), 4000))))


def quantiles(levels=LEVELS):
    return table(**{f"quantile_{p}": MEAN + STD * norm.ppf(p) for p in levels})


def bins(half=3.0):
    edges = np.tile(np.linspace(-half, half, 1201), (len(Y), 1))
    probs = np.diff(norm.cdf((edges - MEAN[:, None]) / STD), axis=1)
    return table(**numbered("edge", edges), **numbered("bin", probs / probs.sum(axis=1, keepdims=True)))


def test_the_score_of_samples_is_unbiased_and_the_usual_one_is_not():
    for count in (2, 10):
        draws, y = RNG.normal(size=(100_000, count)), np.full(100_000, 0.7)
        score = forms.samples(draws, y)["crps"]
        error = score.std() / np.sqrt(len(y))
        assert abs(score.mean() - crps(0.7)) < 4 * error
        within = np.abs(draws[:, :, None] - draws[:, None, :]).mean(axis=(1, 2))
        assert np.mean(np.abs(draws - y[:, None]).mean(axis=1) - 0.5 * within) - crps(0.7) > 20 * error


def test_the_rank_of_a_target_among_samples_is_uniform():
    draws = RNG.normal(size=(50_000, 4))
    arrays = forms.samples(draws[:, 1:], draws[:, 0])
    np.testing.assert_allclose(np.bincount(np.rint(4 * arrays["below"]).astype(int)) / len(draws), 0.25, atol=0.01)
    np.testing.assert_allclose(arrays["cdf"] - arrays["below"], 0.25)


@pytest.mark.parametrize(("count", "score"), [(9, 0.261), (19, 0.268), (99, 0.2692)])
def test_quantiles_have_the_score_of_the_trapezium_rule(count, score):
    levels, y = [k / (count + 1) for k in range(1, count + 1)], norm.ppf((np.arange(4000) + 0.5) / 4000)
    q = np.tile(norm.ppf(levels), (len(y), 1))
    exact = crps(y).mean()
    made = forms.quantiles(levels, RNG.permuted(q, axis=1), y)  # crossed ones are sorted
    assert made["crps"].mean() / exact == pytest.approx(score / 0.2693, abs=0.02)
    assert not forms.quantiles(levels[:8], q[:, :8], y).keys() & {"crps", "cdf"} and "low95" not in made
    assert "crps" not in forms.quantiles([0.5 + k / 1000 for k in range(9)], q[:, :9], y)
    atom = forms.quantiles(levels, np.zeros((1, count)), np.zeros(1))
    assert (atom["below"], atom["cdf"], atom["crps"]) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("y", [-3.0, -1.0, -0.5, 1.0, 3.9, 6.0])
def test_bins_are_scored_as_by_a_fine_grid_of_their_distribution_function(y):
    edges, probs = np.array([[-1.0, 0.5, 2.0, 4.0]]), np.array([[0.2, 0.5, 0.3]])
    made = forms.bins(edges, probs, np.array([y]))
    grid = np.linspace(-10.0, 10.0, 400_001)
    F = np.interp(grid, edges[0], [0.0, 0.2, 0.7, 1.0])
    assert made["crps"][0] == pytest.approx(np.trapezoid((F - (grid >= y)) ** 2, grid), abs=1e-4)
    for least in (-2.0, 0.2, 2.0, 3.0):  # the part above it, within a bin too
        part = np.trapezoid(np.where(grid >= least, (F - (grid >= max(y, least))) ** 2, 0.0), grid)
        tail = forms.bins(*forms.bins_above(edges, probs, least), np.maximum([y], least))["crps"][0]
        assert tail == pytest.approx(part, abs=1e-4)
    density = {-1.0: 0.2 / 1.5, -0.5: 0.2 / 1.5, 1.0: 0.5 / 1.5, 3.9: 0.3 / 2.0}
    assert made["log_prob"][0] == pytest.approx(np.log(density[y]) if y in density else -np.inf)
    slope = np.diff(F) / np.diff(grid)
    middle = 0.5 * (grid[1:] + grid[:-1])
    mean = np.sum(slope * middle) * (grid[1] - grid[0])
    assert made["mean"][0] == pytest.approx(mean, abs=1e-4)
    assert made["var"][0] == pytest.approx(np.sum(slope * (middle - mean) ** 2) * (grid[1] - grid[0]), abs=1e-3)


def test_the_forms_of_one_gaussian_score_as_its_moments_do_or_say_what_they_lack(tmp_path, capsys):
    made = {}
    for form in (moments, samples, quantiles, bins):
        folder = tmp_path / form.__name__
        folder.mkdir()
        assert bring(folder, form()) == 0
        [made[form]] = records(folder)
    exact = made[moments].metrics
    for form, tolerance in ((samples, 0.03), (quantiles, 0.01), (bins, 0.01)):
        record = made[form]
        lacking = {name for name, value in record.metrics.items() if value is None}
        assert lacking == set(record.undefined or {})
        for name in exact.keys() - lacking - {"coverage_error", "coverage95"}:
            assert record.metrics[name] == pytest.approx(exact[name], rel=tolerance, abs=tolerance / 10), (form, name)
        kept = Store(tmp_path / form.__name__ / "results").predictions(record.id)
        assert {"cdf", "low95", "high95"} <= kept.keys() and ("log_prob" in kept) == (form is bins)
        inside = np.mean((kept["low95"] <= kept["target"]) & (kept["target"] <= kept["high95"]))
        assert inside == pytest.approx(record.metrics["coverage95"])
    for form, kinds in ((samples, {"predictions", "calibration", "residuals"}), (quantiles, {"calibration"})):
        words = ["plot", "--last", "--kind", "all", "--out", str(tmp_path)]
        assert main([*words, "--results", str(tmp_path / form.__name__ / "results")]) == 0
        out = capsys.readouterr().out
        assert kinds == {kind for kind in ("predictions", "calibration", "residuals") if f"-{kind}.png" in out}
    no_density = dict.fromkeys(("test_ll", "mnlp", "ll_std"), "no density")
    assert made[bins].undefined is None and made[samples].undefined == no_density
    assert made[quantiles].undefined == no_density | dict.fromkeys(("rmse", "rmse_std", "nmse"), "no mean")
    # a few levels have neither a score nor an interval, and a mean beside them counts
    assert bring(tmp_path, quantiles([0.1, 0.5, 0.9]).assign(mean=MEAN)) == 0
    [few] = records(tmp_path)
    assert few.metrics["rmse"] == pytest.approx(exact["rmse"])
    assert few.undefined["crps"] == "fewer than 9 quantiles from 0.1 to 0.9"
    capsys.readouterr()
    assert bring(tmp_path, bins(half=0.4), "--again", name="narrow.parquet") == 0
    [narrow] = records(tmp_path)
    outside = int(np.sum(np.abs(Y) > 0.4))
    assert narrow.metrics["test_ll"] is None and not narrow.undefined and narrow.diagnostics["no_density"] == outside
    assert f"{outside} test rows lie where the predictive density is 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda: samples().drop(columns="sample_7"), "no column sample_7 with numbers"),
        (lambda: samples().assign(mean=MEAN), "column mean does not belong there"),
        (lambda: table(sample_0=MEAN - 1e6, sample_1=MEAN + 1e6), "has 2 samples: give 39 or more"),
        (lambda: quantiles().assign(**{"quantile_.50": MEAN}), "has a level twice, or 0: leave it out"),
        (lambda: bins().drop(columns="edge_1200"), "no column edge_1200 with numbers"),
        (lambda: bins().assign(edge_5=9.0), "has edges that do not rise"),
        (lambda: bins().assign(bin_5=-1.0), "has a negative probability"),
        (lambda: bins().assign(bin_600=0.9), "has probabilities that do not sum to one"),
        (lambda: quantiles().assign(**{"quantile_0.5": np.inf}), "quantile_0.5 that is not finite"),
        (lambda: quantiles().rename(columns={"quantile_0.5": "quantile_50"}), "unknown column 'quantile_50'"),
    ],
)
def test_a_form_with_a_fault_is_one_line_and_records_nothing(wrong, line, tmp_path, capsys):
    assert bring(tmp_path, wrong()) != 0
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1 and not records(tmp_path)
