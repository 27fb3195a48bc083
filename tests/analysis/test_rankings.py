"""Rankings and dots of an experiment: the numbers are those of its records, in the table and in the figures."""

from dataclasses import replace

import numpy as np
import pytest
from samples import sample

from gpbench.analysis import rankings
from gpbench.analysis.comparison import Comparison
from gpbench.analysis.experiment import table
from gpbench.analysis.rankings import rank_table
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.papers.published import UNRANKED
from gpbench.report import figures
from gpbench.report.figures import style

RANKS = {"kind": "ranks", "label": ["method", "method.hidden"], "metrics": ["test_ll", "rmse"], "settings": "all"}
RANKS["sets"] = {"GPs": ["dgp", "svi"], "neural networks": ["pbp", "hmc"]}
DOTS = {"kind": "dots", "label": RANKS["label"], "metric": "test_ll", "sets": RANKS["sets"], "settings": "all"}
LABELS = {"method.hidden": {"[2]": "2"}}
PRESETS = {"quick": "few", "full": "all"}
EXPERIMENT = Experiment("aep_dgp/test", "A ranking", "aep_dgp", blocks=[], presets=PRESETS, labels=LABELS, table=RANKS)
JOBS = [{"method": "dgp", "method.hidden": size} for size in ("[2]", "[3]")]
JOBS += [{"method": name} for name in ("svi", "pbp", "hmc")]
NAMES = ["dgp-2", "dgp-[3]", "svi", "pbp", "hmc"]
DATASETS = ["boston", "concrete", "energy", "naval", "yacht"]
SPLITS = 3


def values(dataset: str, name: str) -> np.ndarray:
    """The log-likelihood on each split."""
    return np.random.default_rng([DATASETS.index(dataset), NAMES.index(name)]).normal(size=SPLITS)


def record(dataset, name, split, **fields):
    test_ll = float(values(dataset, name)[split])
    shared = {"preset": "full", "precision": "float64", "device": "a cpu", "train_rows": 90, "test_rows": 10}
    measured = {"metrics": {"test_ll": test_ll, "rmse": np.exp(-test_ll)}, "seconds": {"train": 1.0}}
    return sample(f"{dataset}{name}{split}", split=split, **shared | measured | fields)


def cells(without=(), datasets=DATASETS, **fields):
    """Every method on every data set; those pairs of data set and method that are `without` have no records."""

    def cell(dataset, name, job):
        records = [] if (dataset, name) in without else [record(dataset, name, k, **fields) for k in range(SPLITS)]
        job = {"dataset": dataset, **job}
        return Cell(job, f"{dataset}{name}", dataset, job["method"], 0, range(SPLITS), records=records)

    return [cell(dataset, name, job) for dataset in datasets for name, job in zip(NAMES, JOBS)]


def drawn(options, planned):
    return figures.draw(replace(EXPERIMENT, figure=options), "full", planned, lambda id: {})


def panels(figure):
    """The panels of a dot plot by data set."""
    return {axis.get_title().removesuffix(" †"): axis for axis in figure.axes if axis.get_title()}


@pytest.mark.parametrize("name, members", [(rankings.ALL, NAMES), ("GPs", NAMES[:3]), ("neural networks", NAMES[3:])])
def test_each_set_is_ranked_as_its_values_alone_are(name, members):
    ranked = [dataset for dataset in DATASETS if dataset not in UNRANKED]
    means = {
        "test_ll": [[values(d, m).mean() for m in members] for d in ranked],
        "rmse": [[np.exp(-values(d, m)).mean() for m in members] for d in ranked],
    }
    of = {(one.methods, one.metric): one.ranking for one in rankings.rankings(EXPERIMENT, cells(), RANKS)}
    assert len(of) == 6
    for metric, matrix in means.items():
        rows = {f"set{d}": {m: {0: value} for m, value in zip(members, row)} for d, row in enumerate(matrix)}
        expected = rank_table(Comparison(metric, rows))
        ours = of[name, metric]
        assert (ours.methods, ours.average, ours.groups) == (expected.methods, expected.average, expected.groups)
        assert (ours.p, ours.critical, ours.datasets) == (expected.p, expected.critical, tuple(ranked))


def test_data_sets_and_methods_without_runs_are_left_out_of_their_sets_with_the_reason():
    of = rankings.rankings(EXPERIMENT, cells(without={("yacht", "hmc")}), RANKS)
    assert {one.methods: len(one.ranking.datasets) for one in of} == {"all methods": 3, "GPs": 4, "neural networks": 3}
    notes = rankings.shared_notes(of)
    assert f"all methods, neural networks: left out: {UNRANKED['naval']}; yacht (without hmc)" in notes
    assert f"GPs: left out: {UNRANKED['naval']}" in notes
    assert sum("groups: no significant difference" in note for note in notes) == 1
    absent = {(dataset, "hmc") for dataset in DATASETS}
    of = rankings.rankings(EXPERIMENT, cells(without=absent), RANKS)
    assert sorted(of[0].ranking.methods) == sorted(NAMES[:-1])
    assert "not ranked, without runs: hmc" in of[0].ranking.caveats
    assert of[2].ranking is None and "ranks need at least two methods" in of[2].problem
    figure = drawn(RANKS, cells(without=absent))
    assert figure.axes[4].get_title(loc="left") == "neural networks by test_ll: no ranking"
    assert "at least two methods" in figure.axes[4].texts[0].get_text()


def test_methods_without_common_data_sets_are_one_line_and_those_not_held_out_are_marked(one_line):
    few = cells(datasets=["boston", "naval"])
    for make in (lambda: drawn(RANKS, few), lambda: table(EXPERIMENT, "full", few)):
        line = "test: all methods by test_ll: ranks need at least two data sets"
        with one_line(ConfigError, match=line):
            make()
    of = rankings.rankings(EXPERIMENT, cells(held_out=False), RANKS)
    assert any(note.startswith("not held out") for note in rankings.shared_notes(of))
    assert all(name.endswith(" (not held out)") for name in of[0].ranking.methods)
    assert not any("held out" in name for name in rankings.rankings(EXPERIMENT, cells(), RANKS)[0].ranking.methods)
    with pytest.raises(ConfigError, match="boston dgp: two cells of the table are at one place"):
        rankings.rankings(EXPERIMENT, cells(), {**RANKS, "label": "method"})


def test_diagrams_have_a_row_for_each_set_and_a_column_for_each_metric():
    figure = drawn(RANKS, cells())
    heads = [axis.get_title(loc="left").split(":")[0] for axis in figure.axes]
    names = ("all methods", "GPs", "neural networks")
    assert heads == [f"{name} by {metric}" for name in names for metric in ("test_ll", "rmse")]
    of = {one.name: one.ranking for one in rankings.rankings(EXPERIMENT, cells(), RANKS)}
    for head, axis in zip(heads, figure.axes):
        texts = " ".join(text.get_text() for text in axis.texts)
        assert {name for name in NAMES if name in texts} == set(of[head].methods)
        assert all(f"{average:.2f}" in texts for average in of[head].average)
        assert f"critical difference {of[head].critical:.2f}" in texts
    assert any("left out: naval depends" in note for note in figure.notes) and not figure.get_supxlabel()


@pytest.mark.parametrize("options", [RANKS, DOTS])
def test_figures_have_one_setting_a_method_by_a_rule_that_reads_no_result(options):
    """The setting with runs on the most data sets; of two that have as many, the one with the larger numbers."""
    for without, expected in (((), "dgp-[3]"), ({("yacht", "dgp-[3]")}, "dgp-2")):
        main = drawn({key: value for key, value in options.items() if key != "settings"}, cells(without=without))
        texts = " ".join(text.get_text() for axis in main.axes for text in (*axis.texts, *axis.get_yticklabels()))
        assert [name for name in ("dgp-2", "dgp-[3]") if name in texts] == [expected]
        assert any(note.startswith("one setting a method, by a rule that reads no result") for note in main.notes)


def marks_of(axis):
    """The means and half-widths of a panel's dots by their line."""
    of = {}
    for dot, _, (bar,) in (container.lines for container in axis.containers):
        ((x, y),) = dot.get_xydata()
        low, high = bar.get_segments()[0][:, 0]
        of[int(y)] = (x, (high - low) / 2)
    return of


def test_dots_are_at_the_means_of_the_records_with_their_standard_errors():
    figure = drawn(DOTS, cells())
    assert list(panels(figure)) == DATASETS and len(figure.axes) == 5
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == NAMES
    assert [label.get_color() for label in labels] == [style.PALETTE[c] for c in ("blue",) * 3 + ("vermillion",) * 2]
    for dataset, axis in panels(figure).items():
        arrows = [line for line in axis.lines if line.get_marker() in "<>"]
        of = marks_of(axis)
        assert len(of) + len(arrows) == len(NAMES) and len(of) >= 4
        for k, (mean, stderr) in of.items():
            ours = values(dataset, NAMES[k])
            assert mean == pytest.approx(ours.mean()) and stderr == pytest.approx(ours.std(ddof=1) / np.sqrt(SPLITS))


def test_published_values_are_diamonds_and_missing_cells_naval_and_diverged_runs_are_said():
    diamonds = {
        dataset: {int(y): x for line in axis.lines if line.get_marker() == "D" for x, y in line.get_xydata()}
        for dataset, axis in panels(drawn(DOTS, cells())).items()
    }
    assert diamonds["boston"] == {3: -2.57, 4: -2.27}  # pbp and hmc; those of dgp are not of held-out rows
    assert diamonds["naval"] == {}
    planned = cells(without={("boston", "svi")})
    records = [*planned[0].records[:2], replace(planned[0].records[2], status="diverged")]
    figure = drawn(DOTS, [replace(planned[0], records=records), *planned[1:]])
    assert [text.get_text() for text in panels(figure)["boston"].texts] == ["missing"]
    assert "naval †" in [axis.get_title() for axis in figure.axes]
    notes = " ".join(figure.notes)
    assert "† naval depends" in notes and "diverged runs do not count: dgp-2 on boston (1)" in notes
    assert "standard error, not corrected for rows that splits share" in notes and "MISSING: 3 of 75 runs" in notes


def test_a_value_far_on_the_worse_side_is_an_arrow_with_its_number_and_one_on_the_better_side_is_not():
    near = [record("yacht", "svi", k, metrics={"test_ll": -1.0 + 0.01 * k}) for k in range(SPLITS)]
    far = [record("yacht", "svi", k, metrics={"test_ll": 50.0 + k}) for k in range(SPLITS)]

    def panel(sign):
        planned = [replace(cell, records=near) for cell in cells(datasets=["yacht"])]
        records = [replace(one, metrics={"test_ll": sign * one.metrics["test_ll"]}) for one in far]
        return panels(drawn({**DOTS, "sets": {}}, [*planned[:-1], replace(planned[-1], records=records)]))["yacht"]

    worse, better = panel(-1), panel(1)
    assert [line.get_marker() for line in worse.lines if line.get_marker() in "<>"] == ["<"]
    assert [text.get_text() for text in worse.texts] == ["-51.00 ± 0.58"] and worse.get_xlim()[0] > -5
    assert not better.texts and better.get_xlim()[1] > 51
