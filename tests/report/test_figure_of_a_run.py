"""`gpbench plot RUN`: what one run kept, and what it says where there is nothing to draw."""

import numpy as np
import pytest
from drawings import of_effects
from samples import sample
from scipy.stats import norm

import gpbench
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records.store import Store
from gpbench.report.figures import checks
from gpbench.report.figures.offers import RunContent, draw_kind
from gpbench.report.figures.runs import draw_learning, draw_traces

GAM = ["dataset=friedman", "split=0", "method=gam", "method.inducing=4", "method.steps=5"]
GAM.append("method.components=[[3],[0],[0,1]]")


LINEAR, LOGISTIC = (
    ["split=0", f"dataset={data}", f"method={name}"] for data, name in (("friedman", "linear"), ("wdbc", "logistic"))
)


def train(folder, *runs):
    for words in runs:
        assert main(["run", *words, f"run.results={folder}", "run.progress=false"]) == 0
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of runs of `logistic` and of `linear`, which keep nothing."""
    return train(tmp_path_factory.mktemp("results"), LOGISTIC, LINEAR)


@pytest.fixture(scope="module")
def additive(tmp_path_factory):
    """The results of a short run of `gam` that keeps its effects, and of one of `linear`."""
    return train(tmp_path_factory.mktemp("additive"), [*GAM, "run.keep=true"], LINEAR)


def draw_run(record, arrays, columns=()):
    kind = "effects" if "kept_shares" in arrays else "predictions"
    return draw_kind(RunContent(record, arrays, {}, columns), kind)


def the_run(folder, method):
    return next(record for record in Store(folder).all() if record.method == method)


def test_effects_that_a_run_kept_have_a_panel_each_with_their_share_of_the_variance():
    shares = np.array([[0.2, 0.3, 0.5]] * 9)  # of the components on input 3, on 0 and 1, and on 0
    places = {"kept_effect1_place": np.array([2, 0]), "kept_effect2_place": np.array([1])}
    figure = draw_run(sample(method="gam"), {**of_effects(""), **places, "kept_shares": shares})
    titles = ["input 0: 50.0 % [50.0, 50.0]", "input 3: 20.0 % [20.0, 20.0]", "inputs 0 and 1: 30.0 % [30.0, 30.0]"]
    assert [axis.get_title() for axis in figure.axes if axis.get_visible()] == titles


def test_the_verb_writes_png_and_pdf_named_by_the_run_beside_a_file_of_collected_ones(results, tmp_path, printed):
    id = the_run(results, "logistic").id
    files = printed("plot", id[:8], "--results", results, "--out", tmp_path).split()
    assert files == [str(tmp_path / f"{id}.{ending}") for ending in ("png", "pdf")]
    assert (tmp_path / f"{id}.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["collect", str(results), "--out", str(tmp_path / "all.parquet")]) == 0
    assert main(["plot", "--last", "--results", str(tmp_path / "all.parquet")]) == 0
    assert {path.parent for path in tmp_path.rglob("*.png")} == {tmp_path}


def test_the_learning_curve_is_the_trace_and_a_run_that_kept_nothing_is_told_in_one_line(results):
    record = the_run(results, "linear")
    of_three = {"kept_grid": np.zeros((4, 2)), "kept_X": np.zeros((3, 2)), "kept_log_probs": np.zeros((4, 3))}
    for arrays, line in (
        ({}, f"run {record.id} has no picture of the kind predictions, which needs data"),
        (of_three, f"run {record.id} kept nothing to draw: run it again with run.keep=true"),
        (
            {"kept_shares": np.ones((5, 1)), "kept_X": np.zeros((3, 10))},
            "all components of this run have three inputs or more",
        ),
    ):
        with pytest.raises(ConfigError, match=line):
            draw_run(record, arrays)
    with pytest.raises(ConfigError, match="these runs have no traces"):
        draw_traces([record], [{}])
    record = the_run(results, "logistic")
    trace = Store(results).trace(record.id)
    above, _, _, below, *_ = draw_learning(record, trace).axes
    np.testing.assert_array_equal(above.lines[0].get_xdata(), trace["seconds"] / record.group)
    np.testing.assert_array_equal(below.lines[0].get_xdata(), trace["step"])
    np.testing.assert_array_equal(below.lines[0].get_ydata(), trace["objective"])


def test_traces_of_several_runs_have_a_panel_for_each_metric_and_a_line_each(additive, tmp_path, printed, refused):
    records = [the_run(additive, name) for name in ("gam", "linear")]
    traces = [Store(additive).trace(record.id) for record in records]
    figure = draw_traces(records, traces, ["rmse"])
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == [f"{r.method}, {r.setting}".rstrip(", ") for r in records]
    for line, record, trace in zip(lines, records, traces):
        np.testing.assert_array_equal(line.get_ydata(), trace["rmse"])
        np.testing.assert_array_equal(line.get_xdata(), trace["seconds"] / record.group)
    ids = [record.id for record in records]
    words = ["--results", str(additive), "--out", str(tmp_path)]
    assert printed("plot", *ids, *words).split()[0] == str(tmp_path / f"{ids[0]}-and-1.png")
    line = "no trace of these runs has the metric 'rsme'; did you mean rmse"
    assert line in refused("plot", *ids, "--metric", "rsme", *words)


def of_regression(rows=200):
    """Predictions of a calibrated normal model, and their standardised residuals."""
    rng = np.random.default_rng(0)
    mean, variance, z = rng.normal(size=rows), rng.uniform(0.5, 2.0, rows), rng.normal(size=rows)
    log_prob = -0.5 * (z**2 + np.log(2 * np.pi * variance))
    known = {"row": np.arange(rows), "mean": mean, "variance": variance, "log_prob": log_prob}
    return known | {"target": mean + np.sqrt(variance) * z}, z


def test_pit_coverage_intervals_and_residuals_are_those_of_the_predictions():
    predictions, z = of_regression()
    left, right = checks.draw_calibration(predictions).axes
    counts = [np.sum((norm.cdf(z) >= k / 10) & (norm.cdf(z) < (k + 1) / 10)) for k in range(10)]
    np.testing.assert_allclose([bar.get_height() for bar in left.patches[-10:]], np.array(counts) / 20)
    levels, coverage = right.lines[-1].get_data()
    at95 = np.flatnonzero(np.isclose(levels, 0.95))[0]
    assert coverage[at95] == np.mean(np.abs(z) <= norm.ppf(0.975))
    outside = checks.draw_intervals(predictions).axes[0].collections[-1]
    assert len(outside.get_offsets()) == np.sum(np.abs(z) > 1.96)
    figure = checks.draw_residuals(predictions)
    np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets()[:, 1], z)
    np.testing.assert_allclose(figure.axes[1].collections[0].get_offsets()[:, 1], np.sort(z))
    assert not any("not normal" in note for note in figure.notes)
    others = predictions | {"log_prob": predictions["log_prob"] - 0.5}
    assert any("not normal" in note for note in checks.draw_residuals(others).notes)
    # of a run that has them, transforms and intervals are its own, as of counts and skewed targets
    own = others | {"cdf": np.full(len(z), 0.31), "low95": others["target"] - 1.0, "high95": others["target"] + 1.0}
    left, _ = (calibration := checks.draw_calibration(own)).axes
    assert [bar.get_height() for bar in left.patches[-10:]] == [0, 0, 0, 10, 0, 0, 0, 0, 0, 0]
    steps = checks.draw_calibration(own | {"below": np.zeros(len(z))}).axes[0]
    assert [bar.get_height() > 0 for bar in steps.patches[-10:]] == [True] * 4 + [False] * 6
    intervals = checks.draw_intervals(own)
    assert not len(intervals.axes[0].collections[-1].get_offsets())
    assert not any("not normal" in note for figure in (calibration, intervals) for note in figure.notes)


def test_a_reliability_diagram_has_the_share_of_the_class_in_each_bin():
    p = np.array([0.05, 0.05, 0.95, 0.95, 0.95, 0.95])
    known = {"row": np.arange(6), "log_prob_0": np.log(1 - p), "log_prob_1": np.log(p)}
    known["target"] = np.array([-1, 1, 1, 1, 1, -1])
    x, y, *_ = checks.reliability(known)
    np.testing.assert_allclose((x, y), ([0.05, 0.95], [0.5, 0.75]))
    assert [bar.get_height() for bar in checks.draw_calibration(known).axes[1].patches] == [2, 4]
    three = {f"log_prob_{c}": np.log(of) for c, of in enumerate([[0.25, 0.7], [0.5, 0.2], [0.25, 0.1]])}
    confidence, share, _ = checks.reliability({"row": np.arange(2), "target": np.array([1, 2]), **three})
    np.testing.assert_allclose(confidence, [0.5, 0.7])
    assert list(share) == [1, 0]


def test_relevances_are_inverse_lengthscales_with_the_names_of_the_inputs_and_their_unit():
    (axis,) = checks.draw_relevance(np.array([4.0, 0.5, 2.0]), ["a", "b", "c"]).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "c", "a"]
    assert [bar.get_width() for bar in axis.patches] == [2.0, 0.5, 0.25]
    units = {"standardise": "of standardised inputs", "unit_interval": "of inputs scaled to [0, 1]"}
    for scaler, unit in {**units, "centre_all": "in original units"}.items():
        (axis,) = checks.draw_relevance(np.array([4.0, 0.5]), ["a", "b"], scaler).axes
        assert axis.get_xlabel() == f"1 / lengthscale, {unit}"


def test_the_kinds_that_suit_a_run_are_offered_and_what_the_others_need(results, tmp_path, printed, refused, streams):
    words = ["--results", str(results), "--out", str(tmp_path)]
    answer = streams("plot", "--last", *words)
    assert "suits this run: --kind predictions,learning,calibration,residuals, or all" in answer.err
    assert "relevance needs a method with a lengthscale for each" in answer.err
    id = the_run(results, "linear").id
    pictures = [line for line in printed("plot", id[:8], "--kind", "all", *words).split() if line.endswith("png")]
    kinds = ["predictions", "learning", "calibration", "residuals"]
    assert pictures == [str(tmp_path / f"{id}-{kind}.png") for kind in kinds]
    assert refused("plot", id, "--kind", "x", *words)
    assert "relevance, which needs" in refused("plot", id, "--kind", "relevance", *words)
    figure = gpbench.load_run(id, results=results).plot("residuals")
    assert figure.get_suptitle() == f"friedman, split 0: {the_run(results, 'linear').method}, protocol clean"


def test_a_run_that_no_kind_suits_is_one_line(tmp_path, refused):
    Store(tmp_path).write(sample(), {}, {})
    for words in ([], ["--kind", "all"]):
        assert "there is nothing to draw of run" in refused("plot", "--last", *words, "--results", tmp_path)


def test_the_relevance_of_a_run_is_that_of_its_kernel(tmp_path):
    words = ["dataset=wdbc", "method=svi", "method.inducing=3", "method.steps=2"]
    words += ["split=0", "run.keep=true", f"run.results={tmp_path}", "run.progress=false", "--plot", "relevance"]
    assert main(["run", *words]) == 0
    (record,) = Store(tmp_path).all()
    assert (tmp_path / f"{record.id}-relevance.png").is_file()
    kept = Store(tmp_path).trace(record.id)
    assert kept["kept_lengthscales"].shape == (30,) and (kept["kept_lengthscales"] > 0).all()
    assert "kept_X" not in kept
