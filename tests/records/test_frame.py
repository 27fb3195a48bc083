"""Records as pandas DataFrames, with every value and its type; conditions on their fields."""

import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from samples import sample

import gpbench
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import filters
from gpbench.records.store import Store


def record(id, **more):
    base = {"setting": "m=15%", "output": None, "metrics": {"nll": 0.5, "error": 0.25}, "seconds": {"train": 1.5}}
    base |= {"dirty": False, "steps": 250, "objective": -3.5, "held_out": True, "created": "2026-01-01T00:00:00"}
    return sample(id, **base | more)


IMPORTED = {"imported": True, "source": "x.csv", "dirty": None, "steps": None, "objective": None}
RECORDS = [
    record("a" * 16, split_set="hla", train_rows=9, test_rows=1, converged=False),
    record("b" * 16, status="diverged", metrics={"nll": None, "error": None}, created="2026-01-02T00:00:00"),
    record("c" * 16, metrics={"rmse": 1, "test_ll": -2.5}, output="torque", split=3, created="2026-01-03T00:00:00"),
    record("d" * 16, **IMPORTED, metrics={"rmse": 2.0}, seconds={}, created="2026-01-04T00:00:00"),
]


@pytest.fixture
def results(tmp_path):
    for one in RECORDS:
        Store(tmp_path / "results").write(one, {}, {})
    return tmp_path / "results"


def test_a_row_is_a_run_with_its_metrics_and_seconds(results):
    table = gpbench.frame(results)
    assert list(table["id"]) == [record.id for record in RECORDS]
    assert table["metrics.nll"][0] == 0.5 and table["metrics.nll"].isna().tolist() == [False, True, True, True]
    assert list(table["metrics.rmse"])[2:] == [1.0, 2.0] and list(table["seconds.train"])[:3] == [1.5] * 3
    assert table["output"].isna().tolist() == [True, True, False, True] and table["output"][2] == "torque"
    assert table["status"].tolist() == ["done", "diverged", "done", "done"]
    of_first = table.iloc[0][["split_set", "train_rows", "test_rows", "converged"]]
    assert of_first.tolist() == ["hla", 9, 1, False]
    assert table["imported"].tolist() == [False, False, False, True] and table["source"][3] == "x.csv"


def test_a_row_of_the_long_form_is_a_run_and_a_metric(results):
    table = gpbench.frame(results, long=True)
    expected = [(one.id, name, value) for one in RECORDS for name, value in one.metrics.items()]
    assert list(zip(table["id"], table["metric"])) == [(id, name) for id, name, _ in expected]
    assert [None if pd.isna(v) else v for v in table["value"]] == [value for _, _, value in expected]
    assert list(table["held_out"]) == [True] * len(expected)
    means = table.groupby(["dataset", "method", "metric"])["value"].mean()
    assert means["pima", "sep", "rmse"] == 1.5


@pytest.mark.parametrize("long", [False, True])
def test_types_do_not_depend_on_what_is_missing(results, tmp_path, long):
    kinds = {"split": "Int64", "seed": "Int64", "imported": "boolean", "dataset": "string", "output": "string"}
    kinds |= {"value": "float64"} if long else {"steps": "Int64", "dirty": "boolean", "metrics.nll": "float64"}
    kinds |= {"split_set": "string"} | ({} if long else {"converged": "boolean", "train_rows": "Int64"})
    Store(tmp_path / "one").write(RECORDS[0], {}, {})
    for folder in (results, tmp_path / "one"):
        table = gpbench.frame(folder, long=long)
        assert {name: str(table[name].dtype) for name in kinds} == kinds
    assert gpbench.frame(results)["steps"].tolist()[:3] == [250] * 3


def test_several_folders_are_one_frame_with_the_latest_record_of_each_run(results, tmp_path):
    newer = replace(RECORDS[0], created="2026-02-01T00:00:00", steps=999)
    Store(tmp_path / "other").write(newer, {}, {})
    table = gpbench.frame([results, str(tmp_path / "other")])
    assert list(table["id"]) == [RECORDS[k].id for k in (1, 2, 3, 0)] and table["steps"].tolist()[-1] == 999


@pytest.mark.parametrize(
    ("folders", "line"),
    [
        ("nowhere", "nowhere: no such folder"),
        (".", "no runs in runs yet"),
        ("results/runs", "no runs in results/runs/runs"),
        ([], "the list of results folders is empty"),
        (["results", "nowhere"], "nowhere: no such folder"),
        ("none.parquet", "no such file"),
    ],
)
def test_a_frame_of_nothing_is_one_line(results, monkeypatch, folders, line):
    monkeypatch.chdir(results.parent)
    with pytest.raises(ConfigError, match=line):
        gpbench.frame(folders)


def test_errors_over_test_rows_have_columns_of_their_own_where_a_record_has_them(tmp_path, results):
    assert not [name for name in gpbench.frame(results) if name.startswith("row_stderr")]
    Store(results).write(record("e" * 16, row_stderr={"nll": 0.25}, created="2026-01-05T00:00:00"), {}, {})
    assert gpbench.frame(results)["row_stderr.nll"].tolist()[-1] == 0.25
    long = gpbench.frame(results, long=True)
    assert long["row_stderr"].isna().tolist() == [True] * (len(long) - 2) + [False, True]


def test_a_collection_has_the_same_frame_as_its_folder(results, tmp_path):
    assert main(["collect", str(results), "--out", str(tmp_path / "all.parquet")]) == 0
    pd.testing.assert_frame_equal(gpbench.frame(tmp_path / "all.parquet"), gpbench.frame(results))


def test_pandas_is_imported_by_the_first_frame_and_by_no_other_verb(tmp_path, results):
    code = (
        "import sys, gpbench; from gpbench.cli import main;"
        f"main(['ls', 'runs', '--results', {str(results)!r}]); main(['table', '--results', {str(results)!r}]);"
        "assert not {'pandas', 'jax'} & set(sys.modules);"
        f"gpbench.frame({str(results)!r}); assert 'pandas' in sys.modules and 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


FEW = [
    sample("a", setting="m=15%, x=1", metrics={"nll": 0.4}, dirty=True),
    sample("b", dataset="heart", setting="m=25%", split=1, metrics={"nll": None}, dirty=False),
    sample("c", dataset="heart", setting="m=15%", split=10, metrics={"rmse": 3.0}, dirty=None),
]


IDS = {"dataset=heart": "bc", "dataset=pima,heart": "abc", "setting=m=15%, x=1": "a", "split=1": "b", "dirty=true": "a"}
IDS |= {"split>0; split<=10": "bc", "metrics.nll<0.5": "a", "metrics.nll=null": "bc", "dirty<2": "", "": "abc"}
WRONG = {"datset=x": "did you mean dataset", "metrics.nl<1": r"did you mean metrics\.nll"}
WRONG |= {"split<a": "'a' is no number", "split": "write FIELD=VALUE"}


def test_conditions_keep_the_records_that_meet_all_of_them_and_a_wrong_one_is_a_line():
    for conditions, ids in IDS.items():
        met = filters.matching(FEW, conditions.split("; ") if conditions else [])
        assert "".join(record.id for record in met) == ids, conditions
    for condition, line in WRONG.items():
        with pytest.raises(ConfigError, match=line):
            filters.matching(FEW, [condition])
