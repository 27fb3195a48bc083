"""Collected records are the same as in their folders; records as DataFrames, and conditions on their fields."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from damaged import record
from samples import sample

import gpbench
from gpbench.claims import quantities as kept
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import collection, filters
from gpbench.records.collection import open_store
from gpbench.records.store import Store

VARIOUS = [
    record("a" * 16),
    record("b" * 16, status="diverged", metrics={"nll": None, "error": None}, message="why"),
    record("c" * 16, metrics={"rmse": 1, "test_ll": -2.5}, output=3, dirty=None, created="2026-01-02T00:00:00"),
    record("d" * 16, metrics={}, output="torque", strange=[1, "two", None], created="2026-01-03T00:00:00"),
]


@pytest.fixture
def folder(tmp_path):
    for original in VARIOUS:
        Store(tmp_path / "results").write(original, {"method": {"name": "sep"}}, {})
    return tmp_path


def test_records_and_configurations_come_back_as_they_were(folder):
    out = folder / "all.parquet"
    assert main(["collect", str(folder / "results"), "--out", str(out)]) == 0
    theirs, ours = Store(folder / "results"), open_store(out)
    assert ours.all() == theirs.all() and len(ours.all()) == len(VARIOUS)
    assert ours.find("ccc") == theirs.find("ccc") and ours.last() == theirs.last()
    assert ours.config("a" * 16) == {"method": {"name": "sep"}}
    table = pq.read_table(out)  # as other programs read it
    assert table.column("dataset").to_pylist() == ["pima"] * 4 and table.column("split").to_pylist() == [0] * 4
    metrics = [json.loads(text)["metrics"] for text in table.column("record").to_pylist()]
    assert [values.get("nll") for values in metrics].count(0.5) == 1


def test_a_collection_names_no_folders_of_the_machine_where_runs_were_made(tmp_path):
    folder = f"{tmp_path}/a folder with {'a long name ' * 9}"
    config = {"run": {"results": folder, "jobs": 2}, "data": {"mirror": folder, "store": "/data", "offline": True}}
    Store(tmp_path / "results").write(VARIOUS[0], {**config, "method": {"store": "/data"}}, {})
    out = tmp_path / "all.parquet"
    assert main(["collect", str(tmp_path / "results"), "--out", str(out)]) == 0
    assert open_store(out).config("a" * 16) == {
        "run": {"results": "results", "jobs": 2},
        "data": {"mirror": None, "store": None, "offline": True},
        "method": {"store": "/data"},
    }


@pytest.mark.parametrize(("words", "nll"), [([], 0.5), (["--newest"], 0.4)])
def test_of_runs_made_again_the_oldest_or_the_newest_is_collected(words, nll, tmp_path, printed):
    again = record("a" * 16, metrics={"nll": 0.4, "error": 0.2}, created="2026-02-01T00:00:00")
    for name, stored in (("new", again), ("old", VARIOUS[0])):
        Store(tmp_path / name).write(stored, {"method": {"name": "sep"}}, {})
    out = tmp_path / "all.parquet"
    said = printed("collect", tmp_path / "new", tmp_path / "old", *words, "--out", out)
    assert [record.metrics["nll"] for record in open_store(out).all()] == [nll]
    assert "1 of these have several records" in said


def test_of_a_run_made_twice_the_first_is_kept_and_other_numbers_are_told(folder, printed):
    later = "2027-01-01T00:00:00"
    Store(folder / "there").write(record("a" * 16, metrics={"nll": 0.5 + 1e-9, "error": 0.2}, created=later), {}, {})
    Store(folder / "there").write(record("c" * 16, metrics={"rmse": 1.1, "test_ll": -2.5}, created=later), {}, {})
    Store(folder / "there").write(record("e" * 16), {}, {})
    main(["collect", str(folder / "results"), "--out", str(folder / "here.parquet")])
    # a collection is collected like a folder
    words = [str(folder / "here.parquet"), str(folder / "there"), "--out", str(folder / "all.parquet"), "--json"]
    summary = json.loads(printed("collect", *words))
    assert (summary["records"], summary["differing"]) == (5, ["c" * 16])
    assert open_store(folder / "all.parquet").get("c" * 16).metrics["rmse"] == 1


def test_a_collection_has_thinned_traces_and_what_pictures_need_of_the_first_split(tmp_path):
    arrays = {"step": np.arange(1000), "nll": np.geomspace(1, 0.1, 1000), "kept_lengthscales": np.ones(50)}
    for split in (1, 0):
        Store(tmp_path / "results").write(record(f"{split}" * 16, split=split), {}, arrays)
    for source, out in (("results", "all.parquet"), ("all.parquet", "again.parquet")):  # thinned once
        assert main(["collect", str(tmp_path / source), "--out", str(tmp_path / out)]) == 0
        first, second = (open_store(tmp_path / out).trace(f"{split}" * 16) for split in (0, 1))
        assert first.keys() == arrays.keys() and second.keys() == {"step", "nll"}
        assert len(first["step"]) == len(first["nll"]) <= 48
        assert first["step"][[*range(10), -1]].tolist() == [*range(10), 999]
        np.testing.assert_allclose(first["nll"], arrays["nll"][first["step"]], rtol=1e-6)
    assert open_store(tmp_path / "all.parquet").all() == Store(tmp_path / "results").all()


def test_a_collection_has_of_other_splits_what_claims_read_of_kept_arrays(tmp_path):
    axis = np.linspace(0, 1, 20, dtype=np.float32)
    rows = {"X": np.eye(2, dtype=np.float32), "y": np.ones(2), "X_shift": np.zeros(2), "X_scale": np.ones(2)}
    arrays = {"kept_grid": np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2), "kept_inducing": np.eye(2) / 3}
    rows |= {"y_mean": np.zeros(()), "y_std": np.ones(())}
    arrays |= {f"kept_{name}": values for name, values in rows.items()}
    arrays["kept_log_probs"] = np.log(np.stack([1 + arrays["kept_grid"][:, 0], 2 - arrays["kept_grid"][:, 0]], 1) / 3)
    for split in (0, 1):
        Store(tmp_path / "results").write(record(f"{split}" * 16, split=split), {}, arrays)
    for source, out in (("results", "all.parquet"), ("all.parquet", "again.parquet")):
        assert main(["collect", str(tmp_path / source), "--out", str(tmp_path / out)]) == 0
        first, second = (open_store(tmp_path / out).trace(f"{split}" * 16) for split in (0, 1))
        assert first.keys() == arrays.keys() and not second.keys() & arrays.keys()
        assert kept.summary(second, "boundary_distance") == kept.boundary_distance(arrays) > 0
        assert kept.COMPARISONS["class_agreement"](first, second) == 1


@pytest.mark.parametrize(
    "words, line",
    [
        (["{}/nothing"], "nothing: no such folder"),
        (["{}/results", "--out", "all.csv"], "the name must end in .parquet"),
        (["{}/broken.parquet"], "cannot read"),
        (["{}/empty"], "no runs there yet"),
    ],
)
def test_a_mistake_is_one_line(words, line, folder, capsys):
    (folder / "broken.parquet").write_text("no Parquet")
    (folder / "empty").mkdir()
    assert main(["collect", *(word.format(folder) for word in words)]) != 0
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == 1


def test_a_collection_is_not_written_to_and_may_have_no_traces(tmp_path):
    collection.write(tmp_path / "none.parquet", [(VARIOUS[0], "")])
    store = open_store(tmp_path / "none.parquet")
    assert store.trace("a" * 16) == {}
    with pytest.raises(ConfigError, match="a collection to read from"):
        store.write(VARIOUS[0], {}, {})


def test_what_a_collection_has_is_removed_and_what_it_has_not_stays(folder, monkeypatch, capsys):
    other = Store(folder / "other")
    other.write(record("a" * 16, metrics={"nll": 0.1}, created="2026-03-01T00:00:00"), {}, {})
    folders = map(str, (folder / "results", folder / "other", folder / "results"))
    words = ["collect", *folders, "--out", str(folder / "all.parquet")]
    with monkeypatch.context() as patch:  # of a disk that gives back other records
        patch.setattr(collection, "read", lambda _: ([(replace(one, seed=7), "") for one in VARIOUS], []))
        assert main([*words, "--remove"]) == 0 and len(Store(folder / "results").ids()) == len(VARIOUS)
    assert main([*words, "--remove", "--json"]) == 0
    assert not Store(folder / "results").ids() and other.ids() == ["a" * 16]
    assert open_store(folder / "all.parquet").all() == VARIOUS
    words = ["collect", str(folder / "other"), "--out", str(folder / "all.parquet")]
    assert main(words) == 2 and "all.parquet has 3 other runs" in capsys.readouterr().err
    assert open_store(folder / "all.parquet").all() == VARIOUS and other.ids()


def test_an_interrupted_collection_leaves_the_old_one(folder, monkeypatch):
    out = folder / "all.parquet"
    collection.write(out, [(VARIOUS[0], "")])
    monkeypatch.setattr("pyarrow.parquet.write_table", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
    assert main(["collect", str(folder / "results"), "--out", str(out)]) == 5
    assert len(open_store(out).all()) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["all.parquet", "results"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does")
def test_reading_starts_no_thread_that_could_outlive_the_process(tmp_path):
    collection.write(path := tmp_path / "all.parquet", [(record("a" * 16), "")], {"a" * 16: b""})
    code = f"""
import os
from pathlib import Path
import pyarrow.parquet
from gpbench.records.collection import Collection, read
before = len(os.listdir("/proc/self/task"))
rows, _ = read(Path({str(path)!r}))
traces = Collection({str(path)!r})._traces
print(len(rows), len(traces), len(os.listdir("/proc/self/task")) - before)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 1 0\n"


def one_of(id, **more):
    base = {"setting": "m=15%", "output": None, "metrics": {"nll": 0.5, "error": 0.25}, "seconds": {"train": 1.5}}
    base |= {"dirty": False, "steps": 250, "objective": -3.5, "held_out": True, "created": "2026-01-01T00:00:00"}
    return sample(id, **base | more)


IMPORTED = {"imported": True, "source": "x.csv", "dirty": None, "steps": None, "objective": None}
RECORDS = [
    one_of("a" * 16, split_set="hla", train_rows=9, test_rows=1, converged=False),
    one_of("b" * 16, status="diverged", metrics={"nll": None, "error": None}, created="2026-01-02T00:00:00"),
    one_of("c" * 16, metrics={"rmse": 1, "test_ll": -2.5}, output="torque", split=3, created="2026-01-03T00:00:00"),
    one_of("d" * 16, **IMPORTED, metrics={"rmse": 2.0}, seconds={}, created="2026-01-04T00:00:00"),
]


@pytest.fixture
def results(tmp_path):
    for one in RECORDS:
        Store(tmp_path / "results").write(one, {}, {})
    return tmp_path / "results"


def test_a_row_is_a_run_with_its_metrics_and_seconds_and_in_the_long_form_a_run_and_a_metric(results):
    table = gpbench.frame(results)
    assert list(table["id"]) == [one_of.id for one_of in RECORDS]
    assert table["metrics.nll"][0] == 0.5 and table["metrics.nll"].isna().tolist() == [False, True, True, True]
    assert list(table["metrics.rmse"])[2:] == [1.0, 2.0] and list(table["seconds.train"])[:3] == [1.5] * 3
    assert table["output"].isna().tolist() == [True, True, False, True] and table["output"][2] == "torque"
    assert table["status"].tolist() == ["done", "diverged", "done", "done"]
    of_first = table.iloc[0][["split_set", "train_rows", "test_rows", "converged"]]
    assert of_first.tolist() == ["hla", 9, 1, False]
    assert table["imported"].tolist() == [False, False, False, True] and table["source"][3] == "x.csv"
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
        ([], "the list of results folders is empty"),
        ("none.parquet", "no such file"),
    ],
)
def test_a_frame_of_nothing_is_one_line(results, monkeypatch, folders, line):
    monkeypatch.chdir(results.parent)
    with pytest.raises(ConfigError, match=line):
        gpbench.frame(folders)


def test_errors_over_test_rows_have_columns_and_a_collection_has_the_frame_of_its_folder(tmp_path, results):
    assert not [name for name in gpbench.frame(results) if name.startswith("row_stderr")]
    Store(results).write(one_of("e" * 16, row_stderr={"nll": 0.25}, created="2026-01-05T00:00:00"), {}, {})
    assert gpbench.frame(results)["row_stderr.nll"].tolist()[-1] == 0.25
    long = gpbench.frame(results, long=True)
    assert long["row_stderr"].isna().tolist() == [True] * (len(long) - 2) + [False, True]
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
NO_CONDITIONS = {"datset=x": "did you mean dataset", "metrics.nl<1": r"did you mean metrics\.nll"}
NO_CONDITIONS |= {"split<a": "'a' is no number", "split": "write FIELD=VALUE"}


def test_conditions_keep_the_records_that_meet_all_of_them_and_a_wrong_one_is_a_line():
    for conditions, ids in IDS.items():
        met = filters.matching(FEW, conditions.split("; ") if conditions else [])
        assert "".join(one_of.id for one_of in met) == ids, conditions
    for condition, line in NO_CONDITIONS.items():
        with pytest.raises(ConfigError, match=line):
            filters.matching(FEW, [condition])
