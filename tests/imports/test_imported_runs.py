"""Imported runs beside ours: marks, outputs, split sets and seconds."""

import json

import numpy as np
import pandas as pd
import pytest
from submitted import bring, data, records, regression

from gpbench.analysis.cells import group_runs
from gpbench.cli import main
from gpbench.config.compose import compose
from gpbench.data import configured, splits
from gpbench.records.store import Store
from gpbench.report.site import views


@pytest.fixture(scope="module")
def beside_ours(tmp_path_factory):
    """Imported and own runs of two data sets."""
    folder = tmp_path_factory.mktemp("beside")
    for name in ("sinc", "friedman"):
        words = [f"dataset={name}", "method=linear", "split=[0,1]", f"run.results={folder / 'results'}"]
        assert main(["run", *words, "run.progress=false"]) == 0
    assert bring(folder, pd.concat([regression(k, name) for k in (0, 1) for name in ("sinc", "friedman")])) == 0
    return folder / "results"


def test_tables_ranks_comparisons_the_site_csv_and_json_mark_them(beside_ours, printed):
    for words in ("table", "rank", "compare theirs linear", "compare theirs linear --metric test_ll"):
        out = printed(*words.split(), "--results", beside_ours)
        assert "imported: predictions of another program" in out and "theirs (theirs.parquet, SHA-256" in out
    for cell in group_runs(Store(beside_ours).all()):
        assert (("imported", "imported") in views.badges(cell)) is (cell.method == "theirs")
    header, *lines = printed("table", "--results", beside_ours, "--format", "csv").splitlines()
    assert header.endswith(",imported") and {line.rsplit(",")[-1] for line in lines if "theirs" in line} == {"true"}
    rows = json.loads(printed("table", "--results", beside_ours, "--json"))
    assert {row["method"]: row["imported"] for row in rows} == {"theirs": True, "linear": False}


OWN_CARD = """
name: wings
task: regression
outputs: 2
sources: [{kind: file, path: wings.csv, target: [lift, drag]}]
splits: {set: random90, sets: {random90: 3, hla: 3}}
"""


@pytest.fixture
def wings(tmp_path, new_file):
    """A user's data set of two outputs and two split sets, its arrays, and predictions for a split of either set."""
    new_file(tmp_path / "dataset" / "wings.yaml", OWN_CARD)
    rows = [f"{i},{i % 7},{i / 2},{-i * i}" for i in range(40)]
    (tmp_path / "dataset" / "wings.csv").write_text("\n".join(["speed,angle,lift,drag", *rows]) + "\n")

    def table(split_set, output):
        cfg = compose(["dataset=wings", f"dataset.splits.set={split_set}"], [tmp_path])
        dataset = configured(cfg)
        _, test = splits.indices(cfg["dataset"], dataset, 1)
        values = {"mean": dataset.y[test, output or 0] + 3.0, "variance": 9.0}
        columns = {"dataset": "wings", "split": 1, "method": "theirs", "row": test, **values}
        return pd.DataFrame(columns if output is None else {**columns, "output": output})

    return tmp_path, table


def test_data_rows_exports_the_split_of_a_set(wings, monkeypatch, printed):
    monkeypatch.chdir(wings[0])
    assert "180 training and 20 test rows in sinc-3.npz" in printed("data", "rows", "sinc", "--split", "3")
    dataset, train, test = data("sinc", 3)
    with np.load("sinc-3.npz") as file:
        for name, expected in (("X", dataset.X), ("y", dataset.y), ("train", train), ("test", test)):
            np.testing.assert_array_equal(file[name], expected)
        assert tuple(file["classes"]) == () and tuple(file["columns"]) == dataset.columns
    for words, split_set in (("--split 1", "random90"), ("--split 1 --set hla", "hla")):
        assert main(["data", "rows", "wings", *words.split(), "--config-dir", "."]) == 0
        with np.load("wings-hla-1.npz" if "hla" in words else "wings-1.npz") as file:
            assert (str(file["dataset"]), int(file["split"]), str(file["split_set"])) == ("wings", 1, split_set)
    for wrong in ("--split 20", "--split 0 --set yang"):
        assert main(["data", "rows", "sinc", *wrong.split()]) == 2


def test_each_output_is_a_run_of_its_own(wings, capsys):
    folder, table = wings
    both = pd.concat([table("random90", output) for output in (0, 1)])
    assert bring(folder, both, "--config-dir", str(folder)) == 0
    assert {(r.output, r.metrics["rmse"]) for r in records(folder)} == {("lift", 3.0), ("drag", 3.0)}
    assert len({r.cell for r in records(folder)}) == 2
    assert bring(folder, table("random90", None), "--config-dir", str(folder)) == 2
    assert "the outputs of wings are 0 (lift), 1 (drag)" in capsys.readouterr().err


def test_another_split_set_has_other_rows_and_another_id_and_the_default_by_its_name_the_same(wings):
    folder, table = wings
    own = ("--config-dir", str(folder))
    assert bring(folder, table("hla", 0), *own) == 3  # not the rows of random90
    assert bring(folder, table("hla", 0), *own, "--set", "hla") == 0
    for words in ([], ["--set", "random90"]):
        assert bring(folder, table("random90", 0), *own, *words) == 0
    assert {record.setting for record in records(folder)} == {"set=hla", ""} and len(records(folder)) == 2


def test_a_file_may_say_why_it_has_no_predictions(tmp_path):
    error = "ended with an error"
    for split, (lost, reason, message) in enumerate(
        (
            ("out of memory", "out of memory", "out of memory"),
            ("over time", "over time", "over time"),
            ("LinAlgError: not  positive\ndefinite", error, "LinAlgError: not positive definite"),
            ("e" * 300, error, "e" * 200),
        )
    ):
        table = regression(split, seconds=23.0, lost=lost).drop(columns=["mean", "variance"])
        assert bring(tmp_path, table) == 0
        (record,) = (one for one in records(tmp_path) if one.split == split)
        assert record.status == "failed" and set(record.metrics.values()) == {None} and record.message == message
        assert set(record.undefined.values()) == {reason} and {"test_ll", "rmse", "crps"} <= record.metrics.keys()


def test_what_is_lost_needs_the_rows_of_the_split_and_predictions_beside_the_reason_are_refused(tmp_path, capsys):
    table = regression(lost="over time").drop(columns=["mean", "variance"])
    assert bring(tmp_path, table.iloc[1:]) == 3 and "test rows is missing" in capsys.readouterr().err
    table.loc[0, "lost"] = None
    assert bring(tmp_path, table) == 3 and "has another value of lost than the first row" in capsys.readouterr().err
    for lost, line in ((0.0, "lost is 0.0: write why"), (False, "lost is False: write why"), ("no", "and lost 'no'")):
        assert bring(tmp_path, regression(lost=lost)) == 3 and line in capsys.readouterr().err
    assert not records(tmp_path)
    assert bring(tmp_path, regression(lost=None)) == 0 and records(tmp_path)[0].status == "done"
