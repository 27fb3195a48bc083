"""Published values are the papers', in our units, with notes; sentences about figures, on committed numbers."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from committed import PLANNER

from gpbench.claims.quantities import COMPARISONS
from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.papers.published import NOTES, later, lookup, parts, rows_of
from gpbench.records.collection import open_store
from gpbench.train.context import _setting_text


def test_every_printed_number_of_the_five_papers_is_there_in_a_metric_of_ours_with_a_known_note():
    count = {paper: sum(row["source"] == paper for row in rows_of("papers")) for paper in ("svdgp", "aep_dgp", "qsgp")}
    assert count == {"svdgp": 400, "aep_dgp": 390, "qsgp": 78}
    assert sum(row["source"] == "sep" for row in rows_of("papers")) == 76 + 4  # and the proceedings' stochastic runs
    for row in (*rows_of("papers"), *rows_of("later")):
        assert math.isfinite(float(row["mean"])) and row["note"] in {"", *NOTES}, row
        assert not row["err"] or float(row["err"]) >= 0
        assert row["err_kind"] in {"", "std", "stderr"} and row["held_out"] in {"0", "1"}
    from gpbench.papers.published import _READ_AS

    assert set(_READ_AS) <= set(METRICS)


def test_printed_deviations_are_divided_by_root_n_rounding_counts_and_later_papers_are_found_by_metric():
    values = lookup("pima", "sep", "m=50%", "nll")
    assert (values.value, values.err, values.n, values.table) == (0.5, 0.05, 20, "1")
    rounding = 0.01**2 / 12  # variance of the rounding to 0.01, of a value and of an error
    assert values.stderr == pytest.approx(math.sqrt((0.05**2 + rounding) / 20 + rounding)) and values.text == "0.50"
    assert lookup("boston", "pbp", "", "test_ll").stderr == pytest.approx(math.sqrt(0.09**2 + 2 * rounding))
    dropout = lookup("boston", "dropout", "", "test_ll").stderr
    assert dropout == pytest.approx(math.sqrt((0.25**2 + rounding) / 20 + rounding))
    assert lookup("kin8nm", "hmc", "", "rmse").stderr == pytest.approx(math.sqrt(2 * rounding))  # 0.06 ± 0.00
    percent = lookup("mnist_odd_even", "sep", "m=200", "error")
    assert percent.err is percent.stderr is None  # without a printed error no rounding makes one
    values = later("boston", "test_ll")
    assert any(p.method == "PBP" and p.value == -2.574 and p.stderr == pytest.approx(0.089, abs=1e-5) for p in values)
    assert all(p.source for p in values) and later("pima", "nll") and later("boston", "nmse") == []
    for name in ("kin40k", "protein_yang", "kegg", "ctslice", "keggu", "song"):  # in the units of the same files
        assert len(later(name, "rmse")) == 7


def test_printed_values_become_our_metrics_in_our_units():
    mnist, kernel = "mnist_odd_even", "kernel=squared_exponential(isotropic)"
    for cell, value in (
        ((mnist, "sep", "m=200", "error"), 0.027),  # printed as per cent
        ((mnist, "qsgp", f"rff, m=1000000, k=0, {kernel}", "error"), 0.0215),  # printed as accuracy 97.85 %
        ((mnist, "qsgp", f"rff, m=1e6, k=0, {kernel}", "nll"), 0.068),  # printed as MNLP
        (("glass", "dgp", "hidden=[]", "nll"), 0.79),  # printed as test log-likelihood
        (("kuka1", "svdgp", "", "vlb", "y1"), 98500.0),  # printed in 1e5
        (("kin40k", "qsgp", "inducing, m=n, k=0", "seconds"), 1.4 * 3600),
        (("protein_yang", "qsgp", "rff, m=1e5, k=0", "ll_std"), -1.34),  # printed as MNLP
    ):
        assert lookup(*cell).value == pytest.approx(value)


def test_a_setting_with_more_parts_finds_its_value_and_one_with_other_parts_does_not():
    assert lookup("pima", "sep", "m=15%, steps=10", "nll") == lookup("pima", "sep", "m=15%", "nll")
    assert lookup("pima", "sep", "m=20%", "nll") is None and lookup("pima", "other", "m=15%", "nll") is None
    assert lookup("mnist_odd_even", "sep", "m=200, batch=200, steps=9", "nll").value == 0.0528
    assert lookup("kuka1", "svdgp", "", "vlb") is None  # which output?
    assert parts("m=50, hidden=[3, 2],flag") == {"m": 50.0, "hidden": "[3, 2]", "flag": ""}


def test_tables_3_and_4_of_aep_dgp_are_not_held_out_and_mnlp_of_qsgp_is_read_in_its_units():
    leaked = {"dgp": "hidden=[2], m=100", "sgld": "hidden=[50]", "vi_kw": "hidden=[50,50]"}
    for method, setting in leaked.items():
        for metric in ("rmse", "test_ll"):
            values = lookup("kin8nm", method, setting, metric)
            assert not values.held_out and "8-bit" in values.note
    for method in ("vi_g", "pbp", "dropout", "hmc"):
        assert lookup("kin8nm", method, "", "rmse").held_out
    rows = [row for row in rows_of("papers") if row["source"] == "qsgp" and "mnlp" in row["metric"]]
    assert len(rows) == 6 * 5 + 3
    for row in rows:
        is_of_classes = row["dataset"] == "mnist_odd_even"
        cell = row["dataset"], row["method"], row["setting"]
        assert row["metric"] == ("mnlp" if is_of_classes else "mnlp_normalised")
        assert lookup(*cell, "nll" if is_of_classes else "ll_std")
        if not is_of_classes:
            assert lookup(*cell, "mnlp") is lookup(*cell, "test_ll") is None and lookup(*cell, "ll_std").n == 1


def test_mnlp_of_paper_qsgp_is_in_units_of_standardised_targets_and_rmse_in_those_of_the_files(mirror):
    with np.load(mirror / "protein_yang.npz") as archive:
        std = float(archive["y"].std())
    # The paper's RMSE is better than a constant's, which is std; its MNLP would not be, if it were in the same units.
    values = lookup("protein_yang", "qsgp", "rff, m=1e5, k=0", "rmse")
    mnlp = -lookup("protein_yang", "qsgp", "rff, m=1e5, k=0", "ll_std").value
    assert values.value < std and 0.5 * math.log(2 * math.pi * math.e * std**2) < mnlp


def test_our_settings_are_those_under_which_paper_qsgp_is_filed():
    for words, table, rmse in (
        ("method=qsgp", "2", 0.174),
        ("method=qsgp method.dense_columns=100", "2", 0.175),
        ("method=qsgp method.features=inducing method.basis=null", "3", 0.154),
        ("method=svgp", "2", 0.247),
        ("method=svgp method.fixed=true", "3", 0.171),
    ):
        cfg = compose(["dataset=kin40k", "protocol=evans2020", *words.split()])
        value = lookup("kin40k", cfg["method"]["name"], _setting_text(build_method(cfg["method"]), cfg), "rmse")
        assert (value.table, value.value, value.n) == (table, rmse, 5)


RESULTS = Path(__file__).parents[2] / "results"


def test_a_control_variate_of_rank_5_multiplies_both_variances_with_the_kernel_of_an_exact_gp():
    """qsgp, section 4, figure 1, for our exact GP of 1,000 rows.  A wider kernel has a tenth at rank 300."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv").set_index(["kernel", "variance of", "rank"]).sort_index()
    for quantity in ("objective", "gradient"):
        line = table.loc["exact GP of 1,000 rows", quantity]
        assert line["ratio"][5] - 2 * line["se"][5] > 3  # no fall at small ranks
        assert line["ratio"].loc[5:].is_monotonic_decreasing
        wide = table.loc["lengthscale 4", quantity]
        assert (wide["ratio"] + 2 * wide["se"])[300] < 0.1


def test_control_variates_of_rank_100_and_more_lower_both_variances_for_every_kernel():
    """qsgp, section 2.4: two standard errors below that without one."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv")
    large = table[table["rank"] >= 100]
    assert len(large) == 4 * 3 * 2 and (large["ratio"] + 2 * large["se"] < 1).all()


def test_svdgp_varies_least_between_outputs_of_the_arm_by_error_and_nowhere_by_its_bound():
    """svdgp, section 4.2: standard deviations over outputs, of random rows with the paper's sizes."""
    below = {}
    for name in ("table3_full", "table5_full"):
        table = pd.read_csv(RESULTS / "svdgp" / f"{name}.csv")
        table = table[(table.protocol == "cheng2017") & table.output.str.fullmatch(r"y\d") & table["mean"].notna()]
        table = table[~table.setting.str.contains("groups90")]
        spreads = table.groupby(["metric", "method"])["mean"].std()
        for metric in ("nmse", "vlb"):
            below[name, metric] = {m for m, x in spreads[metric].items() if x < spreads[metric, "svdgp"]}
    assert below["table3_full", "nmse"] == set() and below["table5_full", "nmse"] == {"svi"}
    assert len(below["table3_full", "vlb"]) == 2 and len(below["table5_full", "vlb"]) == 1


def ends_of_starts():
    """The records of sep/starts by method, from the highest objective down, each with what it kept."""
    store = open_store(RESULTS / "sep" / "records.parquet")
    jobs = definition.read("sep/starts").jobs("full")
    ends = {}
    for job, plan in zip(jobs, PLANNER.plans([*map(definition.overrides, jobs)]), strict=True):
        (run,) = plan.runs
        ends.setdefault(job["method"], []).append((store.get(run.id), store.trace(run.id)))
    return {method: sorted(of, key=lambda end: -end[0].objective) for method, of in ends.items()}


def test_from_some_starts_gfitc_ends_in_a_poor_local_optimum_and_from_others_where_sep_and_svi_do():
    """sep, section 4.2, figure 2: 4 inducing points on banana.  Distances are in standard deviations of the inputs."""
    ends = ends_of_starts()
    (best, points), *others = ends["gfitc"]
    rivals = [ends[method][0][1] for method in ("sep", "svi")]
    assert all(COMPARISONS["inducing_distance"](points, rival) < 0.25 for rival in rivals)
    poor = [(end, arrays) for end, arrays in others if end.converged and end.objective < best.objective - 50]  # nats
    assert len(poor) > 2
    for _, arrays in poor:
        assert all(COMPARISONS["inducing_distance"](arrays, rival) > 0.5 for rival in rivals)
    assert sum(end.objective > best.objective - 0.01 for end, _ in others) > 1  # the best is no chance
