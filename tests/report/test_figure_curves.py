"""Figures of curves, of effects, and of orders: a panel for each run, a row for each data set, slopes of lines."""

import re
from dataclasses import replace

import numpy as np
import pytest
from drawings import cell, drawn, experiment, of_effects, on_a_line, record, small_print

from gpbench.errors import ConfigError
from gpbench.experiments import layout


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
    cells = []
    for c, m in sizes:
        run = record("a", seconds={"train": c**2 * m**3 / 1e3}, steps=10, step_memory_mb=5.0 * c)
        job = {"method": "gam", "posterior": "full", "C": str(c), "M": str(m)}
        cells.append(replace(cell(job, run), id=f"{c}-{m}"))
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


def test_orders_of_counted_steps_are_of_operations_and_leave_out_what_is_not_recorded():
    counts = {"2": 8.0, "4": 32.0, "8": 128.0}
    cells = [replace(cell({"method": "gam", "M": m}, record(m, step_operations=n)), id=m) for m, n in counts.items()]
    figure = drawn(experiment(kind="orders", along=["M"], colour="method", counted=True), cells)
    assert "exponent of operations a step in M: gam 2.00 ± 0.00" in " ".join(small_print(figure))
    cells = [replace(cell({"method": "gam", "p": "x", "C": c, "M": "8"}, record(c, steps=4)), id=c) for c in ("2", "4")]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert [len(axis.lines) for axis in figure.axes] == [1, 0, 0, 0]
    assert small_print(figure)[0] == "exponent of ms a step in C (M = 8): x 0.00"
    cells = [replace(cell({"method": "gam", "size": size}, record(size, steps=4)), id=size) for size in ("4", "large")]
    with pytest.raises(ConfigError, match=r"needs numbers along size, and 4 is called 'm = 4'"):
        drawn(experiment(kind="orders", along=["size"], colour="method"), cells)


def test_orders_name_the_fixed_sizes_of_each_line_where_they_differ_and_label_the_ticks_that_leave_room():
    sizes = [("a", c, 8) for c in (1000, 1100, 2_000_000)] + [("b", c, 16) for c in (1000, 1100, 2_000_000)]
    cells = [
        replace(cell({"method": "gam", "p": p, "C": str(c), "M": str(m)}, record(f"{p}{c}", steps=4)), id=f"{p}{c}")
        for p, c, m in sizes
    ]
    figure = drawn(experiment(kind="orders", along=["C", "M"], colour="p"), cells)
    assert re.fullmatch(r"exponent of ms a step in C: a .* \(M = 8\), b .* \(M = 16\)", small_print(figure)[0])
    assert [tick.get_text() for tick in figure.axes[2].get_xticklabels()] == ["1e3", "", "2e6"]


def test_published_exponents_are_numbers_by_key_and_value(tmp_path):
    for published, message in (
        ([1], r"published=\[1\]: must be a mapping of keys to mappings"),
        ({"size": 1}, r"must be a mapping of keys to mappings of values to numbers"),
        ({"sizes": {"gam": 1}}, r"no run has the key 'sizes'"),
        ({"size": {"gan": 1}}, r"published.size: no run has the value 'gan'; did you mean gam"),
        ({"size": {"gam": "two"}}, r"published.size.gam=two: must be a number"),
    ):
        options = {"kind": "orders", "along": ["size"], "colour": "method", "published": published}
        with pytest.raises(ConfigError, match=message):
            layout.check(tmp_path, {"figure": options}, [{"method": "gam", "size": [4, 8]}])
