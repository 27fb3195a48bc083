"""`gpbench plot RUN`: what one run kept, and what it says where there is nothing to draw."""

import re

import numpy as np
import pytest

from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records.store import Store
from gpbench.report.figures.runs import draw_run, draw_traces

GAM = [
    "dataset=friedman",
    "split=0",
    "method=gam",
    "method.inducing=4",
    "method.steps=5",
    "method.components=[[3],[0],[0,1]]",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of a short run of `gam` that keeps its effects, and of one of `linear` that keeps nothing."""
    folder = tmp_path_factory.mktemp("results")
    for words in ([*GAM, "run.keep=true"], ["dataset=friedman", "split=0", "method=linear"]):
        assert main(["run", *words, f"run.results={folder}", "run.progress=false"]) == 0
    return folder


def the_run(folder, method):
    return next(record for record in Store(folder).all() if record.method == method)


def test_every_effect_has_a_panel_with_its_share_of_the_variance(results):
    record = the_run(results, "gam")
    kept = Store(results).trace(record.id)
    named = draw_run(record, kept, columns=[f"x{d}" for d in range(10)])
    assert [axis.get_title().partition(":")[0] for axis in named.axes if axis.get_visible()] == ["x3", "x0", "x0, x1"]
    figure = draw_run(record, kept)
    titles = [axis.get_title() for axis in figure.axes if axis.get_visible()]
    assert f"of {record.test_rows_outside} of the 100 test rows lies outside" in figure.get_supxlabel()
    names = ["input 3", "input 0", "inputs 0 and 1"]
    assert [title.partition(":")[0] for title in titles] == names
    shares = [float(re.search(r": ([\d.]+) %", title)[1]) for title in titles]
    np.testing.assert_allclose(shares, 100 * kept["kept_shares"].mean(0), atol=0.051)
    assert sum(shares) == pytest.approx(100, abs=0.6)
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), kept["kept_effect1_mean"][0] * kept["kept_y_std"], rtol=1e-5)
    rows = kept["kept_X"][:, 3] * kept["kept_X_scale"][3] + kept["kept_X_shift"][3]  # in original units, from 0 to 1
    assert list(line.get_xdata()[[0, -1]]) == pytest.approx([rows.min(), rows.max()]) and 0.9 < rows.max() < 1.01


def test_the_verb_writes_png_and_pdf_named_by_the_run(results, tmp_path, capsys):
    id = the_run(results, "gam").id
    assert main(["plot", id[:8], "--results", str(results), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / f"{id}.{ending}") for ending in ("png", "pdf")]
    assert (tmp_path / f"{id}.png").read_bytes()[:4] == b"\x89PNG"


def test_a_run_that_kept_nothing_and_an_unknown_one_are_told_in_one_line(results, capsys):
    record = the_run(results, "linear")
    with pytest.raises(ConfigError, match=f"run {record.id} kept nothing to draw: run it again with run.keep=true"):
        draw_run(record, {})
    with pytest.raises(ConfigError, match="these runs have no traces"):
        draw_traces([record], [{}])
    assert main(["plot", "ffffffffffff", "--results", str(results)]) == 2
    assert "\n" not in capsys.readouterr().err.strip()


def test_effects_of_three_inputs_are_not_drawn(results):
    record = the_run(results, "gam")
    kept = {"kept_shares": np.ones((5, 1)), "kept_X": np.zeros((3, 10))}
    with pytest.raises(ConfigError, match="all components of this run have three inputs or more"):
        draw_run(record, kept)


def test_a_file_in_the_place_of_the_folder_is_told_in_one_line(results, tmp_path, capsys):
    (tmp_path / "file").touch()
    words = ["--results", str(results), "--out", str(tmp_path / "file")]
    assert main(["plot", the_run(results, "gam").id, *words]) == 5
    error = capsys.readouterr().err.strip()
    assert "file" in error and "\n" not in error


def test_other_methods_cannot_keep_what_has_more_than_two_inputs(tmp_path, capsys):
    words = ["dataset=friedman", "split=0", "method=linear", "run.keep=true", f"run.results={tmp_path}"]
    assert main(["run", *words]) == 2
    assert "run.keep=true is for data with one or two inputs, and these have 10" in capsys.readouterr().err


def test_traces_of_several_runs_have_a_panel_for_each_metric_and_a_line_for_each_run(results, tmp_path, capsys):
    records = [the_run(results, name) for name in ("gam", "linear")]
    traces = [Store(results).trace(record.id) for record in records]
    figure = draw_traces(records, traces, ["rmse"])
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == [f"{r.method}, {r.setting}".rstrip(", ") for r in records]
    for line, record, trace in zip(lines, records, traces):
        np.testing.assert_array_equal(line.get_ydata(), trace["rmse"])
        np.testing.assert_array_equal(line.get_xdata(), trace["seconds"] / record.group)
    ids = [record.id for record in records]
    words = ["--results", str(results), "--out", str(tmp_path)]
    assert main(["plot", *ids, *words]) == 0
    assert capsys.readouterr().out.split()[0] == str(tmp_path / f"{ids[0]}-and-1.png")
    assert main(["plot", *ids, "--metric", "rsme", *words]) == 2
    assert "no trace of these runs has the metric 'rsme'; did you mean rmse" in capsys.readouterr().err
    assert main(["plot", ids[0], "sep/fig2", *words]) == 2 and "one figure at a time" in capsys.readouterr().err
