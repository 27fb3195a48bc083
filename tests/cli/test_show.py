"""`gpbench show` from the command line."""

import json

import numpy as np
import pytest
from samples import sample

from gpbench.cli import main
from gpbench.cli.recorded import inputs_line
from gpbench.records.store import Store


@pytest.fixture
def results(tmp_path):
    columns = {name: np.ones(5) for name in ("target", "log_prob", "mean", "variance")}
    for k, predictions in enumerate((None, {"row": np.arange(5), **columns})):
        facts = {"setting": "m=15%", "metrics": {"nll": 0.5}, "seconds": {"train": 2.0}}
        record = sample(f"a{k}00000000000000", split=k, created=f"2026-01-0{k + 1}T00:00:00+00:00", **facts)
        config = {"method": {"m": "15%"}}
        Store(tmp_path).write(record, config, {"step": np.arange(2)}, predictions=predictions)
    return tmp_path


def test_a_run_is_shown_by_its_first_digits_or_as_the_last_with_all_that_lies_in_its_folder(results, printed):
    for argv, split in ((["a0"], 0), (["--last"], 1)):
        answer = json.loads(printed("show", *argv, "--results", results, "--json"))
        assert answer["split"] == split and answer["config"] == {"method": {"m": "15%"}}
    text = printed("show", "a0", "--results", results)
    assert "nll 0.5" in text and str(results / "runs" / "a000000000000000") in text and "m: 15%" in text
    for id, rows, line in (("a0", None, "predictions  none"), ("a1", 5, "predictions  of 5 test rows")):
        assert json.loads(printed("show", id, "--results", results, "--json"))["predictions"] == rows
        assert line in printed("show", id, "--results", results)


def test_rm_deletes_the_runs_named_and_nothing_where_one_is_unknown(results, capsys, printed):
    words = ["--results", str(results)]
    (results / "runs" / "a000000000000000" / "record.json").write_text("{")  # damaged ones too
    assert main(["rm", "a1", "zz", *words]) == 2 and capsys.readouterr().err.count("\n") == 1
    assert printed("rm", "a0", "--dry-run", *words) == "would delete a000000000000000  a damaged record\n"
    assert len(list((results / "runs").iterdir())) == 2
    assert printed("rm", "a0", "a1", "a1", *words).splitlines()[1:] == ["deleted a100000000000000  pima  sep  m=15%  1"]
    assert list((results / "runs").iterdir()) == []


def test_rm_refuses_a_collection_and_a_symbolic_link(results, refused):
    collection = str(results / "all.parquet")
    assert main(["collect", str(results), "--out", collection]) == 0
    assert "is a collection to read from" in refused("rm", "a0", "--results", collection)
    folder = results / "runs" / "a000000000000000"
    folder.symlink_to(folder.rename(results / "elsewhere"))
    assert "is a symbolic link, not a folder" in refused("rm", "a0", "--results", results, code=5)
    assert folder.is_symlink() and (results / "elsewhere" / "record.json").exists()


def test_a_folder_without_runs_stands_for_the_collection_in_it(results, tmp_path, printed, refused):
    (tmp_path / "collected").mkdir()
    assert main(["collect", str(results), "--out", str(tmp_path / "collected" / "records.parquet")]) == 0
    assert json.loads(printed("show", "a1", "--results", tmp_path / "collected", "--json"))["split"] == 1
    assert main(["show", "a1", "--results", str(tmp_path / "collected" / "records.parquet" / "x")]) == 2
    (tmp_path / "file").touch()
    assert "is a file, and no results folder" in refused("show", "a1", "--results", tmp_path / "file")


def test_inputs_and_target_are_named_by_the_record_or_else_by_the_card():
    own = sample(inputs="speed, depth", target="drag")
    assert inputs_line(own, {}) == "inputs speed, depth; target drag"
    card = {"columns": [f"x{k}" for k in range(784)], "target": "digit"}
    assert inputs_line(sample(), {"dataset": card}) == "inputs x0, x1, x2, x3, x4, x5, x6, ... x783 (784); target digit"
    assert inputs_line(sample(), {"dataset": {}}) == inputs_line(sample(), {}) == ""
