"""Numbers in docs/results/leaderboard.md are those of the boards of the committed records."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gpbench.analysis.divisions import lost
from gpbench.api.leaderboards import board_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "results" / "leaderboard.md").read_text(encoding="utf-8").split())
DIVISIONS = ("regression", "classification")


@cache
def board(division, seconds):
    return board_of(division, seconds, False, ROOT / "results" / "leaderboard" / "records.parquet")


def losses(division, seconds, is_counted):
    """The number of runs of the methods that count, and how many of them are lost, by reason."""
    runs = [record for (method, _, _), record in board(division, seconds).runs.items() if is_counted(method, record)]
    reasons = Counter(reason.split(" (")[0] for record in runs if (reason := lost(record)))
    return len(runs), reasons["over time"], reasons["out of memory"]


def own(method, record):
    return not record.imported


def test_the_page_has_the_lost_runs_of_gpbench_within_10_seconds():
    n, late, memory = losses("regression", 10, own)
    assert f"In regression {late} of {n} runs were late, and {memory} of gpr out of memory." in PAGE
    assert losses("regression", 10, lambda method, record: method == "gpr")[2] == memory
    n, late, memory = losses("classification", 10, own)
    assert f"In classification {late} of {n} were late and {memory} out of memory, all on airline and MNIST" in PAGE


def test_the_page_has_the_lost_runs_of_other_programs_within_10_seconds():
    late = lambda name: [losses(division, 10, lambda method, _: method == name)[1] for division in DIVISIONS]
    runs = [losses(division, 10, lambda method, _: method == "gpboost")[0] for division in DIVISIONS]
    words = {"gpboost": "GPBoost was late in", "random_forest": "the forest in", "pygam": "pygam in"}
    text = ", ".join(f"{word} {late(name)[0]} and {late(name)[1]}" for name, word in words.items())
    assert f"Of {runs[0]} and {runs[1]} runs {text}" in PAGE
    assert "GPyTorch in one and none, boosted trees in none and one." in PAGE
    assert (late("gpytorch_svgp"), late("boosted_trees")) == ([1, 0], [0, 1])


def test_the_page_has_the_seconds_of_compilation_and_training():
    def total(division, part):
        return sum(r.seconds.get(part, 0.0) for r in board(division, 10).runs.values() if not r.imported)

    compiled, trained = ([f"{total(division, part):,.0f}" for division in DIVISIONS] for part in ("compile", "train"))
    assert f"compiled for {compiled[0]} and {compiled[1]} s, and trained for {trained[0]} and {trained[1]} s" in PAGE


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
