"""Cells of a table: means over splits of one configuration, without diverged runs; tables as text in every format."""

import csv
import io
import math

import pytest
from samples import sample

from gpbench.analysis import formats, printing, tables
from gpbench.analysis.cells import entries, entry, group_runs
from gpbench.analysis.provenance import provenance, provenance_lines
from gpbench.analysis.sheets import Sheet
from gpbench.analysis.writers.terminal import as_text, chunks


def run(split=0, nll=..., **fields):
    defaults = {"id": f"{fields}{split}", "setting": "m=50%", "precision": "float64", "cell": "c", "split": split}
    values = {"metrics": {"nll": 0.5 + split / 100 if nll is ... else nll, "error": 0.2}, "seconds": {"train": 2.0}}
    return sample(**defaults | values | {"device": "cpu", "versions": {"jax": "0.10"}} | fields)


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
    rounding = 0.01 * math.sqrt(21 / 20 / 12)  # of the printed 0.50 ± 0.05 over 20 splits
    joint = math.hypot(0.1 / math.sqrt(3), 0.05 / math.sqrt(20), rounding)
    assert ours.delta_se == pytest.approx(0.1 / joint) and ours.band == pytest.approx(100 * 2 * joint / 0.5)
    ours = one([run(0, 0.0), run(0, 0.2, seed=1), run(1, 0.5)])
    assert (ours.mean, ours.n_splits) == (pytest.approx(0.3), 2)
    assert one([run()], "seconds").mean == 2.0


def test_diverged_failed_and_undefined_runs_are_counted_and_never_averaged():
    records = [run(0, 0.4), run(1, 0.6), run(2, 99.0, status="diverged"), run(3, None)]
    ours = one(records)
    assert (ours.mean, ours.n_splits, ours.diverged) == (pytest.approx(0.5), 2, 1)
    assert ours.undefined == {"not finite": 1} and ours.lost == "1 run diverged, 1 run not finite"
    records = [run(0, 0.4), *(run(k, None, undefined={"nll": "1 class"}) for k in (1, 2))]
    assert (one(records).mean, one(records).lost) == (0.4, "2 runs undefined (1 class)")
    assert one(records[1:]).no_value == "undefined" and one(records, "error").lost == ""
    (ours,) = entries(group_runs([run(0, status="diverged", metrics={})]), ["nll"])
    assert (ours.mean, ours.n_splits, ours.diverged) == (None, 0, 1)
    fine = [run(k, 0.4, train_rows=90, test_rows=10, held_out=True) for k in (0, 1)]
    lack = {"metrics": {"nll": None}, "undefined": {"nll": "over time"}, "train_rows": None, "test_rows": None}
    (cell,) = group_runs([*fine, run(2, status="failed", held_out=None, **lack)])
    assert cell.ratio == pytest.approx(1 / 9) and len(cell.records) == 3


def test_different_values_are_never_mixed_and_provenance_counts_devices_and_commits():
    for field in ("protocol", "precision"):
        cells = group_runs([run(0), run(1, **{field: "other"})])
        assert {cell.label for cell in cells} == {f"m=50%, {field}={of}" for of in (getattr(run(), field), "other")}
        assert all(entry(cell, "nll").published.value == 0.5 for cell in cells) and len(cells) == 2
    cells = group_runs([run(cell=k, data_checksum=k[0], created=k) for k in ("3a", "1a", "3b", "2c")])
    ends = [cell.label.removeprefix("m=50%, data_checksum=") for cell in cells]
    assert ends == ["1", "2", "3, defaults=newest", "3, defaults=older"] and cells[2].records[0].created == "3b"
    counts = provenance([run(device="cpu", commit="a" * 40), run(1, device="gpu", dirty=True, commit="a" * 40)])
    assert counts["device"] == {"cpu": 1, "gpu": 1}
    assert provenance_lines([run()])[0].startswith("1 run: ") and provenance_lines([run(), run(1)])[0][:7] == "2 runs:"
    assert counts["commit"] == {"a" * 12: 1, "a" * 12 + " with changes": 1}


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


def entries_of(records, metrics=()):
    return entries(group_runs(records), metrics)


def sheet(records, metrics=()):
    return tables.sheet(entries_of(records, metrics))


def parsed(records, metrics=()):
    return list(csv.DictReader(io.StringIO(formats.FORMATS["csv"](sheet(records, metrics)))))


def test_a_single_split_has_its_error_over_test_rows_and_several_have_theirs_over_splits():
    """Seeds are of the same rows: the error of their mean is taken to be the mean of theirs."""
    errors = [run(row_stderr={"nll": 0.03}), run(seed=1, id="second", row_stderr={"nll": 0.05})]
    (single,) = entries_of(errors)
    assert single.row_stderr == 0.04 and "0.500 ± 0.040" in as_text(sheet(errors))
    assert "over the test rows of one split" in as_text(sheet(errors))
    several = [errors[0], run(1, row_stderr={"nll": 0.03})]
    assert entries_of(several)[0].row_stderr is None and "0.5050 ± 0.0050" in as_text(sheet(several))
    mixed = as_text(sheet([*several, run(method="svi", row_stderr={"nll": 0.03})]))
    assert "0.500 ± 0.030" in mixed and "1 split, ± over its test rows" in mixed
    most = [run(method=name, row_stderr={"nll": 0.03}) for name in ("svi", "gfitc")]  # of one split, the usual number
    assert as_text(sheet([*several, *most])).count("1 split, ± over its test rows") == 1
    assert "± over its test rows" not in as_text(sheet(most))
    assert "which have no standard error" in as_text(sheet([run()]))


def test_csv_has_one_row_per_metric_and_says_whose_value_is_not_held_out():
    fields = {"dataset": "kin8nm", "method": "dgp", "setting": "hidden=[], m=50"}
    ours = run(**fields, metrics={"rmse": 0.1, "test_ll": 1.0})
    names = ("metric", "published", "held_out", "published_held_out")
    assert [tuple(row[name] for name in names) for row in parsed([ours])] == [
        ("rmse", "0.07", "true", "false"),
        ("test_ll", "1.31", "true", "false"),
    ]
    (leaked,) = parsed([run(**fields, metrics={"rmse": 0.1}, held_out=False)], ["rmse"])
    assert (leaked["held_out"], leaked["published_held_out"]) == ("false", "false")
    assert [row["metric"] for row in parsed([run()], ["nll", "seconds"])] == ["nll", "seconds"]


def test_a_cell_has_mean_error_splits_and_the_published_value_and_mixed_properties_are_named():
    output = as_text(sheet([run(), run(1), run(2, status="diverged")]))
    assert "2 splits." in output and "0.5050 ± 0.0050ᵃ" in output and "ᵃ 1 run diverged" in output
    assert "0.50 (+0.4)" in output and tables.LEGEND in output
    assert "divergedᵃ" in as_text(sheet([run(status="diverged")]))
    same = provenance_lines([run(), run(1)])
    (mixed,) = provenance_lines([run(), run(1, device="gpu", protocol="hl")])
    assert len(same) == 1 and "protocol clean" in same[0] and "jax 0.10" in same[0] and "preset by hand" in same[0]
    assert "; protocol clean (1), hl (1)" in f"; {mixed.partition(': ')[2]}" and "; device cpu (1), gpu (1);" in mixed
    assert printing.number(0.11234, 0.0112) == "0.112 ± 0.011"
    assert printing.number(-36.123, 12.3) == "-36 ± 12"
    assert printing.number(9.99, 0.0996) == "9.990 ± 0.100"
    assert [printing.number(*pair) for pair in ((98500.0, None), (None,), (1.0, 0.0))] == ["9.85e+04", "-", "1"]


def test_marks_lead_to_footnotes_in_every_format_and_a_wide_table_is_cut_into_columns_that_fit():
    deep = run(dataset="kin8nm", method="dgp", setting="hidden=[], m=50", held_out=False)
    records = [run(dataset="australian"), deep]
    for name in ("terminal", "md", "latex"):
        output = formats.FORMATS[name](sheet(records))
        a, b = ("ᵃ", "ᵇ") if name != "latex" else (r"\textsuperscript{a}", r"\textsuperscript{b}")
        between = "~" if name == "latex" else " "
        assert f"{a}{between}not held out" in output and f"0.64{b}" in output and f"{b}{between}not a target" in output
    (grid,) = sheet([run(setting=f"m={m}") for m in range(9)]).grids
    parts = chunks(grid, 60, Sheet(title="", grids=[grid], rows=()).notes)
    assert [name for part in parts for name in part.header[1:]] == list(grid.header[1:]) and len(parts) > 1
    titles = [line for line in as_text(Sheet(title="", grids=[grid], rows=()), 60).splitlines() if " of 9" in line]
    first = len(parts[0].header) - 1
    assert len(titles) == len(parts) and titles[0].endswith(f"columns 1 to {first} of 9")
    assert not any(" of 9" in line for line in as_text(Sheet(title="", grids=[grid], rows=()), 1000).splitlines())
