"""Figures of curves and of effects: a panel for each run, or a row for each data set."""

from dataclasses import replace

import numpy as np
import pytest
from drawings import cell, drawn, experiment, of_effects, on_a_line, record

from gpbench.errors import ConfigError


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
