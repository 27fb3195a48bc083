"""Figures from records alone: panels, curves, labels, notes and files."""

import os
import subprocess
import sys
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawings import STEPS, cell, drawn, experiment, on_a_line, record, small_print, trace

from gpbench.analysis.cells import CellRuns, Entry
from gpbench.analysis.reproduction import Reproduction
from gpbench.errors import ConfigError
from gpbench.experiments import definition
from gpbench.papers.published import Published
from gpbench.report import figures
from gpbench.report.figures import runs as of_runs
from gpbench.report.figures import style
from gpbench.report.figures.printed import deviation, draw_printed


def test_traces_have_a_panel_per_metric_a_colour_per_method_and_a_dash_per_size():
    jobs = [{"method": m, "size": s} for m in ("sep", "svi") for s in ("4", "50")]
    cells = [cell(job, record(f"{job['method']}{job['size']}")) for job in jobs]
    traces_of = experiment(kind="traces", panels=["error", "nll"], colour="method", style="size", vertical="log")
    figure = drawn(traces_of, cells)
    assert [a.get_ylabel() for a in figure.axes] == ["test error", "negative test log-likelihood"]
    for axis in figure.axes:
        assert (axis.get_xscale(), axis.get_yscale(), axis.get_xlabel()) == ("log", "log", "seconds of training")
        colours = [style.PALETTE[name] for name in ("blue", "blue", "vermillion", "vermillion")]
        assert [line.get_color() for line in axis.lines] == colours
        assert len({str(line.get_linestyle()) for line in axis.lines}) == 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sep", "svi", "m = 4", "50"] and figure.get_suptitle() == "A figure"
    assert small_print(figure) == ["all", "device a cpu; precision float64; jax unknown; commit unknown"]


def test_a_curve_is_the_mean_in_seconds_of_one_split_and_one_extreme_value_does_not_set_the_range():
    runs = record("a", 0, group=2), record("bbbb", 1, group=2), record("c", 2, status="diverged")
    curve = of_runs.curve(cell({"method": "sep"}, *runs).finished, "nll", trace)
    np.testing.assert_allclose(curve.seconds, np.arange(1, STEPS + 1) / 2)
    np.testing.assert_allclose(curve.mean, (trace("a")["nll"] + trace("bbbb")["nll"]) / 2)
    np.testing.assert_allclose(curve.stderr, abs(trace("a")["nll"] - trace("bbbb")["nll"]) / 2)
    assert of_runs.curve([], "nll", trace) is None

    def extreme(id):
        return {"seconds": np.arange(1.0, 202), "nll": np.array([1e9, *np.linspace(1, 0.5, 200)])}

    traces_of = experiment(kind="traces", panels=["nll"], colour="method")
    (axis,) = drawn(traces_of, [cell({"method": "sep"}, record("a"))], arrays=extreme).axes
    assert axis.get_ylim()[1] < 2


def test_a_figure_of_nothing_of_empty_panels_or_of_traces_without_seconds_is_one_line():
    cells = [cell({"method": "sep", "size": "4"}, record("a"))]
    kept = "no run here has kept its arrays"
    for figure, line in (
        ({"kind": "traces", "panels": ["nll"], "colour": "method"}, "no run here has a trace"),
        ({"kind": "boundaries", "rows": "size", "columns": "method"}, kept),
        ({"kind": "curves", "label": "method"}, kept),
        ({"kind": "surfaces", "label": "method"}, kept),
    ):
        with pytest.raises(ConfigError, match=line):
            drawn(experiment(**figure), cells, arrays=lambda id: {})
    of_traces = experiment(kind="traces", panels=["nll"], colour="method")
    with pytest.raises(ConfigError, match="gpbench reproduce sep/test --preset full"):
        drawn(of_traces, [cell({"method": "sep"})])
    with pytest.raises(ConfigError, match="the trace of a has no seconds"):
        drawn(of_traces, [cell({"method": "sep"}, record("a"))], arrays=lambda id: {"nll": np.ones(3)})


def test_a_panel_whose_metric_is_in_no_trace_says_so_and_the_caption_names_presets():
    of_both = experiment(kind="traces", panels=["nll", "rmse"], colour="method")
    figure = drawn(of_both, [cell({"method": "sep"}, record("a"))])
    assert [[text.get_text() for text in axis.texts] for axis in figure.axes] == [[], ["missing"]]
    traces_of = experiment(kind="traces", panels=["nll"], colour="method")
    quick = [cell({"method": "sep"}, record("a", preset="quick"))]
    assert small_print(drawn(traces_of, quick, "quick"))[0] == "Quick preset. few"
    assert "Mixed presets: quick (1)." in small_print(drawn(traces_of, quick, "full"))[0]


def test_the_file_may_choose_colours_dashes_and_labels_and_a_method_has_one_colour_in_a_paper():
    cells = [cell({"method": m}, record("a")) for m in ("sep", "svi", "gfitc")]
    traces_of = lambda **options: experiment(kind="traces", panels=["nll"], colour="method", **options)
    chosen = traces_of(colours={"sep": "vermillion"}, dashes={"svi": "dashed"})
    (axis,) = drawn(replace(chosen, labels={"axes": {"nll": "loss"}}), cells).axes
    assert [line.get_color() for line in axis.lines] == [style.PALETTE[c] for c in ("vermillion", "blue", "green")]
    assert [line.get_linestyle() for line in axis.lines] == ["-", "--", "-"] and axis.get_ylabel() == "loss"
    for options in ({"colours": {"sep": "bleu"}}, {"dashes": {"sep": "dased"}}):
        with pytest.raises(ConfigError, match=r"did you mean (blue|dashed)"):
            drawn(traces_of(**options), cells)
    cells = [cell({"method": m}, record(m)) for m in ("sep_minibatch", "logistic")]
    figure = drawn(experiment(kind="traces", panels=["nll"], colour="method", level="logistic"), cells)
    level = figure.axes[0].lines[1]
    assert set(level.get_ydata()) == {trace("logistic")["nll"][-1]}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["stochastic", "logistic"]
    chosen = {}
    for name in definition.names():
        options = definition.read(name).figure
        for value, colour in options.get("colours", {}).items():
            key = (name.split("/")[0], options["colour"], value.removesuffix("_minibatch"))
            assert chosen.setdefault(key, colour) == colour, name
    assert len({colour for (paper, *_), colour in chosen.items() if paper == "sep"}) == 4


def in_the_plane(id):
    axis = np.linspace(-1, 1, 20)
    grid = np.stack([g.ravel() for g in np.meshgrid(axis, 2 * axis)], axis=1)
    p = 1 / (1 + np.exp(-4 * grid[:, 0]))
    rows = {"kept_X": grid[:50], "kept_y": np.sign(grid[:50, 0])}
    places = {"kept_grid": grid, "kept_inducing": np.array([[0.5, 1.0], [-0.5, -1.0]])}
    return rows | places | {"kept_log_probs": np.log(np.stack([1 - p, p], axis=1))}


def test_boundaries_have_a_panel_for_each_method_and_size_and_name_missing_runs():
    jobs = [{"method": m, "size": s} for m in ("gfitc", "sep", "svi") for s in ("4", "8")]
    cells = [cell(job, record(str(job))) for job in jobs[:-1]] + [cell(jobs[-1])]
    figure = drawn(experiment(kind="boundaries", rows="method", columns="size"), cells, arrays=in_the_plane)
    axes = np.array(figure.axes).reshape(3, 2)
    assert [a.get_ylabel() for a in axes[:, 0]] == ["gfitc", "sep", "svi"]
    assert [a.get_xlabel() for a in axes[-1]] == ["m = 4", "8"]
    assert axes[0, 0].get_title() == "error 10.0 %" and axes[-1, -1].texts[0].get_text() == "missing"
    assert small_print(figure)[1].startswith("MISSING: 1 of 6 runs")
    # the boundary of this p is the line x = 0, and the inducing points lie of the run
    (boundary,) = [c for c in axes[0, 0].collections if hasattr(c, "levels")]
    assert abs(boundary.get_paths()[0].vertices[:, 0]).max() < 1e-6
    np.testing.assert_allclose(axes[0, 0].collections[-1].get_offsets(), in_the_plane("")["kept_inducing"])


def test_scaling_has_seconds_against_devices_of_which_simulated_ones_are_hollow():
    jobs = [{"method": m, "run.devices": k} for m in ("sep", "svi") for k in ("1", "2")]
    cells = [cell(job, record("a", seconds={"train": 9.0 / int(job["run.devices"])})) for job in jobs]
    (axis,) = drawn(experiment(kind="scaling", along="run.devices", colour="method"), cells).axes
    assert [list(line.get_ydata()) for line in axis.lines] == [[9.0, 4.5]] * 2
    assert [list(line.get_xdata()) for line in axis.lines] == [[1, 2]] * 2
    jobs = [{"method": "sep", "run.devices": k} for k in ("1", "2")]
    seconds, simulated = {"train": 3.0}, {"1": False, "2": True}
    cells = [cell(job, record("a", seconds=seconds, simulated=simulated[job["run.devices"]])) for job in jobs]
    (axis,) = drawn(experiment(kind="scaling", along="run.devices", colour="method"), cells).axes
    assert axis.collections[0].get_offsets().tolist() == [[2, 3.0]]
    assert "devices that share cores" in [text.get_text() for text in axis.get_legend().get_texts()]


def test_a_metric_that_is_undefined_is_said_in_its_panel():
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 8)] * 2), axis=-1).reshape(-1, 2)
    log_probs = np.log(np.column_stack([0.5 - 0.4 * grid[:, 0], 0.5 + 0.4 * grid[:, 0]]))
    plane = {"kept_grid": grid, "kept_mean": grid[:, 0], "kept_log_probs": log_probs, "kept_X": grid}
    plane |= {"kept_y": np.sign(grid[:, 0])}
    lost = [cell({"method": "sep"}, record("a", metrics={"nmse": None, "error": None}))]
    for options, axis, text in (
        ({"kind": "curves", "label": "method"}, 0, "nMSE undefined"),
        ({"kind": "surfaces", "label": "method"}, 1, "sep: nMSE undefined"),
        ({"kind": "boundaries", "rows": "method", "columns": "method"}, 0, "error undefined"),
    ):
        arrays = on_a_line if options["kind"] == "curves" else lambda id: plane
        panel = drawn(experiment(**options), lost, arrays=arrays).axes[axis]
        assert text in (panel.get_title(), panel.get_xlabel())


def test_controls_and_letters_that_the_font_lacks_are_drawn_and_powers_of_ten_alone_are_formulas(tmp_path):
    figure = plt.Figure()
    text = figure.text(0, 0, "a\x1b[2J\n\u202eb 日本")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.save(figure, tmp_path / "odd")
    assert text.get_text() == "a\\x1b[2J\n\\u202eb 日本"
    figure, axis = plt.subplots()
    axis.plot([1, 1e4], [1, 1e6], label="$x$")
    axis.set(yscale="log", title="$y$")
    style.take_literally(figure)
    powers = axis.yaxis.get_ticklabels()
    assert any("10^{3}" in label.get_text() for label in powers) and all(label.get_parse_math() for label in powers)
    assert not axis.title.get_parse_math() and not any(label.get_parse_math() for label in axis.get_xticklabels())
    plt.close(figure)


DRAW = """
import hashlib
from gpbench.report import figures
from gpbench.report.figures import runs as of_runs
from gpbench.report.figures import style
with style.context():
    figure = style.figure(3, 2)
    axis = figure.subplots()
    axis.plot([1, 2], [3, 5], label="a_b")
    axis.legend()
file = figures.encode(figure, "png")
import matplotlib, os
print(hashlib.sha256(file).hexdigest(), os.environ.get("MPLBACKEND"), matplotlib.rcParams["text.usetex"])
"""


def digest_of(**environment) -> list[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "MATPLOTLIBRC")}
    done = subprocess.run([sys.executable, "-c", DRAW], env=own | environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_picture_is_the_same_whatever_the_notebook_and_the_user_have_set(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfigure.facecolor: red\nlines.linestyle: :\n")
    plain, backend, _ = digest_of()
    assert backend == "None"
    for name in ("module://matplotlib_inline.backend_inline", "nonsense"):
        digest, backend, usetex = digest_of(MPLBACKEND=name, MATPLOTLIBRC=str(tmp_path / "matplotlibrc"))
        assert digest == plain and usetex == "True" and backend == name  # the user's settings stay the user's


def comparison(mean, printed, delta, metric, held_out=True):
    published = Published("sep", "1", "sep", "", printed, 0.0, 0.0, 20, held_out, "")
    cell = CellRuns("pima", "", "sep", "", "", "full", True, ())
    entry = Entry(cell, metric, {0: mean, 1: mean}, mean, (mean - printed) / delta, 0, published)
    return Reproduction("sep/table1", "full", "pima", f"sep {mean}", entry, published, [delta > 0])


COMPARED = [comparison(*of, "nll") for of in ((0.5, 0.4, 4.0), (0.3, 0.4, -5.0))]
COMPARED += [comparison(-1.0, -1.1, 1.0, "test_ll"), comparison(9.0, 1.0, 80.0, "nll", held_out=False)]


def test_targets_are_drawn_at_printed_and_ours_with_deviations_legend_and_notes():
    left, middle, right = draw_printed(COMPARED).axes
    points = {tuple(line.get_xydata()[0]) for line in left.lines if len(line.get_xydata()) == 1}
    assert points == {(0.4, 0.5), (0.4, 0.3)}
    assert [tuple(line.get_xydata()[0]) for line in middle.lines if len(line.get_xydata()) == 1] == [(-1.1, -1.0)]
    assert [deviation(c) for c in COMPARED[:3]] == pytest.approx([-4.0, 5.0, 1.0])
    heights = [line.get_ydata()[0] for line in right.lines if len(line.get_xydata()) == 1]
    assert heights == pytest.approx([-4.0, 1.0, 5.0])
    assert [text.get_text() for text in right.texts] == ["sep 0.5, pima: nll"]
    figure = draw_printed(COMPARED)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sep", "equal: 1", "better: 1", "worse: 1"]
    assert any(note.startswith("1 further printed numbers are no targets") for note in figure.notes)
    with pytest.raises(ConfigError, match="no recorded number is beside a printed one"):
        draw_printed(COMPARED[3:])
