"""Numbers in docs/results/leaderboard.md are those of the boards of the committed records."""

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from scipy.stats import ttest_1samp

from gpbench.analysis.divisions import lost
from gpbench.analysis.statistics import holm
from gpbench.api.leaderboards import board_of

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "results" / "leaderboard" / "records.parquet"
PAGE = " ".join((ROOT / "docs" / "results" / "leaderboard.md").read_text(encoding="utf-8").split())
DIVISIONS = ("regression", "classification")


@cache
def board(division, seconds):
    return board_of(division, seconds, False, RECORDS)


def losses(division, seconds, is_counted):
    """The number of runs of the methods that count, and how many of them are lost, by reason."""
    runs = [record for (method, _, _), record in board(division, seconds).runs.items() if is_counted(method, record)]
    reasons = Counter(reason.split(" (")[0] for record in runs if (reason := lost(record)))
    return len(runs), reasons["over time"], reasons["out of memory"]


def own(method, record):
    return not record.imported


def test_the_page_has_the_lost_runs_of_gpbench_within_10_seconds():
    n, late, memory = losses("regression", 10, own)
    assert f"In regression {late} of {n} runs were late, and {memory} of gpr were refused" in PAGE
    assert losses("regression", 10, lambda method, record: method == "gpr")[2] == memory
    n, late, memory = losses("classification", 10, own)
    assert (
        f"In classification {late} of {n} were late and {memory} refused for memory, all on airline and MNIST" in PAGE
    )


def test_the_page_has_the_lost_runs_of_other_programs_within_10_seconds():
    late = lambda name: [losses(division, 10, lambda method, _: method == name)[1] for division in DIVISIONS]
    runs = [losses(division, 10, lambda method, _: method == "gpboost")[0] for division in DIVISIONS]
    words = {"gpboost": "GPBoost lost", "random_forest": "the forest", "pygam": "pygam"}
    text = ", ".join(f"{word} {late(name)[0]} and {late(name)[1]}" for name, word in words.items())
    assert f"Of {runs[0]} and {runs[1]} runs {text}" in PAGE
    assert "GPyTorch 1 and 0, boosted trees 0 and 1." in PAGE
    assert (late("gpytorch_svgp"), late("boosted_trees")) == ([1, 0], [0, 1])
    records = [record for division in DIVISIONS for record in board(division, 10).runs.values()]
    stand_ins = sum(bool(record.imported) and record.cpu_seconds == 40 for record in records)
    total = sum(bool(record.imported and lost(record)) for record in records)
    assert f"{stand_ins} of these {total} left no predictions" in PAGE


def test_the_page_has_the_seconds_of_the_stages_of_runs():
    own = [[r for r in board(division, 10).runs.values() if not r.imported] for division in DIVISIONS]
    hours = [f"{sum(r.cpu_seconds for r in runs) / 3600:.1f}" for runs in own]
    assert "gpbench's runs took {} and {} CPU hours".format(*hours) in PAGE
    stages = {"init": "for data and initial states", "search": "for searches", "compile": "for compilation"}
    for stage, words in {**stages, "train": "for training"}.items():
        seconds = [f"{sum(r.seconds.get(stage, 0.0) for r in runs):,.0f}" for runs in own]
        pattern = r"{} and {} (s )?{}".format(*seconds, words)
        assert re.search(pattern, PAGE), pattern


def from_10_to_60(division, metric):
    """Both boards, and changes of a metric of each method of gpbench without lost runs: means over splits by set."""
    short, long = (board_of(division, seconds, True, RECORDS) for seconds in (10, 60))
    by_method: dict[str, dict[str, list[float]]] = {}
    for (method, dataset, split), record in long.runs.items():
        if not record.imported:
            values = by_method.setdefault(method, {}).setdefault(dataset, [])
            before = short.runs[method, dataset, split]
            values.append(math.nan if lost(record) or lost(before) else record.metrics[metric] - before.metrics[metric])
    changes = {method: [fmean(values) for values in by_set.values()] for method, by_set in by_method.items()}
    return short, long, {method: values for method, values in changes.items() if not any(map(math.isnan, values))}


def test_the_page_has_what_changes_in_regression_from_10_to_60_seconds():
    short, long, changes = from_10_to_60("regression", "test_ll")
    assert not any(map(lost, long.runs.values()))
    own = {key: record for key, record in long.runs.items() if not record.imported}
    assert {key[:2] for key in own if lost(short.runs[key])} == {("gpr", "kin8nm"), ("vif", "kin8nm")}
    (first, a), (second, b) = sorted(((m, fmean(v)) for m, v in changes.items()), key=lambda pair: -pair[1])[:2]
    assert f"Of the other {len(changes)} methods {first} and {second} gain most" in PAGE
    assert f"rises by {a:.3f} and {b:.3f}" in PAGE


def test_the_page_has_what_changes_in_classification_from_10_to_60_seconds():
    """Means over the six data sets; no run of gpbench is lost there within either budget."""
    _, long, changes = from_10_to_60("classification", "nll")
    means = {method: fmean(values) for method, values in changes.items()}
    for method in ("odsvgp", "svdgp", "qsgp"):
        assert f"{-means.pop(method):.3f} for {method}" in PAGE
    assert len(means) == 12 and f"at most {max(map(abs, means.values())):.3f} for the twelve others" in PAGE
    moved = [values for values in changes.values() if any(values)]
    p_values = [ttest_1samp(values, 0).pvalue for values in moved] + [1.0] * (len(changes) - len(moved))
    assert min(holm(p_values)) > 0.05
    lost_runs = Counter(key[:2] for key, record in long.runs.items() if lost(record))
    assert lost_runs == {("gpboost", "digits_odd_even"): 3, ("gpboost", "image"): 2, ("pygam", "digits_odd_even"): 3}


def test_the_page_has_the_least_significant_difference():
    least = [f"{board(division, 10).scores.least_difference():.0f}" for division in DIVISIONS]
    assert "it takes {} and {} points".format(*least) in PAGE


@pytest.mark.parametrize(
    ("division", "methods", "text"),
    [
        ("regression", ("boosted_trees", "linear"), "in {} and {} % of the draws of data sets of regression"),
        ("classification", ("svi_minibatch", "random_forest"), "in {} and {} % of those of classification"),
    ],
)
def test_the_page_has_shares_of_draws_on_the_pareto_front(division, methods, text):
    front = dict(zip(board(division, 10).methods, board(division, 10).front))
    assert text.format(*(f"{100 * front[name]:.0f}" for name in methods)) in PAGE
    assert {name for name, share in front.items() if share > 0.85} == {*methods}
