"""The leaderboard: which runs count, what is lost, numbers against a reference, the front, and what is printed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text
from samples import sample
from scipy.stats import spearmanr

from gpbench import paths
from gpbench.analysis.board import FEWEST, Board, correlation, family_of, outcomes, stability
from gpbench.analysis.leaderboard import DIVISIONS, LIMIT, Measure, board_of, division_of, lost, name_of
from gpbench.analysis.leaderboard_sheet import place_sheet, sheet
from gpbench.analysis.sheets import text_of
from gpbench.analysis.writers.terminal import as_text
from gpbench.data import cards
from gpbench.errors import AbsentError
from gpbench.report.figures.comparisons import draw_board

REGRESSION = division_of("regression")
SETS = [*REGRESSION.datasets()]  # the first two are of one family
SETS_OF_CLASSES = [*division_of("classification").datasets()]
N, FAMILIES, QUICK = 34, 26, 8
METRICS = ("test_ll", "rmse", "crps", "coverage_error")


def run(method, dataset, split, level=0.0, cpu=10.0, **fields):
    """A run whose metrics are better the higher `level` is."""
    values = {"test_ll": level, "rmse": np.exp(-level), "crps": np.exp(-level), "coverage_error": 0.1}
    defaults = {"metrics": values, "setting": "", "cpu_seconds": cpu, "held_out": True}
    return sample(f"{method}-{dataset}-{split}", method=method, dataset=dataset, split=split, **defaults | fields)


def failed(method, dataset, split, reason, **fields):
    lack = dict.fromkeys(METRICS)
    return run(method, dataset, split, metrics=lack, status="failed", undefined=dict.fromkeys(lack, reason), **fields)


def runs(levels, cpu=None, quick=False):
    """Runs of methods with these levels on all sets of the division."""
    cpu = cpu or {}
    return [
        run(method, name, 0, level + 0.3 * (k % 2), cpu.get(method, 10.0))
        for method, level in levels.items()
        for k, name in enumerate(REGRESSION.datasets(quick))
    ]


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
def test_a_division_has_the_sets_of_its_suite_and_the_quick_part_the_small_ones_as_many_as_a_test_needs(division):
    tasks = {"regression": {"regression"}, "classification": {"binary", "multiclass"}}[division.name]
    found = [cards.read(name) for name in paths.yaml_files("dataset")]
    suite = {c["name"]: c["rows"] for c in found if c.get("suite") == "board" and c["task"] in tasks}
    whole, quick = division.datasets(), division.datasets(quick=True)
    assert suite.keys() - whole.keys() == ({"pol"} if division.name == "regression" else set())
    assert whole.keys() <= suite.keys() and [*quick] == [name for name in whole if suite[name] < 5000]
    assert len(whole) >= {"regression": 30, "classification": 20}[division.name]
    assert len({*map(family_of, quick)}) >= FEWEST and {*whole.values()} == {0}
    fixed = {"protocol": "clean", "split": "0", "run.device": "cpu", "run.cpu_limit": f"{LIMIT:g}"}
    assert all(job.keys() == {"dataset", "method", *fixed} and fixed.items() <= job.items() for job in division.jobs())


def test_runs_of_another_protocol_seed_split_split_set_or_data_set_do_not_count():
    others = [
        run("c", "ames", 0, protocol="hl2016"),
        run("c", "ames", 0, seed=1),
        run("c", "ames", 7),
        run("c", "boston", 0),
        run("c", "ames", 0, held_out=False),
        run("c", "ames", 0, split_set="kfold", setting="set=kfold"),
    ]
    board = board_of([*runs({"a": 1.0, "b": 0.0}), *others], REGRESSION)
    assert board.methods == ("a", "b") and [*board.datasets] == SETS


def test_what_is_lost_has_its_reason_and_loses():
    assert lost(run("a", "yacht", 0)) == "" and lost(run("a", "yacht", 0, cpu=LIMIT + 1)) == "over time"
    assert lost(failed("a", "yacht", 0, "out of memory")) == "out of memory"
    assert lost(run("a", "yacht", 0, status="diverged")) == "diverged"
    assert lost(run("a", "yacht", 0, metrics={"test_ll": None})) == "not finite"
    one_class = {"metrics": {"nll": 0.1, "auc": None}, "undefined": {"auc": "1 class"}}
    assert lost(run("a", "yacht", 0, **one_class)) == ""  # no method has an auc there
    assert Measure("rmse").loss(failed("a", "yacht", 0, "over time")) == np.inf
    assert Measure("rmse").loss(run("a", "yacht", 0, 0.0)) == 1.0
    assert Measure("test_ll").loss(run("a", "yacht", 0, 2)) == -2


def test_a_method_that_fails_everywhere_is_last_and_every_run_of_it_is_shown():
    lost_runs = [failed("c", name, split, "over time") for name, split in REGRESSION.datasets().items()]
    board = board_of([*runs({"a": 1.0, "b": 0.0}), *lost_runs], REGRESSION)
    assert np.argmin(board.board.means) == board.methods.index("c")
    text = as_text(sheet(board), 100)
    assert f"of these {N} over time." in " ".join(text.split()) and f"{N} late" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_method_that_left_out_data_sets_has_no_place_and_a_data_set_of_one_method_is_no_part_of_the_board():
    quick = REGRESSION.datasets(quick=True)
    board = board_of([*runs({"a": 1.0, "b": 0.0}), *runs({"new": 5.0}, quick=True)], REGRESSION)
    assert board.methods == ("a", "b") and [row["n_datasets"] for row in sheet(board).rows][:2] == [N, N]
    text = " ".join(as_text(sheet(board), 100).split())
    assert f"Without a place, for runs that were not made or have no test_ll: new ({N - QUICK})." in text
    unknown = {"undefined": {"test_ll": "no density"}, "metrics": {"test_ll": None, "rmse": 1.0}}
    of_quantiles = [replace(record, **unknown) for record in runs({"new": 5.0})]
    board = board_of([*runs({"a": 1.0, "b": 0.0}), *of_quantiles], REGRESSION)
    assert board.methods == ("a", "b") and board.unranked == {"new": N}
    board = board_of([*runs({"a": 1.0}), *runs({"b": 0.0}, quick=True)], REGRESSION)
    assert {dataset for _, dataset in board.runs} == {*board.datasets} == {*quick}
    text = " ".join(as_text(sheet(board), 100).split())
    assert f"Runs: {2 * QUICK}." in text and f"on {QUICK} data sets of {QUICK - 1} families, of {N} that the" in text


def test_settings_are_methods_of_their_own_and_planned_runs_have_the_name_of_their_job():
    others = [run("a", name, 0, setting="m=9", level=2.0) for name in SETS]
    others = [replace(record, id=f"other{k}") for k, record in enumerate(others)]
    board = board_of([*runs({"a": 1.0, "b": 0.0}), *others], REGRESSION)
    assert board.methods == ("a", "a m=9", "b")
    assert name_of(board, ["other1"]) == "a m=9" and name_of(board, ["x"]) is None
    # A number of inducing points that is cut to the rows is another one on each data set.
    planned = {}
    for k, record in enumerate(made := runs({"a": 1.0, "b": 0.0})):
        object.__setattr__(record, "id", f"run{k}")
        if record.method == "a":
            object.__setattr__(record, "setting", f"m={len(record.dataset)}")
            planned[record.id] = "a_large"
    own = [run("a", name, 0, setting="m=9", level=2.0) for name in SETS]
    for k, record in enumerate(own):
        object.__setattr__(record, "id", f"own{k}")
    assert board_of([*made, *own], REGRESSION, planned=planned).methods == ("a", "a_large", "b")


def test_the_front_has_the_quickest_and_the_best_and_no_method_that_is_slower_and_worse():
    board = board_of(runs({"a": 0.0, "b": 2.0, "c": 1.0}, {"a": 5.0, "b": 10.0, "c": 15.0}), REGRESSION)
    assert board.on_front.tolist() == [True, True, False]
    assert board.cpu_seconds == pytest.approx([5.0, 10.0, 15.0])
    rated = [replace(record, machine_rate=2.0 if record.method == "a" else None) for record in board.runs.values()]
    assert board_of(rated, REGRESSION).cpu_seconds == pytest.approx([10.0, 10.0, 15.0])
    unknown = [replace(record, cpu_seconds=None) for record in runs({"a": 0.0})]
    board = board_of([*unknown, *runs({"b": 2.0, "c": 1.0})], REGRESSION)
    assert board.on_front.tolist() == [False, True, False] and not board.is_complete[0]


def test_a_method_of_fewer_tasks_has_a_place_by_the_data_sets_of_its_own_and_no_seconds_beside_others():
    """It is quick on its data sets, and so it would be on the front."""
    division, binary = division_of("classification"), [c for c in SETS_OF_CLASSES if cards.read(c)["task"] == "binary"]
    of = {"logistic": SETS_OF_CLASSES, "svi": SETS_OF_CLASSES, "sep": binary}
    cpu, worse = {"logistic": 4.0, "svi": 5.0, "sep": 0.1}, {"logistic": 0.0, "svi": 0.1, "sep": 0.2}
    values = lambda method: {"nll": worse[method], "error": 0.2, "brier": 0.3, "ece": 0.1}
    made = [run(m, name, 0, cpu=cpu[m], metrics=values(m)) for m, names in of.items() for name in names]
    board = board_of(made, division)
    k = board.methods.index("sep")
    assert not board.unranked and not board.is_complete[k] and board.on_front.tolist() == [True, False, False]
    (row,) = [row for row in sheet(board).rows if row["method"] == "sep" and row["metric"] == "nll"]
    assert row["cpu_seconds"] is None and row["n_datasets"] == len(binary) and row["lost"] == ""
    assert "has as high a share and is quicker; empty without all" in " ".join(as_text(sheet(board), 100).split())


def test_methods_that_are_handed_in_are_compared_with_those_that_ship_and_not_counted_among_them():
    shipped = [replace(record, shipped=True) for record in runs({"a": 1.0, "b": 0.0, "c": -1.0})]
    board = board_of([*shipped, *runs({"mine": 2.0, "other": -2.0})], REGRESSION)
    shares = dict(zip(board.methods, board.board.means))
    assert shares == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0, "mine": 1.0, "other": 0.0})
    small = runs(dict.fromkeys("vwxyz", 3.0), quick=True)  # of more methods than ship
    assert len(board_of([*shipped, *small], REGRESSION).datasets) == N  # where one alone has all the small sets remain
    assert len(board_of([*runs({"a": 1.0}), *small], REGRESSION).datasets) == QUICK


def test_numbers_against_a_reference_are_of_these_two_alone_and_name_the_sets_that_are_won():
    levels = {"svgp": 0.0, "mine": 0.1, "linear": -0.5}
    lost_one = lambda r: failed("mine", r.dataset, r.split, "over time") if r.dataset == "soil" else r
    records = [lost_one(r) if r.method == "mine" else r for r in runs(levels)]
    board = board_of(records, REGRESSION)
    k, reference = (board.methods.index(name) for name in ("mine", "svgp"))
    found = board.against(k, reference)
    assert found.lost == ("soil",) and len(found.won) == N - 1 and found.tied == ()
    assert found.chance.value == pytest.approx((FAMILIES - 1 + 0.5) / (FAMILIES + 1))
    assert found.gain.value == pytest.approx(((FAMILIES - 1) * 0.1 - 1.0) / FAMILIES)
    assert found.ratio.value == pytest.approx(np.exp(-found.gain.value))
    assert found.ratio.low < found.ratio.value < found.ratio.high
    fewer = board_of([r for r in records if r.method != "linear"], REGRESSION)
    assert fewer.against(*(fewer.methods.index(name) for name in ("mine", "svgp"))) == found
    (row,) = [row for row in sheet(board).rows if (row["method"], row["metric"]) == ("mine", "test_ll")]
    assert (row["reference"], row["chance"], row["gain"]) == ("svgp", found.chance.value, found.gain.value)
    (row,) = [row for row in sheet(board).rows if (row["method"], row["metric"]) == ("svgp", "test_ll")]
    assert row["reference"] == "linear"  # of the reference itself the next named method is


def test_the_whole_board_has_the_decided_pairs_and_every_data_set_with_its_best_value_and_lost_runs():
    records = [failed("b", r.dataset, r.split, "over time") if r.dataset == SETS[0] else r for r in runs({"b": 0.0})]
    board = board_of([*runs({"a": 3.0, "c": -3.0}), *records], REGRESSION)
    grids = {text_of(grid.title).text: grid for grid in sheet(board, whole=True).grids[2:]}
    (pairs,) = [grid for title, grid in grids.items() if title == "pairs and data sets"]
    assert [row[:2] for row in pairs.rows] == [("a", "b, c"), ("b", "c"), ("c", "")]
    (values,) = [grid for title, grid in grids.items() if title.startswith("test_ll") and "part 1" in title]
    cells = {row[0].text: [(cell.text, cell.mark) for cell in row[1:3]] for row in values.rows}
    assert cells["b"][0] == ("lost", "") and [mark for _, mark in cells["a"]] == ["best", "best"]
    assert len(sheet(board).grids) < len(grids)


def test_stability_has_the_rank_correlations_with_the_orders_without_a_part():
    losses = np.random.default_rng(0).normal(size=(5, 3))
    board = Board(outcomes(losses, 0.0))
    expected = [spearmanr(board.means, np.delete(board.shares, d, 1).mean(1)).statistic for d in range(3)]
    lone, thirds = stability(board)
    assert lone == pytest.approx(expected) and {*np.round(thirds, 9)} == {*np.round(expected, 9)}
    agreed = Board(outcomes(np.tile(np.arange(4.0)[:, None], (1, 8)), 0.0))
    assert stability(agreed)[0] == pytest.approx([1.0] * 8)
    assert correlation(np.arange(3.0), np.array([2.0, 1.0, 0.0])) == pytest.approx(-1)
    text = " ".join(as_text(sheet(board_of(runs({"a": 0.0, "b": 2.0, "c": 1.0}), REGRESSION)), 100).split())
    assert "1.00 to 1.00 without one family, 1.00 without a third of them (1.00 or more in 95 % of draws)" in text


def test_fewer_data_sets_than_show_a_difference_are_said():
    few = [record for record in runs({"a": 0.0, "b": 9.0}) if record.dataset in SETS[:FEWEST]]
    text = " ".join(as_text(sheet(board_of(few, REGRESSION)), 100).split())
    assert "0 of 1 pair of 2 methods are decided, and 2 may be the best" in text
    assert "No pair shares 6 families of data sets, which a claim needs." in text


def test_equal_methods_tie_and_a_clear_winner_is_the_best_and_has_the_names_of_what_it_beats():
    board = board_of(runs({"a": 1.0, "b": 1.0, "c": 1.001}), REGRESSION)
    assert board.board.means == pytest.approx([0.5] * 3) and not board.board.better.any()
    text = " ".join(as_text(sheet(board), 100).split())
    assert text.startswith(
        "Regression: 0 of 3 pairs of 3 methods are decided, and 3 may be the best, by test_ll on"
        f" {N} data sets of {FAMILIES} families. May be the best: "
    )
    assert "Every run has each method's defaults under protocol clean, which training rows of other data sets" in text
    assert "chose, and goes to its own end, within 1,200 CPU seconds." in text
    levels = {"svgp": 3.0, **dict.fromkeys(("linear", "mine", "b"), 0.0)}
    costs = [{"seconds": {"compile": 2.0 + 6.0 * (k % 2)}, "step_memory_mb": 7.0} for k in range(N)]  # N is even
    svgp = [replace(one, **cost) for one, cost in zip(runs({"svgp": 3.0}), costs)]
    board = board_of([*runs(levels), *svgp], REGRESSION)
    assert sheet(board).grids[0].rows[0][4:7] == ("10.0 F", "4", "7") and sheet(board).grids[0].rows[1][5:7] == ("", "")
    words = " ".join(as_text(sheet(board), 100).split())
    assert "3 of 6 pairs of 4 methods are decided, and 1 may be the best" in words and "best: svgp." in words
    words = " ".join(as_text(place_sheet(board, "svgp"), 100).split())
    assert words.startswith("svgp may be the best of 4 methods of regression, by test_ll on")
    assert f"of {FAMILIES} families: it beats 100 ± 0 % of the others." in words
    assert "be better than b, linear, mine." in words and "Against linear: chance to win on a new data set 98" in words
    words = " ".join(as_text(place_sheet(board, "mine"), 100).split())
    assert words.startswith("mine is shown not to be the best of 4 methods") and "be worse than svgp." in words
    assert "chance to win on a new data set 2 (0 to 9) %; mean gain in log density -1.00 (-1.00 to -0.78) nats" in words
    assert "By test_ll it loses on no2, pm10, pendulum, airfoil," in words
    assert "less that of svgp -67 (-67 to -67) %; linear +0 (+0 to +0) %." in words


def test_a_board_of_one_method_says_what_there_is():
    """Other mistakes: cli/test_leaderboard_verb.py."""
    line = "has no two methods with all of the same data sets; there is a: --with-shipped reads the shipped runs too"
    with pytest.raises(AbsentError, match=line):
        board_of(runs({"a": 1.0}), REGRESSION)


def test_methods_of_one_name_from_elsewhere_have_rows_of_their_own():
    planned = runs({"svgp": 1.0, "gpr": 0.0})
    theirs = [replace(record, id=f"other-{record.id}", imported=True) for record in planned if record.method == "svgp"]
    board = board_of([*planned, *theirs], REGRESSION, planned={record.id: record.method for record in planned})
    assert {*board.methods} == {"svgp", "gpr", "svgp (imported)"}
    assert len(board.runs) == len(planned) + len(theirs)
    own = [replace(record, id=f"own-{record.id}") for record in runs({"trees": 0.0})]
    imported = [replace(record, imported=True) for record in runs({"trees": 1.0})]
    board = board_of([*own, *imported, *runs({"linear": 0.5})], REGRESSION)
    assert {*board.methods} == {"trees", "trees (imported)", "linear"}


def test_no_two_names_in_the_panel_of_the_front_overlap():
    levels = {"one": 1.0, "another": 0.999, "a_third": 0.998, "ridge": 0.0, "quick": 0.9}
    board = board_of(runs(levels, {"quick": 1.0}), REGRESSION)
    figure = draw_board(board)
    figure.draw_without_rendering()
    # names without the lines to their points
    boxes = {text.get_text(): Text.get_window_extent(text) for text in figure.axes[1].texts}
    assert boxes.keys() == levels.keys()
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes.values(), 2))
