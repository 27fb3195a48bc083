"""A paper's table from records: the right numbers and marks in every format, and nothing missing in silence."""

import csv
import io
import math
from dataclasses import replace

import pytest

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.report import formats
from gpbench.report.cells import cells, entries
from gpbench.report.experiment import rank, same, table

EXPERIMENT = Experiment(
    id="sep/test", title="A table", paper="sep", blocks=[], presets={"quick": "4 splits"},
    labels={"method.inducing": {"0.15": "m=15%"}},
    table={"blocks": "method.inducing", "rows": "dataset", "columns": "method", "metrics": ["nll"],
           "average": "seconds"},
)  # fmt: skip
NLL = {"gfitc": [0.40, 0.52, 0.47, 0.55], "sep": [0.41, 0.50, 0.48, 0.54], "svi": [0.60, 0.71, 0.69, 0.75]}


def record(dataset="pima", method="sep", split=0, nll=0.5, **fields):
    return {
        "id": f"{dataset}{method}{split}", "cell": dataset + method, "status": "done", "dataset": dataset,
        "method": method, "setting": "m=15%", "protocol": "hl2016", "precision": "float64", "preset": "quick",
        "split": split, "seed": 0, "output": None, "metrics": {"nll": nll}, "device": "a cpu", "commit": "c" * 40,
        "seconds": {"compile": 1.0, "train": 2.0 + split}, "versions": {"jax": "0.10", "numpy": "2"}, **fields,
    }  # fmt: skip


def cell(dataset="pima", method="sep", **fields):
    job = {"dataset": dataset, "method": method, "method.inducing": "0.15"}
    return Cell(job=job, id=dataset + method, dataset=dataset, method=method, seed=0, splits=range(4), **fields)


def find(cells, records):
    """The cells with their records."""
    return [replace(c, records=tuple(r for r in records if r["cell"] == c.id)) for c in cells]


CELLS = [cell(dataset, method) for dataset in ("pima", "australian") for method in NLL]
RECORDS = [record(d, m, k, nll) for d in ("pima", "australian") for m in NLL for k, nll in enumerate(NLL[m])]


def shown(format, records=RECORDS, preset="quick"):
    sheet = table(EXPERIMENT, preset, find(CELLS, records), formats.MARKS[format])
    return formats.FORMATS[format](sheet)


@pytest.mark.parametrize(
    "format, best, tied",
    [("terminal", "0.482 ± 0.027*", "0.485 ± 0.033≈"), ("md", "**0.482 ± 0.027**", "*0.485 ± 0.033*"),
     ("latex", r"\textbf{0.482 $\pm$ 0.027}", r"\underline{0.485 $\pm$ 0.033}")],
)  # fmt: skip
def test_best_and_tied_are_marked_beside_splits_and_published(format, best, tied):
    text = shown(format)
    assert f"{best} (4) [0.52, -1.2 se]" in text and f"{tied} (4) [0.54, -1.5 se]" in text
    assert "0.688 ± 0.032 (4) [0.49, +5.9 se]" in text.replace(r"$\pm$", "±")
    assert "paired t test over splits at 5" in text


def test_csv_has_the_same_numbers_and_marks():
    rows = list(csv.DictReader(io.StringIO(shown("csv"))))
    found = {(r["dataset"], r["method"], r["metric"]): r for r in rows}
    assert [found["pima", m, "nll"]["mark"] for m in NLL] == ["tied", "best", ""]
    ours = found["pima", "sep", "nll"]
    assert (float(ours["mean"]), float(ours["published"]), ours["n_splits"]) == (pytest.approx(0.4825), 0.52, "4")
    assert found["(average)", "sep", "seconds"]["mean"] == "3.5"


def test_latex_uses_booktabs():
    assert all(rule in shown("latex") for rule in (r"\toprule", r"\midrule", r"\bottomrule"))


def test_the_average_of_seconds_stands_beside_the_papers():
    (line,) = [line for line in shown("terminal").splitlines() if line.startswith("average seconds")]
    assert line.count("3.50 ± 0.65 (4)") == 3 and all(f"[{paper}]" in line for paper in (59, 17, 40))


def test_what_is_no_target_has_a_footnote_and_counts_in_no_verdict():
    text = shown("terminal")
    assert "[0.69, -6.6 se]¹" in text and "¹ not a target" in text
    assert "within 2 standard errors of the paper, or better: 2 of 3 cells; not: pima svi m=15% +5.9" in text


def test_the_foot_says_device_precision_versions_commit_and_what_it_took():
    text = shown("terminal")
    told = ("device a cpu", "precision float64", "jax 0.10, numpy 2", "commit cccccccccccc", "compile 24, train 84")
    assert all(fact in text for fact in told)


def test_missing_cells_and_splits_are_counted_and_named():
    records = [r for r in RECORDS if r["method"] != "svi" and r["split"] != 2]
    text = shown("terminal", records)
    assert "MISSING: 12 of 24 runs, in 6 of 6 cells: dataset=pima method=gfitc (1 of 4); " in text
    assert "dataset=pima method=svi (4 of 4)" in text and "0 done [0.49]" in text
    assert "MISSING" not in shown("terminal") and absent(find(CELLS, RECORDS)) == ""
    assert absent(find(CELLS, []), 2).endswith("; and 4 more")


def test_a_table_without_any_record_still_shows_the_paper():
    assert "0 done [0.52]" in shown("terminal", []) and shown("csv", []).count("\n") == 9


def test_the_quick_preset_and_mixed_presets_are_said_in_the_head():
    assert "QUICK PRESET: 4 splits" in shown("md").splitlines()[1]
    mixed = [*RECORDS[:-1], {**RECORDS[-1], "preset": "full"}]
    assert "MIXED presets: runs were made with full (1), quick (23)" in shown("terminal", mixed).splitlines()[1]
    full = [{**r, "preset": "full"} for r in RECORDS]
    assert preset_line(find(CELLS, full), "full", "20 splits") == "preset full: 20 splits"
    assert "MIXED" in preset_line(find(CELLS, RECORDS), "full", "")


def test_diverged_runs_are_counted_and_tie_with_nothing():
    lost = {"status": "diverged", "metrics": {"nll": None}}
    text = shown("terminal", [{**r, **lost} if r["method"] == "gfitc" else r for r in RECORDS])
    assert "0 done (4 diverged) [0.54]" in text and "0.482 ± 0.027* (4)" in text


def test_ties_are_those_of_a_paired_t_test():
    from scipy.stats import ttest_rel

    a, b = [0.1, 0.3, 0.2, 0.6, 0.4], [0.12, 0.33, 0.21, 0.69, 0.46]
    for shift in (0.0, 0.05, 0.1):
        moved = [x + shift for x in b]
        differences = [x - y for x, y in zip(moved, a)]
        assert same(differences) == (ttest_rel(moved, a).pvalue >= 0.05)
    assert same([0.0, 0.0]) and not same([0.1, 0.1, 0.1])


def test_where_more_is_better_the_largest_is_best():
    made = entries(cells([record(method=m, split=k, metrics={"test_ll": x + k / 9}, dataset="mine") for m, x in
                          (("a", 1.0), ("b", 3.0)) for k in range(3)]), ["test_ll"])  # fmt: skip
    assert rank(made) == ["", "best"]


def test_one_split_marks_nothing():
    made = entries(cells([record(method=m) for m in ("a", "b")]), ["nll"])
    assert rank(made) == ["", ""] and math.isfinite(made[0].mean)


def test_a_line_for_each_output_then_mean_and_standard_deviation_over_outputs_beside_the_papers():
    layout = {"rows": "output", "columns": "method", "metrics": ["nmse"]}
    told = replace(EXPERIMENT, table=layout)
    values = {"y1": (0.1, 0.2), "y2": (0.3, 0.6)}
    cells = [
        Cell(job={"method": "svi"}, id=name, dataset="kuka1", method="svi", seed=0, splits=range(2), output=name)
        for name in values
    ]
    records = [
        record("kuka1", "svi", k, cell=name, output=name, metrics={"nmse": nmse})
        for name, of in values.items() for k, nmse in enumerate(of)
    ]  # fmt: skip
    sheet = table(told, "quick", find(cells, records), formats.MARKS["csv"])
    found = {row["output"]: row for row in sheet.rows}
    assert list(found) == ["y1", "y2", "mean", "std"]
    assert found["mean"]["mean"] == pytest.approx(0.3) and found["std"]["mean"] == pytest.approx(0.15)
    assert (found["mean"]["published"], found["std"]["published"]) == (0.169, 0.025)
