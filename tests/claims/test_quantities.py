"""Numbers from traces and kept arrays, in arrays whose numbers are known, and as metrics of clauses."""

import itertools
import json
import math

import numpy as np
import pytest
import truths
from samples import sample
from truths import A_B

from gpbench.claims import quantities as kept
from gpbench.claims import report
from gpbench.claims.quantities import Quantity
from gpbench.errors import ConfigError

TRACE = {"step": np.array([1, 2, 5, 10]), "seconds": np.array([0.5, 1.0, 2.5, 5.0])}
TRACE["nll"] = np.array([0.7, 0.5, 0.6, 0.3], np.float32)


def quantity(content):
    return Quantity.read(content, "mine")


def until(metric, name, side, level):
    return {"metric": metric, "until": name, side: level}


def test_numbers_of_a_trace_and_wrong_ones_are_one_line():
    for content, text, value in (
        ({"metric": "nll", "step": 1}, "nll at step 1", 0.7),
        ({"metric": "nll", "step": 9}, "nll at step 9", 0.6),
        ({"metric": "nll", "seconds": 1.7}, "nll after 1.7 seconds", 0.5),
        ({"metric": "nll", "seconds": 0.1}, "nll after 0.1 seconds", None),
        ({"metric": "rmse", "step": 1}, "rmse at step 1", None),
        ({"metric": "seconds", "step": 5}, "seconds at step 5", 2.5),
        (until("steps", "nll", "below", 0.55), "steps until nll below 0.55", 2),
        (until("seconds", "nll", "below", 0.4), "seconds until nll below 0.4", 5),
        (until("steps", "nll", "above", 0.65), "steps until nll above 0.65", 1),
        (until("steps", "nll", "below", 0.1), "steps until nll below 0.1", math.inf),
        (until("seconds", "rmse", "below", 1), "seconds until rmse below 1", None),
    ):
        read = quantity(content)
        assert read.value(TRACE) == (value if value is None else pytest.approx(value)), text
        assert read.value({}) is None and str(read) == text and read.is_of_arrays
        assert read.is_of_seconds == ("seconds" in text)  # which depend on the machine
    later = {name: values[1:] for name, values in TRACE.items()}
    assert quantity(until("steps", "nll", "below", 0.55)).value(later) is None
    assert quantity(until("seconds", "nll", "below", 0.4)).value(later) == 5
    read = [quantity(name) for name in ("nll", "seconds", "objective", "diagnostics.relevant")]
    assert not any(one.is_of_arrays for one in read) and [one.is_of_seconds for one in read] == [0, 1, 0, 0]
    for content, message in (
        ("nll at step 10", "write a number of a trace as {metric: nll, step: 10}"),
        ({"metric": "nll"}, "give one of step and seconds"),
        ({"metric": "nll", "step": 1, "seconds": 1}, "give one of step and seconds"),
        ({"metric": "steps", "until": "nll"}, "give one of below and above"),
        ({"metric": "epochs", "until": "nll", "below": 1}, "must be steps or seconds"),
        ({"metric": "nll", "setp": 1}, "unknown key 'setp'; did you mean step"),
    ):
        with pytest.raises(ConfigError, match=message):
            quantity(content)


def judge(folder, clause, arrays, groups=None):
    """The verdict on a clause about runs of a and b, of which these are the arrays by id; `groups` has their sizes."""
    common = {"metrics": {"nll": 0.3}, "train_rows": 90, "test_rows": 10, "split_set": "random90"}
    records = [
        sample(f"{m}{k}", method=m, split=k, group=(groups or {}).get(m, 1), **common)
        for m, k in itertools.product("ab", range(4))
    ]
    return truths.judge(folder, [clause], records, arrays=arrays)


def traces(level):
    """b is twice as slow as a in steps; and never gets below `level`."""
    rng = np.random.default_rng(1)
    fall = 0.7 * 0.9 ** np.arange(40)
    return {
        f"{m}{k}": {
            "step": np.arange(1, 21),
            "seconds": np.arange(1, 21) * (1.0 if m == "a" else 3.0),
            "nll": np.maximum(fall[:40:2] if m == "a" else fall[:20], level if m == "b" else 0) + 1e-4 * rng.normal(),
        }
        for m, k in itertools.product("ab", range(4))
    }


def test_a_clause_about_traces(tmp_path):
    seconds_of_3 = {"metric": "seconds", "step": 3}
    for clause, word in (
        ({"difference": {"metric": "nll", "step": 3}, "below": -0.1}, "holds"),
        ({"difference": {"metric": "nll", "seconds": 3}, "above": 0}, "fails"),
        ({"ratio": until("steps", "nll", "below", 0.3), "between": [0.3, 0.7]}, "holds"),
        ({"ratio": until("seconds", "nll", "below", 0.3), "above": 0.5}, "fails"),
        ({"ratio": until("seconds", "nll", "below", 0.05), "below": 1}, "leans for"),  # b never is: infinitely later
        ({"ratio": until("seconds", "nll", "below", 0.3), "against": seconds_of_3, "below": 1}, "holds"),
    ):
        verdict = judge(tmp_path, {**clause, **A_B}, traces(0.1))
        assert verdict.word == word, clause
        json.dumps(report.as_dict(verdict), allow_nan=False)


def test_a_run_has_its_share_of_the_seconds_of_its_group_and_one_without_traces_is_not_run(tmp_path):
    """Those of the traces of b are three times those of a."""
    clause = {"ratio": {"metric": "seconds", "step": 5}, **A_B, "above": 0.1}
    for groups, ratio in (({}, 1 / 3), ({"b": 3}, 1), ({"a": 2}, 1 / 6)):
        (number,) = judge(tmp_path, clause, traces(0.1), groups).clauses[0].numbers
        assert math.exp(number.estimate.value) == pytest.approx(ratio)
    verdict = judge(tmp_path, {"difference": {"metric": "nll", "step": 3}, **A_B, "below": 0}, {})
    assert verdict.word == "not run" and "no trace" in verdict.reason
    misspelt = {"ratio": {"metric": "nl", "step": 1}}
    for clause in ({"comparison": "inducing_distanc"}, {"ratio": "kept.boundary_distanc"}, misspelt):
        with pytest.raises(ConfigError, match=r"distance|'nl'.*nll"):
            judge(tmp_path, {**clause, **A_B, "below": 1}, traces(0.1))


def plane(boundary, points):
    """A run whose classes change at x = boundary, on a grid of spacing 0.1, with rows in its squares."""
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 2, indexing="ij"), -1).reshape(-1, 2)
    second = (grid[:, 0] > boundary).astype(float)
    rows = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    log_probs = np.log(np.stack([0.9 - 0.8 * second, 0.1 + 0.8 * second], 1))
    places = {"kept_grid": grid, "kept_inducing": np.array(points, float), "kept_X": rows}
    return places | {"kept_log_probs": log_probs}


def test_distances_of_points_and_classes_are_those_of_their_definitions_and_curves_have_one_grid():
    run = plane(0.01, [[0.25, 0.0], [-0.45, 0.5], [0.95, -0.9]])
    assert kept.boundary_distance(run) == pytest.approx(0.5, abs=1e-9)  # the boundary is at 0.05
    assert kept.boundary_distance(plane(7, [[0, 0]])) is None
    a, b = np.random.default_rng(3).normal(size=(2, 5, 2))
    expected = min(np.linalg.norm(a - b[list(p)], axis=1).mean() for p in itertools.permutations(range(5)))
    assert kept.COMPARISONS["inducing_distance"]({"kept_inducing": a}, {"kept_inducing": b}) == pytest.approx(expected)
    assert kept.COMPARISONS["inducing_distance"]({"kept_inducing": a}, {"kept_inducing": b[:4]}) is None
    a, b = plane(-0.01, [[0, 0]]), plane(0.49, [[0, 0]])
    between = np.mean((a["kept_X"][:, 0] > -0.05) & (a["kept_X"][:, 0] < 0.45))
    assert kept.COMPARISONS["class_agreement"](a, b) == pytest.approx(1 - between)
    assert kept.COMPARISONS["class_agreement"](a, a) == 1
    run, other = curves()
    assert kept.COMPARISONS["std_correlation"](run, other) == pytest.approx(1)
    assert kept.COMPARISONS["std_ratio"](run, other) == kept.COMPARISONS["std_ratio"](other, run) == pytest.approx(2)
    assert kept.COMPARISONS["mean_distance"](run, other) == pytest.approx(0.3)
    assert kept.COMPARISONS["std_ratio"](run, {**other, "kept_grid": 2 * run["kept_grid"]}) is None


@pytest.mark.parametrize("order", [0, 1])
def test_a_row_has_the_class_of_the_grid_point_that_is_nearest_of_all(order):
    rng = np.random.default_rng(4)
    axes = np.cumsum(rng.uniform(0.1, 1, 12)), np.cumsum(rng.uniform(0.1, 1, 7))
    grid = np.stack(np.meshgrid(*axes, indexing=["ij", "xy"][order]), -1).reshape(-1, 2)[:: 1 - 2 * order]
    rows = rng.uniform(-1, 9, size=(300, 2))
    log_probs = np.log(rng.dirichlet([1, 1, 1], (2, len(grid))))
    a, b = ({"kept_grid": grid, "kept_X": rows, "kept_log_probs": values} for values in log_probs)
    nearest = [min(range(len(grid)), key=lambda g: math.dist(row, grid[g])) for row in rows]
    classes = [run["kept_log_probs"].argmax(axis=1)[nearest] for run in (a, b)]
    assert kept.COMPARISONS["class_agreement"](a, b) == np.mean(classes[0] == classes[1])
    assert kept.COMPARISONS["class_agreement"](a, {**b, "kept_grid": grid[:-1]}) is None  # no regular grid


def curves():
    """Two runs with twice the standard deviation and a mean that is larger by 0.3."""
    x = np.linspace(-3, 3, 61)[:, None]
    shape = 1 + x[:, 0] ** 2
    run = {"kept_grid": x, "kept_var": shape, "kept_mean": np.sin(x[:, 0]), "kept_X": np.array([[-1.0], [1.0]])}
    return run, {**run, "kept_var": 4 * shape, "kept_mean": run["kept_mean"] + 0.3}


@pytest.mark.parametrize("pair", [curves(), (plane(0.01, [[0.2, 0.1]]), plane(0.3, [[0.4, 0.5]]))])
def test_extracts_give_the_numbers_of_the_arrays(pair):
    of_extracts = [kept.extracts(run) for run in pair]
    assert not any(extracts.keys() & run.keys() for extracts, run in zip(of_extracts, pair))
    assert kept.extracts(of_extracts[0]) == of_extracts[0]
    for compare in kept.COMPARISONS.values():
        assert compare(*of_extracts) == compare(*pair) == compare(pair[0], of_extracts[1])
    for name in kept.SUMMARIES:
        assert kept.summary(of_extracts[0], name) == kept.SUMMARIES[name](pair[0]) == kept.summary(pair[0], name)


def test_a_number_of_kept_arrays_is_averaged_over_splits(tmp_path):
    splits = {f"{m}{k}": plane(0.01 + 0.1 * k, [[0.65 if m == "a" else 0.85, 0]]) for m in "ab" for k in range(4)}
    whole, extracts = (
        judge(tmp_path, {"ratio": "kept.boundary_distance", **A_B, "below": 1}, runs)
        for runs in (splits, {id: kept.extracts(run) for id, run in splits.items()})
    )
    ratios = [(0.6 - 0.1 * k) / (0.8 - 0.1 * k) for k in range(4)]
    (number,) = whole.clauses[0].numbers
    assert number.estimate == extracts.clauses[0].numbers[0].estimate and number.estimate.n == 4
    assert number.estimate.value == pytest.approx(np.mean(np.log(ratios))) and number.estimate.stderr
