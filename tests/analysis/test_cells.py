"""Cells of a table: means over splits of one configuration, without diverged runs."""

import math

import pytest
from samples import sample

from gpbench.analysis.cells import entries, entry, group_runs
from gpbench.analysis.provenance import provenance, provenance_lines


def run(split=0, nll=0.5, **fields):
    defaults = {"id": f"{fields}{split}", "setting": "m=50%", "precision": "float64", "cell": "c", "split": split}
    return sample(**defaults | {"metrics": {"nll": nll, "error": 0.2}, "seconds": {"train": 2.0}} | fields)


def one(records, metric="nll"):
    (cell,) = group_runs(records)
    return entry(cell, metric)


def test_the_mean_of_seeds_then_splits_its_standard_error_and_the_difference_in_joint_ones():
    ours = one([run(0, 0.4), run(1, 0.5), run(2, 0.6)])
    assert (ours.mean, ours.n_splits, ours.diverged) == (pytest.approx(0.5), 3, 0)
    assert ours.stderr == pytest.approx(0.1 / math.sqrt(3)) and ours.published.value == 0.5
    single = one([run(0, 0.4)])
    assert (single.mean, single.stderr, single.delta_se) == (0.4, None, None)
    ours = one([run(0, 0.5), run(1, 0.6), run(2, 0.7)])
    assert ours.delta_se == pytest.approx(0.1 / math.hypot(0.1 / math.sqrt(3), 0.05 / math.sqrt(20)))
    ours = one([run(0, 0.0), run(0, 0.2, seed=1), run(1, 0.5)])
    assert (ours.mean, ours.n_splits) == (pytest.approx(0.3), 2)
    assert one([run()], "seconds").mean == 2.0


def test_diverged_and_undefined_runs_are_counted_and_never_averaged():
    records = [run(0, 0.4), run(1, 0.6), run(2, 99.0, status="diverged"), run(3, None)]
    ours = one(records)
    assert (ours.mean, ours.n_splits, ours.diverged) == (pytest.approx(0.5), 2, 1)
    assert ours.undefined == {"not finite": 1} and ours.lost == "1 run diverged, 1 run not finite"
    records = [run(0, 0.4), *(run(k, None, undefined={"nll": "1 class"}) for k in (1, 2))]
    assert (one(records).mean, one(records).lost) == (0.4, "2 runs undefined (1 class)")
    assert one(records[1:]).no_value == "undefined" and one(records, "error").lost == ""
    (ours,) = entries(group_runs([run(0, status="diverged", metrics={})]), ["nll"])
    assert (ours.mean, ours.n_splits, ours.diverged) == (None, 0, 1)


def test_different_values_are_never_mixed_and_stand_in_the_label():
    for field in ("protocol", "precision"):
        cells = group_runs([run(0), run(1, **{field: "other"})])
        assert {cell.label for cell in cells} == {f"m=50%, {field}={of}" for of in (getattr(run(), field), "other")}
        assert all(entry(cell, "nll").published.value == 0.5 for cell in cells) and len(cells) == 2
    for field in ("cell", "data_checksum"):  # labelled by a digest
        cells = group_runs([run(0, **{field: "aaaa"}), run(1, **{field: "bbbb"})])
        assert len({cell.label for cell in cells}) == 2


def test_cells_are_of_equal_settings_in_natural_order_with_the_metrics_of_their_task():
    records = [run(0, preset="quick"), run(1, preset=None)]
    (cell,) = group_runs(records)
    assert (len(cell.records), cell.preset) == (2, "quick")
    assert [len(cell.records) for cell in group_runs(records, by_preset=True)] == [1, 1]
    cells = group_runs([run(0), run(1, precision="float32", setting="m=50%, precision=float32")])
    assert {cell.label for cell in cells} == {"m=50%, precision=float64", "m=50%, precision=float32"}
    regression = run(dataset="boston", metrics={"rmse": 1.0, "test_ll": -1.0, "nmse": 0.1})
    assert [e.metric for e in entries(group_runs([run()]))] == ["nll"]
    assert [e.metric for e in entries(group_runs([regression]))] == ["rmse", "test_ll"]
    assert [e.metric for e in entries(group_runs([regression]), ["all"])] == ["nmse", "rmse", "test_ll", "seconds"]
    cells = group_runs([run(setting="m=100"), run(setting="m=15"), run(setting="m=15", dataset="crabs")])
    assert [(cell.dataset, cell.setting) for cell in cells] == [("crabs", "m=15"), ("pima", "m=15"), ("pima", "m=100")]


def test_provenance_counts_devices_and_commits():
    counts = provenance([run(device="cpu", commit="a" * 40), run(1, device="gpu", dirty=True, commit="a" * 40)])
    assert counts["device"] == {"cpu": 1, "gpu": 1}
    assert provenance_lines([run()])[0].startswith("1 run: ") and provenance_lines([run(), run(1)])[0][:7] == "2 runs:"
    assert counts["commit"] == {"a" * 12: 1, "a" * 12 + " with changes": 1}


def test_a_run_that_failed_is_in_the_cell_of_the_others_and_takes_no_test_from_it():
    fine = [run(k, 0.4, train_rows=90, test_rows=10, held_out=True) for k in (0, 1)]
    lack = {"metrics": {"nll": None}, "undefined": {"nll": "over time"}, "train_rows": None, "test_rows": None}
    (cell,) = group_runs([*fine, run(2, status="failed", held_out=None, **lack)])
    assert cell.ratio == pytest.approx(1 / 9) and len(cell.records) == 3
