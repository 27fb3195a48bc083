"""`gpbench best`: the numbers are those of the records, and its sentence claims what the tests show."""

import hashlib
import json

import numpy as np
import pytest
from samples import sample, write
from scipy import stats

import gpbench
from gpbench.analysis import best_sheet
from gpbench.analysis.best import best_methods
from gpbench.analysis.board import Board
from gpbench.analysis.comparison import RULE
from gpbench.errors import ConfigError

METHODS = ("a", "b", "c")
SHIFT = {"a": 0.0, "b": 0.02, "c": 1.0}
TRAIN, TEST = 36_000, 4_000


def records(datasets=("kin8nm",), methods=METHODS, splits=6, **fields):
    """Runs whose RMSE is a method's shift and noise of the split."""
    noise = np.random.default_rng(0).normal(scale=0.05, size=(len(datasets), len(methods), splits))
    facts = {"split_set": "random", "held_out": True, "train_rows": TRAIN, "test_rows": TEST}

    def record(i, j, split):
        dataset, method = datasets[i], methods[j]
        id = hashlib.sha256(repr((dataset, method, split, fields)).encode()).hexdigest()[:16]
        metrics = {"rmse": 2 + SHIFT[method] + noise[i, j, split], "test_ll": -1.0}
        measured = {"metrics": metrics, "seconds": {"train": 10.0 + 90 * j}}
        return sample(id, dataset=dataset, method=method, split=split, **facts | measured | fields)

    return [record(*index) for index in np.ndindex(noise.shape)]


def values(runs, method, dataset="kin8nm"):
    return np.array([r.metrics["rmse"] for r in runs if (r.method, r.dataset) == (method, dataset)])


def test_means_intervals_and_p_values_are_those_of_the_corrected_resampled_t_test():
    runs = records()
    result = best_methods(runs, "rmse")
    p = {}
    for first, second in (("a", "b"), ("a", "c")):
        difference = values(runs, second) - values(runs, first)
        stderr = np.sqrt(difference.var(ddof=1) * (1 / 6 + TEST / TRAIN))
        own = np.sqrt(values(runs, first).var(ddof=1) * (1 / 6 + TEST / TRAIN))
        assert result.scores[first]["kin8nm"].corrected_stderr == pytest.approx(own)
        p[second] = stats.t.sf(abs(difference.mean()) / stderr, 5)
        score, half = result.scores[second]["kin8nm"], stats.t.ppf(0.975, 5) * stderr
        ends = difference.mean() - half, difference.mean() + half
        np.testing.assert_allclose((score.minus_leader.low, score.minus_leader.high), ends, rtol=1e-9)
        np.testing.assert_allclose(score.mean, values(runs, second).mean(), rtol=1e-12)
        assert score.p == pytest.approx(min(1, 2 * p[second]), rel=1e-6)  # one-sided, of two differences
    assert result.leader == "a"
    assert result.worse == ["c"] and result.verdict("b") == "open"


def test_average_ranks_and_the_moderated_test_of_two_differences_over_data_sets():
    names = [f"set{i}" for i in range(9)]
    runs = records(names)
    result = best_methods(runs, "rmse")
    means = np.array([[values(runs, m, d).mean() for m in METHODS] for d in names])
    ranks = stats.rankdata(means, axis=1).mean(axis=0)
    assert result.average == pytest.approx(dict(sorted(zip(METHODS, ranks), key=lambda pair: pair[1])))
    board, leader = Board.of_values(means, names), METHODS.index(result.leader)
    assert result.p["c"] == pytest.approx(2 * board.p[leader, 2]) and result.verdict("c") == "worse"
    assert result.p.keys() == {"a", "b", "c"} - {result.leader} and result.families == 9


def test_the_best_of_equal_methods_is_seldom_shown_not_to_be_and_worse_ones_are():
    """Of 10 equal methods each is shown not to be the best in 5 % of samples at most, whichever leads."""
    random = np.random.default_rng(0)
    wrong = [
        (board.p[np.argmax(board.means)] * 9 < 0.05)[0]
        for board in (Board.of_values(random.normal(size=(8, 10)), "abcdefgh") for _ in range(300))
    ]
    assert np.mean(wrong) <= 0.05
    behind = Board.of_values(random.normal(size=(20, 10)) + np.arange(10), [*map(str, range(20))])
    assert (behind.p[0] * 9 < 0.05).sum() > 5


def test_no_difference_is_claimed_over_few_data_sets_and_a_method_has_one_setting():
    result = best_methods(records(["set1", "set2", "set3"]), "rmse")
    assert result.worse == [] and result.families < 6 and result.verdict_on("c", "set1") == "worse"
    runs = [r for output in ("x", "y") for r in records(output=output)]
    result = best_methods(runs, "rmse")
    assert len(result.datasets) == 2 and result.families == 1 and result.worse == []
    runs = [r for m in ("m=50, batch=200", "m=100, batch=200") for r in records(methods=("a",), setting=m)]
    sheet = best_sheet.sheet(best_methods([*runs, *records(methods=("b",), setting="m=50")], "rmse"), "scope")
    assert [row[0] for row in sheet.grids[0].rows] == ["a", "b"]
    assert "settings: a m=100, batch=200; b m=50" in sheet.remarks and RULE in sheet.remarks
    with pytest.raises(ConfigError, match="no data set of these has held-out runs of two methods"):
        best_methods(runs, "rmse")


def test_runs_not_held_out_or_diverged_count_nowhere_and_sets_without_a_common_split_are_left_out():
    runs = records()
    leaked = records(methods=("b",), held_out=False, metrics={"rmse": 0.0})
    int8 = records(methods=("b",), split_set="hla_int8", metrics={"rmse": 0.0})
    diverged = records(methods=("b",), splits=2, seed=1, status="diverged", metrics={"rmse": None})
    result = best_methods([*runs, *leaked, *int8, *diverged], "rmse")
    assert result.scores["b"]["kin8nm"].mean == pytest.approx(values(runs, "b").mean())
    assert result.scores["b"]["kin8nm"].diverged == 2 and result.datasets == ["kin8nm"]
    runs = records(["set1", "set2"], ("a", "b"))
    halves = [r for r in runs if r.dataset != "set2" or (r.method == "a") == (r.split < 3)]
    result = best_methods(halves, "rmse")
    assert result.datasets == ["set1"] and result.left_out == {"set2": "no split in common"}
    with pytest.raises(ConfigError, match="common splits of set2"):
        best_methods([r for r in halves if r.dataset == "set2"], "rmse")


def test_what_is_missing_or_too_slow_has_its_reason():
    runs = [*records(["set1", "set2", "set3"], ("a", "b")), *records(["set1"], ("c",)), *records(["set4"], ("b",))]
    result = best_methods(runs, "rmse")
    assert result.datasets == ["set1", "set2", "set3"] and "set4" in result.left_out
    assert result.unranked == {"c": "not run on set2, set3"}
    few = [r for r in records() if r.method != "c" or r.split < 2]
    assert best_methods(few, "rmse").unranked == {"c": "too few splits of kin8nm (2 of 6)"}
    result = best_methods(records(), "rmse", seconds=150)
    assert [*result.average] == ["a", "b"] and result.unranked == {"c": "slower on kin8nm (190 s)"}


@pytest.fixture
def results(tmp_path):
    other = records(("kegg",), protocol="evans2020", metrics={"rmse": 0.1})
    small = records(("boston",), train_rows=450, test_rows=56)
    return write(tmp_path / "results", [*records(("kin40k",)), *other, *small])


def test_the_answer_is_one_sentence_and_a_table_that_name_what_they_are_of(results, printed, refused):
    words = ["best", "--task", "regression", "--results", str(results), "--rows"]
    out = printed(*words, "30k-60k")
    assert out.startswith("Try a first: it has the lowest mean rmse (")
    assert "the only data set with enough of them; 1 of the 2 others are shown not to be the best" in out
    assert "Few data: 1 data set" in out and "--protocol evans2020 (kegg)" in out and "boston" not in out
    tables = [line for line in out.splitlines() if line.startswith(("method ", "a ", "b ", "c "))]
    assert len(tables) == 4 and max(map(len, tables[1:])) <= 80
    answer = json.loads(printed(*words, "30k-60k", "--json"))
    assert answer["shown_worse"] == ["c"] and {row["dataset"] for row in answer["rows"]} == {"kin40k"}
    assert "the nearest recorded data are kegg (40,000 rows, 20 inputs), kin40k (" in refused(*words, "100k-", "--json")


def test_without_an_answer_it_says_what_it_looked_for_and_where_boards_are(tmp_path, refused):
    write(tmp_path, records(("heart",), methods=("a",)))
    of = lambda task: refused("best", "--task", task, "--results", str(tmp_path)).strip()
    scope, board = "data of any size; protocol clean, held-out rows alone", "leaderboard --division classification`"
    assert of("binary").startswith(f"gpbench: no method but a has recorded runs of binary {scope}; the board on")
    assert of("binary").endswith(board) and of("count") == f"gpbench: no recorded run is of count {scope}"


def test_a_data_set_gives_its_task_and_rows_up_to_a_factor_of_two_and_a_card_the_number_of_inputs(results, tmp_path):
    table = gpbench.best(data="boston", results=results)
    assert set(table.frame["dataset"]) == {"boston"} and "253 to 1,012 rows" in str(table)
    card = tmp_path / "mine.yaml"
    source = "{kind: file, path: x.csv, target: y}"
    card.write_text(f"name: mine\ntitle: Mine\ntask: regression\nrows: 50000\nsources: [{source}]\n")
    table = gpbench.best(data=str(card), results=results)
    assert set(table.frame["dataset"]) == {"kin40k"}
    card.write_text(card.read_text().replace("rows: 50000\n", ""))
    with pytest.raises(ConfigError, match="or say how many rows it has by rows"):
        gpbench.best(data=str(card), results=results)
    assert len(gpbench.best(task="regression", rows="30k-60k", inputs="8", results=results).frame) == 3
