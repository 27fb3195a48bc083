"""Numbers in docs/results/leaderboard.md are those of the boards of the committed records."""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from gpbench.analysis.board import correlation, stability
from gpbench.analysis.leaderboard import lost
from gpbench.api.leaderboards import board_of
from gpbench.experiments import definition

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


def test_the_page_has_the_lost_runs_within_10_seconds():
    n, late, memory = losses("regression", 10, own)
    assert f"In regression {late} of {n} runs were late, and {memory} of gpr were refused" in PAGE
    assert losses("regression", 10, lambda method, record: method == "gpr")[2] == memory
    n, late, memory = losses("classification", 10, own)
    assert (
        f"In classification {late} of {n} were late and {memory} refused for memory, all on airline and MNIST" in PAGE
    )


def test_the_page_has_the_share_of_compilation():
    own = [[r for r in board(division, 10).runs.values() if not r.imported] for division in DIVISIONS]
    shares = [
        sum(r.seconds.get("compile", 0.0) for r in runs) / sum(sum(r.seconds.values()) for r in runs) for runs in own
    ]
    assert "{:.0f} and {:.0f} % of the seconds of gpbench's runs are comp".format(*(100 * s for s in shares)) in PAGE


def standing(division, seconds):
    """How many pairs are decided, how many each method beats and is beaten by, and which are not the best."""
    runs = board_of(division, seconds, seconds == 60, RECORDS)
    better, K = runs.board.better, len(runs.methods)
    counts = dict(zip(runs.methods, zip(map(int, better.sum(1)), map(int, better.sum(0)))))
    behind = [runs.methods[k] for k in runs.board.order if not runs.board.may_be_best[k]]
    return f"{better.sum()} of {K * (K - 1) // 2}", counts, behind, f"{', '.join(behind[:-1])} and {behind[-1]}"


def test_the_page_has_how_many_pairs_are_decided_and_which_methods_may_be_the_best():
    decided, counts, behind, names = standing("regression", 10)
    text = f"{decided} pairs of methods are decided in regression, where {26 - len(behind)} of 26 methods may"
    assert text in PAGE and f"{names} are shown not to be the best" in PAGE
    ahead = {"ensemble": 13, "laplace": 9, "svgp": 8, "alacarte": 8, "boosted_trees": 6, "dgp": 6}
    assert {name: counts[name] for name in ahead} == {name: (number, 0) for name, number in ahead.items()}
    assert "than 13 other methods, laplace than 9, svgp and alacarte than 8, boosted trees and dgp than 6" in PAGE
    decided, counts, behind, names = standing("classification", 10)
    assert f"{decided} in classification, where {20 - len(behind)} of 20 may" in PAGE
    assert f"{names} are shown not to be the best" in PAGE
    ahead = {"svi_minibatch": 6, "dsdgp": 5, "sep_minibatch": 3, "gpytorch_svgp": 3, "dgp": 1}
    assert {name: better for name, (better, _) in counts.items() if better} == ahead
    assert "to be better than 6 others, dsdgp than 5, sep_minibatch and GPyTorch's sparse GPs than 3" in PAGE
    decided, counts, behind, _ = standing("regression", 60)
    against = sum(counts[name][1] for name in ("qsgp", "linear", "gam", "pygam"))
    text = f"{decided} pairs are decided, {against} of them against qsgp, linear, gam and pygam"
    assert f"{text}; {26 - len(behind)} methods may be the best" in PAGE
    decided, counts, behind, _ = standing("classification", 60)
    assert (
        f"{decided} pairs are decided: seven methods are shown to be better than qsgp, and dsdgp than logistic" in PAGE
    )
    assert (behind, counts["qsgp"], counts["logistic"]) == (["logistic", "qsgp"], (0, 7), (0, 1))


def test_the_page_has_the_runs_that_end_after_one_step():
    counts = {}
    for division in DIVISIONS:
        kept = {key: r for key, r in board(division, 10).runs.items() if not (r.imported or lost(r))}
        iterative = {method for (method, _, _), record in kept.items() if (record.steps or 0) > 1}
        counts[division] = len(kept), [key for key, r in kept.items() if key[0] in iterative and (r.steps or 0) <= 1]
    n, ended = counts["regression"]
    assert f"{len(ended)} of the {n} runs of gpbench in regression" in PAGE
    of_methods = Counter(method for method, _, _ in ended)
    assert of_methods.most_common(3) == [("fitc_gp", 12), ("vsgpr", 11), ("svi", 10)]
    large = {"kin40k", "protein", "kegg", "keggu"}
    assert {dataset for method, dataset, _ in ended if of_methods[method] > 9} == large
    assert [key[1] for key in ended if key[0] == "alacarte"] == ["hcep"] * 3 and len(of_methods) == 4 + 6
    assert "of vsgpr, fitc_gp and svi above 25,000 rows, of alacarte on hcep and of six other methods" in PAGE
    assert [key[:2] for key in counts["classification"][1]] == [("dgp", "mnist_odd_even")]
    assert board("classification", 10).runs["dgp", "mnist_odd_even", 0].metrics["nll"] == pytest.approx(0.691, abs=5e-4)


def test_the_page_has_shares_the_front_and_the_stability_of_the_order():
    runs = {division: board(division, 10) for division in DIVISIONS}
    first = [f"{100 * max(each.board.means):.0f} %" for each in runs.values()]
    text = "largest share of the others in regression ({}), sparse variational GPs on minibatches (`svi_minibatch`) in"
    assert f"{text} classification ({{}})".format(*first) in PAGE
    fronts = [[name for name, is_on in zip(each.methods, each.on_front) if is_on] for each in runs.values()]
    assert fronts[0] == ["boosted_trees", "ensemble", "laplace", "linear"]
    assert fronts[1] == ["boosted_trees", "random_forest", "sep", "svi", "svi_minibatch"]
    assert (
        "Boosted trees, ensemble, laplace and linear are on the Pareto front of share and seconds in regression" in PAGE
    )
    assert "boosted trees, random forest, sep, svi and svi_minibatch in classification" in PAGE
    assert min(min(stability(each.board)[0]) for each in runs.values()) == pytest.approx(0.95, abs=0.005)
    thirds = [np.quantile(stability(each.board)[1], 0.05) for each in runs.values()]
    assert "without a third of them of {:.2f} and {:.2f} in 95 %".format(*thirds) in PAGE
    by = lambda division, metric: correlation(runs[division].board.means, runs[division].boards[metric].means)
    others = by("regression", "coverage_error"), by("classification", "ece"), by("regression", "rmse")
    text = "by calibration errors {:.2f} and {:.2f}, by RMSE {:.2f}, by error in classification {:.2f}"
    assert text.format(*others, by("classification", "error")) in PAGE


@pytest.mark.parametrize("division", DIVISIONS)
def test_the_head_of_a_board_counts_the_methods_whose_defaults_were_others(division):
    experiment = definition.read(f"gpbench/leaderboard_{division}")
    cards = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "conf" / "method").glob("*.yaml")}
    jobs = {job["method"]: job for job in experiment.jobs("full")}
    default = lambda name, key: cards[name].get(key, cards["svdgp"].get(key))  # odsvgp has those of svdgp
    fixed = [(name, key, job[key]) for name, job in jobs.items() for key in job if key.startswith("method.")]
    changed = {name for name, key, value in fixed if default(name, key[7:]) != yaml.safe_load(value)}
    assert f"{len(changed)} of {len(jobs)} methods of gpbench have others now" in experiment.facts["full"]["settings"]
    assert f"{len(changed)} of the {len(jobs)}" in PAGE
