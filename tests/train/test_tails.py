"""Scores of targets above the threshold that a card names: of runs, and of another program's predictions."""

import numpy as np
import pandas
import pytest
from scipy.stats import norm

from gpbench.cli import main
from gpbench.records.store import Store

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, 200)
FRAME = pandas.DataFrame({"x": X, "y": 30.0 * np.sin(X) + 5.0 * RNG.normal(size=200)})
CARD = "name: tide\ntask: {}\nthreshold: {}\nsources:\n  - {{kind: file, path: tide.csv, target: y}}\n"


def folder_of(folder, threshold, task="regression"):
    (folder / "dataset").mkdir(exist_ok=True)
    (folder / "dataset" / "tide.yaml").write_text(CARD.format(task, threshold))
    FRAME.to_csv(folder / "tide.csv", index=False)
    return ["--config-dir", str(folder)]


def tail_crps(mean, std, y, threshold):
    grid = np.linspace(threshold, 400.0, 200_001)
    mean, std, y = mean[:, None], std[:, None], y[:, None]
    return np.trapezoid((norm.cdf(grid, mean, std) - (grid >= y)) ** 2, grid, axis=1)


@pytest.mark.parametrize("threshold", [0, 25.0])
def test_the_tail_of_a_run_is_scored_in_original_units_and_that_of_its_predictions_is_the_same(tmp_path, threshold):
    words, where = folder_of(tmp_path, threshold), [f"run.results={tmp_path}/r", "run.predictions=true"]
    assert main(["run", "method=linear", "dataset=tide", "split=0", *where, *words]) == 0
    [record] = Store(tmp_path / "r").all(whole=True)
    assert f"dataset.threshold={threshold:g}" in record.setting
    ours = Store(tmp_path / "r").predictions(record.id)
    mean, std, y = ours["mean"], np.sqrt(ours["variance"]), ours["target"]
    by_hand = np.where(y > threshold, norm.logpdf(y, mean, std), norm.logcdf(threshold, mean, std))
    assert record.metrics["tail_ll"] == pytest.approx(by_hand.mean(), rel=1e-6)
    assert record.metrics["tail_crps"] == pytest.approx(tail_crps(mean, std, y, threshold).mean(), rel=1e-3)
    assert record.row_stderr["tail_ll"] == pytest.approx(by_hand.std(ddof=1) / np.sqrt(len(y)), rel=1e-6)
    made = {
        "moments": {"mean": mean, "variance": std**2},
        "samples": {f"sample_{k}": mean + std * norm.ppf((k + 0.5) / 500) for k in range(500)},
        "quantiles": {f"quantile_{p}": mean + std * norm.ppf(p) for p in np.round(np.arange(1, 200) / 200, 3)},
    }
    for form, columns in made.items():
        frame = pandas.DataFrame({"dataset": "tide", "split": 0, "method": form, "row": ours["row"], **columns})
        frame.to_parquet(tmp_path / f"{form}.parquet")
        assert main(["import", str(tmp_path / f"{form}.parquet"), "--results", str(tmp_path / "r"), *words]) == 0
    for other in Store(tmp_path / "r").all(whole=True):
        assert other.metrics["tail_crps"] == pytest.approx(record.metrics["tail_crps"], rel=0.02), other.method
        assert ("tail_ll" in other.metrics) == (other.method in ("linear", "moments"))
        assert other.setting == f"dataset.threshold={threshold:g}"


def test_scores_of_two_thresholds_are_not_compared(tmp_path, capsys):
    words, where = folder_of(tmp_path, 0), [f"run.results={tmp_path}/r", "dataset=tide", "split=[0,1]"]
    for more in ([], ["dataset.threshold=9"], ["dataset.threshold=9.0"]):
        assert main(["run", "method=linear", *where, *more, *words]) == 0
    assert len(Store(tmp_path / "r").ids()) == 4  # 9 and 9.0 are one threshold
    sides = ["setting:dataset.threshold=0", "setting:dataset.threshold=9"]
    for verb in (["compare", *sides], ["rank"]):
        assert main([*verb, "--metric", "tail_crps", "--results", str(tmp_path / "r")]) == 2
        line = "runs on tide have dataset.threshold=0 or dataset.threshold=9: take those of one"
        assert line in capsys.readouterr().err
    assert main(["compare", *sides, "--metric", "rmse", "--results", str(tmp_path / "r")]) == 0


def test_a_threshold_is_of_regression(tmp_path, capsys):
    assert main(["run", "method=linear", "dataset=tide", *folder_of(tmp_path, 3.0, "count")]) == 2
    assert "`threshold` is a target of a regression, and the task is count" in capsys.readouterr().err
