"""Figures from records alone: panels, curves, labels, notes and files."""

import errno
import re
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from samples import sample

from gpbench.data.builtin import friedman_effect
from gpbench.errors import ConfigError, StorageError
from gpbench.experiments import definition, layout
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report import figures
from gpbench.report.figures import style, traces

STEPS = 5


def record(id, split=0, group=1, **fields):
    shared = {"preset": "full", "device": "a cpu", "precision": "float64", "group": group}
    measured = {"metrics": {"error": 0.1, "nll": 0.3}, "seconds": {"train": 8.0}}
    return sample(id, split=split, **shared | measured | fields)


def cell(job, *records, splits=range(1)):
    return Cell(job=job, id="c", dataset="d", method=job["method"], seed=0, splits=splits, records=records)


def trace(id):
    rate = 1.0 + len(id)
    return {
        "step": np.arange(STEPS),
        "seconds": np.arange(1.0, STEPS + 1),
        "nll": np.exp(-np.arange(STEPS) / rate),
        "error": np.linspace(0.5, 0.1, STEPS),
        "objective": np.arange(STEPS) - 9.0,
    }


def experiment(**figure):
    labels = {"method": {"sep_minibatch": "stochastic"}, "size": {"4": "m = 4"}}
    presets = {"quick": "few", "full": "all"}
    return Experiment("sep/test", "A figure", "sep", blocks=[], presets=presets, labels=labels, figure=figure)


def drawn(experiment, cells, preset="full", arrays=trace):
    return figures.draw(experiment, preset, cells, arrays)


def small_print(figure):
    return figure.get_supxlabel().splitlines()


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
    assert small_print(figure) == ["preset full: all", "device a cpu; precision float64; jax unknown; commit unknown"]


def test_a_curve_is_the_mean_over_splits_that_did_not_diverge_in_seconds_of_one_split():
    curve = traces.curve(
        cell({"method": "sep"}, record("a", 0, group=2), record("bbbb", 1, group=2), record("c", 2, status="diverged")),
        "nll",
        trace,
    )
    np.testing.assert_allclose(curve.seconds, np.arange(1, STEPS + 1) / 2)
    np.testing.assert_allclose(curve.mean, (trace("a")["nll"] + trace("bbbb")["nll"]) / 2)
    np.testing.assert_allclose(curve.stderr, abs(trace("a")["nll"] - trace("bbbb")["nll"]) / 2)
    assert traces.curve(cell({"method": "sep"}), "nll", trace) is None


def test_one_extreme_initial_value_does_not_set_the_vertical_range():
    def extreme(id):
        return {"seconds": np.arange(1.0, 202), "nll": np.array([1e9, *np.linspace(1, 0.5, 200)])}

    traces_of = experiment(kind="traces", panels=["nll"], colour="method")
    (axis,) = drawn(traces_of, [cell({"method": "sep"}, record("a"))], arrays=extreme).axes
    assert axis.get_ylim()[1] < 2


@pytest.mark.parametrize(
    "figure, line",
    [
        ({"kind": "traces", "panels": ["nll"], "colour": "method"}, "no run here has a trace"),
        ({"kind": "boundaries", "rows": "size", "columns": "method"}, "no run here has kept its arrays"),
        ({"kind": "curves", "label": "method"}, "no run here has kept its arrays"),
        ({"kind": "surfaces", "label": "method"}, "no run here has kept its arrays"),
    ],
)
def test_where_every_panel_would_be_empty_there_is_one_line_and_no_figure(figure, line):
    cells = [cell({"method": "sep", "size": "4"}, record("a"))]
    with pytest.raises(ConfigError, match=line):
        drawn(experiment(**figure), cells, arrays=lambda id: {})


def test_a_panel_whose_metric_is_in_no_trace_says_so():
    figure = drawn(
        experiment(kind="traces", panels=["nll", "rmse"], colour="method"), [cell({"method": "sep"}, record("a"))]
    )
    assert [[text.get_text() for text in axis.texts] for axis in figure.axes] == [[], ["missing"]]


def test_the_file_may_choose_colours_and_dashes_by_value():
    jobs = [{"method": m} for m in ("sep", "svi", "gfitc")]
    options = {"colours": {"sep": "vermillion"}, "dashes": {"svi": "dashed"}}
    lines = (
        drawn(
            experiment(kind="traces", panels=["nll"], colour="method", **options),
            [cell(job, record("a")) for job in jobs],
        )
        .axes[0]
        .lines
    )
    assert [line.get_color() for line in lines] == [style.PALETTE[c] for c in ("vermillion", "blue", "green")]
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-"]


@pytest.mark.parametrize("options", [{"colours": {"sep": "bleu"}}, {"dashes": {"sep": "dased"}}])
def test_an_unknown_colour_or_dash_pattern_is_one_line(options):
    figure = experiment(kind="traces", panels=["nll"], colour="method", **options)
    with pytest.raises(ConfigError, match=r"did you mean (blue|dashed)"):
        drawn(figure, [cell({"method": "sep"}, record("a"))])


def test_a_method_has_the_same_colour_in_every_figure_of_a_paper():
    chosen = {}
    for name in definition.names():
        options = definition.read(name).figure
        for value, colour in options.get("colours", {}).items():
            key = (name.split("/")[0], options["colour"], value.removesuffix("_minibatch"))
            assert chosen.setdefault(key, colour) == colour, name
    assert len({colour for (paper, *_), colour in chosen.items() if paper == "sep"}) == 4


def test_the_file_may_label_the_axis_of_a_metric():
    options = replace(experiment(kind="traces", panels=["nll"], colour="method"), labels={"axes": {"nll": "loss"}})
    assert drawn(options, [cell({"method": "sep"}, record("a"))]).axes[0].get_ylabel() == "loss"


def test_a_level_is_a_line_right_across():
    cells = [cell({"method": m}, record(m)) for m in ("sep_minibatch", "logistic")]
    figure = drawn(experiment(kind="traces", panels=["nll"], colour="method", level="logistic"), cells)
    level = figure.axes[0].lines[1]
    assert set(level.get_ydata()) == {trace("logistic")["nll"][-1]}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["stochastic", "logistic"]


def in_the_plane(id):
    axis = np.linspace(-1, 1, 20)
    grid = np.stack([g.ravel() for g in np.meshgrid(axis, 2 * axis)], axis=1)
    p = 1 / (1 + np.exp(-4 * grid[:, 0]))
    return {
        "kept_grid": grid,
        "kept_log_probs": np.log(np.stack([1 - p, p], axis=1)),
        "kept_X": grid[:50],
        "kept_y": np.sign(grid[:50, 0]),
        "kept_inducing": np.array([[0.5, 1.0], [-0.5, -1.0]]),
    }


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


def test_scaling_has_seconds_against_devices():
    jobs = [{"method": m, "run.devices": k} for m in ("sep", "svi") for k in ("1", "2")]
    cells = [cell(job, record("a", seconds={"train": 9.0 / int(job["run.devices"])})) for job in jobs]
    (axis,) = drawn(experiment(kind="scaling", along="run.devices", colour="method"), cells).axes
    assert [list(line.get_ydata()) for line in axis.lines] == [[9.0, 4.5]] * 2
    assert [list(line.get_xdata()) for line in axis.lines] == [[1, 2]] * 2


def test_simulated_devices_are_hollow_points_that_the_legend_explains():
    jobs = [{"method": "sep", "run.devices": k} for k in ("1", "2")]
    seconds, simulated = {"train": 3.0}, {"1": False, "2": True}
    cells = [cell(job, record("a", seconds=seconds, simulated=simulated[job["run.devices"]])) for job in jobs]
    (axis,) = drawn(experiment(kind="scaling", along="run.devices", colour="method"), cells).axes
    assert axis.collections[0].get_offsets().tolist() == [[2, 3.0]]
    assert "devices that share cores" in [text.get_text() for text in axis.get_legend().get_texts()]


@pytest.mark.parametrize(("kind", "differing"), [("traces", "cores 1 (1), 8 (1); devices"), ("scaling", "cores 1")])
def test_seconds_of_different_machines_are_named_below_the_figure(kind, differing):
    figure = experiment(kind=kind, panels=["nll"], colour="method", along="run.devices")
    jobs = [{"method": "sep", "run.devices": k} for k in ("1", "2")]
    cells = [
        cell(job, record(f"{k}", devices=k, host={"cores": cores}))
        for k, (job, cores) in enumerate(zip(jobs, (1, 8)), 1)
    ]
    line = " ".join(small_print(drawn(figure, cells)))
    assert f"seconds are not comparable where these differ: {differing}" in line
    assert ("devices 1 (1), 2 (1)" in line) == (kind == "traces")
    assert "comparable" not in " ".join(small_print(drawn(figure, cells[:1])))


def test_the_caption_names_the_quick_preset_and_mixed_presets():
    traces_of = experiment(kind="traces", panels=["nll"], colour="method")
    quick = [cell({"method": "sep"}, record("a", preset="quick"))]
    assert small_print(drawn(traces_of, quick, "quick"))[0] == "QUICK PRESET: few"
    assert "MIXED presets" in small_print(drawn(traces_of, quick, "full"))[0]


def test_a_figure_of_nothing_is_one_line():
    with pytest.raises(ConfigError, match="gpbench reproduce sep/test --preset full"):
        drawn(experiment(kind="traces", panels=["nll"], colour="method"), [cell({"method": "sep"})])


def test_png_and_pdf_are_written(tmp_path):
    figure = drawn(experiment(kind="traces", panels=["nll"], colour="method"), [cell({"method": "sep"}, record("a"))])
    png, pdf = figures.save(figure, tmp_path / "sep" / "fig1.2")
    assert (png.name, pdf.name) == ("fig1.2.png", "fig1.2.pdf")
    assert png.read_bytes()[:4] == b"\x89PNG" and pdf.read_bytes()[:4] == b"%PDF"


def test_a_picture_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    figure = plt.Figure()
    before = [file.read_bytes() for file in figures.save(figure, tmp_path / "fig")]
    figure.text(0, 0, "later")

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(StorageError, match=r"fig.png cannot be written: .*; free some space, or choose another --out"):
        figures.save(figure, tmp_path / "fig")
    monkeypatch.undo()
    assert [(tmp_path / f"fig.{ending}").read_bytes() for ending in ("png", "pdf")] == before
    assert len([*tmp_path.iterdir()]) == 2


def on_a_line(id):
    x = np.linspace(-1, 1, 50)
    return {
        "kept_grid": x[:, None],
        "kept_mean": x**2,
        "kept_var": np.full(50, 0.25),
        "kept_X": x[::7, None],
        "kept_y": x[::7] ** 2,
        "kept_inducing": np.array([[0.5], [-0.5]]),
        "kept_covariance_inducing": np.array([[0.1]]),
    }


def test_curves_have_a_panel_for_each_run_with_its_mean_two_deviations_and_the_places_of_its_bases():
    jobs = [{"method": "svi", "size": "4"}, {"method": "svdgp"}, {"method": "gpr", "size": "8"}]
    cells = [cell(job, record(str(job), metrics={"nmse": 0.25})) for job in jobs[:-1]] + [cell(jobs[-1])]
    first, second, missing = drawn(experiment(kind="curves", label="size"), cells, arrays=on_a_line).axes
    assert [axis.get_title() for axis in (first, second, missing)] == ["m = 4", "svdgp", "8"]
    mean, places, of_covariance = first.lines
    np.testing.assert_allclose(mean.get_ydata(), on_a_line("")["kept_mean"])
    assert list(places.get_xdata()) == [0.5, -0.5] and list(of_covariance.get_xdata()) == [0.1]
    band = first.collections[-1].get_paths()[0].vertices  # x² ± 2 · 0.5
    assert band[:, 1].min() == pytest.approx(-1.0, abs=1e-3) and band[:, 1].max() == pytest.approx(2.0)
    assert first.get_xlabel() == "nMSE 0.250" and missing.texts[0].get_text() == "missing"


@pytest.mark.parametrize(
    "options, axis, text",
    [
        ({"kind": "curves", "label": "method"}, 0, "nMSE undefined"),
        ({"kind": "surfaces", "label": "method"}, 1, "sep: nMSE undefined"),
        ({"kind": "boundaries", "rows": "method", "columns": "method"}, 0, "error undefined"),
    ],
)
def test_a_metric_that_is_undefined_is_said_in_its_panel(options, axis, text):
    def arrays(id):
        if options["kind"] == "curves":
            return on_a_line(id)
        x, y = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8))
        grid = np.column_stack([x.ravel(), y.ravel()])
        log_probs = np.log(np.column_stack([0.5 - 0.4 * grid[:, 0], 0.5 + 0.4 * grid[:, 0]]))
        return {"kept_grid": grid, "kept_mean": grid[:, 0], "kept_log_probs": log_probs, "kept_X": grid} | {
            "kept_y": np.sign(grid[:, 0])
        }

    figure = drawn(
        experiment(**options),
        [cell({"method": "sep"}, record("a", metrics={"nmse": None, "error": None}))],
        "full",
        arrays,
    )
    assert text in (figure.axes[axis].get_title(), figure.axes[axis].get_xlabel())


def test_a_trace_without_seconds_is_one_line():
    cells = [cell({"method": "sep"}, record("a"))]
    with pytest.raises(ConfigError, match="the trace of a has no seconds"):
        drawn(experiment(kind="traces", panels=["nll"], colour="method"), cells, arrays=lambda id: {"nll": np.ones(3)})


def beyond_the_rows(id):
    """As `on_a_line`, with rows in the middle half, and no relevance vector but one for the run of that name."""
    rows = np.linspace(-0.5, 0.5, 5)
    known = {"kept_X": rows[:, None], "kept_y": rows**2, "kept_inducing": np.array([[np.nan], [0.5]])}
    return on_a_line(id) | known | ({"kept_mean": np.zeros(50)} if id == "exact" else {})


def test_curves_extrapolate_as_far_as_the_file_says_beside_the_dashed_band_of_a_reference():
    """Margins of 0.25 of the rows' range [-0.5, 0.5]; the band of the exact run, 0 ± 1, in the other panel."""
    jobs = {"exact": {"method": "gpr"}, "ours": {"method": "qsrvm", "size": "4", "full": "true"}}
    more = {"exact": {}, "ours": {"diagnostics": {"relevant": 1.0}}}
    cells = [cell(job, record(id, metrics={"nmse": 0.25}, **more[id])) for id, job in jobs.items()]
    options = {"kind": "curves", "label": ["size", "full"], "margin": 0.25, "reference": "gpr"}
    exact, ours = drawn(experiment(**options), cells, arrays=beyond_the_rows).axes
    assert (exact.get_title(), ours.get_title()) == ("gpr", "m = 4 true")
    assert ours.get_xlabel() == "nMSE 0.250, 1 relevance vectors"
    mean, below, above, places, _ = ours.lines
    assert abs(mean.get_xdata()).max() <= 0.75 < abs(mean.get_xdata()).max() + 0.05
    assert set(below.get_ydata()) == {-1.0} and set(above.get_ydata()) == {1.0} and len(exact.lines) == 3
    np.testing.assert_array_equal(places.get_xdata(), [np.nan, 0.5])


def of_effects(id):
    """Friedman's effects of two inputs with an error of 0.3, and of an interaction with none."""
    grid, pairs = np.linspace(0, 1, 11)[:, None], np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 2, indexing="ij"), -1)
    pairs = pairs.reshape(-1, 2)
    exact = np.stack([friedman_effect((d,), grid) for d in (0, 3)])
    half = np.full(4, 0.5)
    return {
        "kept_X": np.array([[-1.0] * 4, [1.0] * 4]),
        "kept_X_scale": half,
        "kept_X_shift": half,
        "kept_y_std": np.asarray(2.0),
        "kept_effect1_inputs": np.array([[0.0], [3.0]]),
        "kept_effect1_grid": grid,
        "kept_effect1_mean": (exact + 0.3) / 2,
        "kept_effect1_std": np.full(exact.shape, 0.1),
        "kept_effect2_inputs": np.array([[0.0, 1.0]]),
        "kept_effect2_grid": pairs,
        "kept_effect2_mean": friedman_effect((0, 1), pairs)[None] / 2,
        "kept_effect2_std": np.full((1, 25), 0.1),
    }


def test_effects_have_a_row_for_each_data_set_a_band_for_each_cell_and_the_analytical_ones():
    """Errors of 0.3 in two of three effects, bands of 1.96 · 0.2 around them."""
    cells = [cell({"method": "gam", "size": size}, record(size)) for size in ("4", "8")]
    options = experiment(kind="effects", label="size", truth="friedman")
    figure = drawn(options, cells, arrays=of_effects)
    first, second, surface = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["input 0", "input 3", "inputs 0 and 1"]
    mean, _, _, exact, *_ = first.lines  # with a rug for each cell
    np.testing.assert_allclose(mean.get_ydata() - 0.3, exact.get_ydata(), atol=1e-10)
    assert list(mean.get_xdata()[[0, -1]]) == [0.0, 1.0] and len(surface.images) == 1
    assert len(second.collections) == 2
    note = f"RMSE of effects {np.sqrt(2 * 0.3**2 / 3):.3f}, coverage 1.000 (1)"
    assert note in figure.get_supxlabel().replace("\n", " ")


def test_effects_are_of_the_runs_that_kept_them_and_without_any_there_is_one_line():
    """A file of collected records has no arrays."""
    cells = [replace(cell({"method": "gam", "size": size}, record(size)), id=size) for size in ("4", "8")]
    options = experiment(kind="effects", label="size", truth="friedman")
    figure = drawn(options, cells, arrays=lambda id: of_effects(id) if id == "8" else {})
    assert len(figure.axes[0].collections) == 1
    with pytest.raises(ConfigError, match="no run here has kept its arrays"):
        drawn(options, cells, arrays=lambda id: {})


def test_orders_are_slopes_of_lines_in_logarithms_along_one_size_where_the_others_are_fixed():
    """Seconds of C² M³ / 100 per step: exactly 2 along C and 3 along M; memory in proportion to C alone."""
    sizes = [(c, m) for c in (2, 4, 8) for m in (16,)] + [(4, 8), (4, 32)]
    cells = [
        replace(
            cell(
                {"method": "gam", "posterior": "full", "C": str(c), "M": str(m)},
                record("a", seconds={"train": c**2 * m**3 / 1e3}, steps=10, step_memory_mb=5.0 * c),
            ),
            id=f"{c}-{m}",
        )
        for c, m in sizes
    ]
    options = experiment(kind="orders", along=["C", "M"], colour="posterior", published={"C": {"full": 1}})
    figure = drawn(options, cells)
    along_c, along_m, memory, _ = figure.axes
    np.testing.assert_allclose(along_c.lines[0].get_xydata(), [(c, 1e3 * c**2 * 16**3 / 1e4) for c in (2, 4, 8)])
    assert along_m.lines[0].get_xdata().tolist() == [8, 16, 32]
    np.testing.assert_allclose(memory.lines[0].get_ydata(), [10.0, 20.0, 40.0])
    notes = small_print(figure)
    assert notes[0] == "exponent of ms a step in C (M = 16): full 2.00 ± 0.00 [1]"
    assert notes[1] == "exponent of ms a step in M (C = 4): full 3.00 ± 0.00"
    assert notes[2].startswith("exponent of MB a step in C (M = 16): full 1.00")


def test_orders_of_counted_steps_are_of_operations():
    counts = {"2": 8.0, "4": 32.0, "8": 128.0}
    cells = [
        replace(cell({"method": "gam", "M": m}, record(m, step_operations=count)), id=m) for m, count in counts.items()
    ]
    figure = drawn(experiment(kind="orders", along=["M"], colour="method", counted=True), cells)
    assert "exponent of operations a step in M: gam 2.00 ± 0.00" in " ".join(small_print(figure))


def test_orders_name_the_fixed_sizes_of_each_line_where_they_differ_and_label_the_ticks_that_leave_room():
    sizes = [("a", c, 8) for c in (1000, 1100, 2_000_000)] + [("b", c, 16) for c in (1000, 1100, 2_000_000)]
    cells = [
        replace(cell({"method": "gam", "p": p, "C": str(c), "M": str(m)}, record(f"{p}{c}", steps=4)), id=f"{p}{c}")
        for p, c, m in sizes
    ]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert re.fullmatch(r"exponent of ms a step in C: a .* \(M = 8\), b .* \(M = 16\)", small_print(figure)[0])
    assert [tick.get_text() for tick in figure.axes[2].get_xticklabels()] == ["1e3", "", "2e6"]


def test_orders_leave_out_what_has_no_memory_in_its_records_and_a_line_of_one_point():
    cells = [replace(cell({"method": "gam", "p": "x", "C": c, "M": "8"}, record(c, steps=4)), id=c) for c in ("2", "4")]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert [len(axis.lines) for axis in figure.axes] == [1, 0, 0, 0]
    assert small_print(figure)[0] == "exponent of ms a step in C (M = 8): x 0.00"


@pytest.mark.parametrize(
    ("published", "message"),
    [
        ([1], r"published=\[1\]: must be a mapping of keys to mappings"),
        ({"size": 1}, r"must be a mapping of keys to mappings of values to numbers"),
        ({"sizes": {"gam": 1}}, r"no run has the key 'sizes'"),
        ({"size": {"gan": 1}}, r"published.size: no run has the value 'gan'; did you mean gam"),
        ({"size": {"gam": "two"}}, r"published.size.gam=two: must be a number"),
    ],
)
def test_published_exponents_are_numbers_by_key_and_value(published, message, tmp_path):
    options = {"kind": "orders", "along": ["size"], "colour": "method", "published": published}
    with pytest.raises(ConfigError, match=message):
        layout.check(tmp_path, {"figure": options}, [{"method": "gam", "size": [4, 8]}])


def test_a_size_without_a_number_is_one_line():
    cells = [replace(cell({"method": "gam", "size": size}, record(size, steps=4)), id=size) for size in ("4", "large")]
    with pytest.raises(ConfigError, match=r"needs numbers along size, and 4 is called 'm = 4'"):
        drawn(experiment(kind="orders", along=["size"], colour="method"), cells)


def test_controls_and_letters_that_the_font_lacks_are_drawn_without_a_warning(tmp_path):
    figure = plt.Figure()
    text = figure.text(0, 0, "a\x1b[2J\n\u202eb 日本")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.save(figure, tmp_path / "odd")
    assert text.get_text() == "a\\x1b[2J\n\\u202eb 日本"
