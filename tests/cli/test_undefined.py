"""A metric that does not exist on a test set is undefined, with the reason, and is never taken for a divergence."""

import json

import numpy as np
import pandas as pd
import pytest

import gpbench
from gpbench.records.record import Record
from gpbench.records.store import Store

CARD = """\
name: frauds
task: binary
sources: [{kind: file, path: frauds.csv, target: fraud}]
splits: {sets: {random90: 20}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, new_file):
    """A table of 120 rows with two positives."""
    folder = tmp_path_factory.mktemp("frauds")
    rows = [f"{x:.3f},{int(k in (4, 75))}" for k, x in enumerate(np.random.default_rng(0).normal(size=120))]
    new_file(folder / "dataset" / "frauds.csv", "\n".join(["x,fraud", *rows]))
    (folder / "dataset" / "frauds.yaml").write_text(CARD)
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """The runs of a method on its 20 splits; beside them the same of another method and on other data."""
    keys = {"split": "all", "run__device": "cpu", "results": folder / "results", "config_dir": folder}
    runs = gpbench.run(dataset="frauds", method="constant", **keys)
    for data, method in (("frauds", "other"), ("more", "constant"), ("more", "other")):
        for record in runs:
            shift = {"nll": record.metrics["nll"] + 0.01 * record.split * (method == "other")}
            fields = {"dataset": data, "method": method, "metrics": {**record.metrics, **shift}}
            other = record.to_json() | {"id": f"{data}{method}{record.id[-8:]}"} | fields
            Store(folder / "results").write(Record.from_json(other), {}, {})
    return runs


@pytest.fixture
def printed(folder, runs, printed):
    return lambda *words: printed(*words, "--results", folder / "results")


def test_a_record_says_why_it_has_no_value_in_a_line(folder, runs):
    records = Store(folder / "results").all()
    assert {record.status for record in records} == {"done"} and len(records) == 80
    for record in records:
        assert record.undefined == ({"auc": "1 class"} if record.metrics["auc"] is None else None)
        assert all(value is not None for name, value in record.metrics.items() if name != "auc")
    for reason in ("two\nlines", "x" * 201, 3):
        with pytest.raises(ValueError, match="auc is no reason in a line"):
            Record.from_json(runs[0].to_json() | {"undefined": {"auc": reason}})


def test_tables_ranks_and_differences_count_undefined_values_apart(printed, runs):
    n = sum(record.metrics["auc"] is None for record in runs)  # splits whose test rows are of one class
    assert 10 < n < 20
    out = printed("table", "--metric", "auc", "--dataset", "frauds")
    assert f": {n} runs undefined (1 class)" in out or f"ᵃ {n} runs undefined (1 class)" in out
    assert "diverged" not in out
    row = json.loads(printed("table", "--metric", "auc", "--json"))[0]
    assert (row["n_splits"], row["diverged"], row["undefined"]) == (20 - n, 0, {"undefined (1 class)": n})
    assert "splits without auc do not count: frauds: undefined (1 class); more: undefined (1 class)" in printed(
        "rank", "--metric", "auc"
    )
    out = printed("compare", "other", "constant", "--metric", "auc")
    assert f" {20 - n} ({2 * n} undefined)" in out and f"frauds: {2 * n} runs undefined (1 class)" in out


def test_show_lists_and_frames_have_the_reason(folder, printed, runs):
    id = next(record.id for record in runs if record.undefined)
    assert "auc undefined (1 class)" in printed("show", id)
    assert "auc undefined (1 class)" in printed("ls", "runs", "--where", f"id={id}")
    assert printed("ls", "runs", "--where", "undefined.auc=1 class", "--json").count('"id"') == sum(
        record.undefined is not None for record in Store(folder / "results").all()
    )
    wide, long = (gpbench.frame(folder / "results", long=long).set_index("id") for long in (False, True))
    assert wide.loc[id, "undefined.auc"] == "1 class" and wide["undefined.auc"].isna().any()
    assert long.loc[id].set_index("metric")["undefined"].dropna().to_dict() == {"auc": "1 class"}
    assert pd.isna(wide.loc[id, "metrics.auc"])


def test_a_user_s_metric_that_returns_nan_is_undefined(folder, tmp_path, monkeypatch, new_file):
    (folder / "f1_of_few.py").write_text("import numpy as np\ndef f1(scored):\n    return np.nan\n")
    new_file(folder / "metric" / "f1.yaml", "_target_: f1_of_few.f1\ntasks: [binary]\nbetter: higher\n")
    monkeypatch.syspath_prepend(str(folder))
    (record,) = gpbench.run(dataset="frauds", method="constant", results=tmp_path, config_dir=folder)
    assert record.undefined["f1"] == "NaN" and record.metrics["f1"] is None and not record.diverged
