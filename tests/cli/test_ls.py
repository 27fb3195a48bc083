"""`gpbench ls` from the command line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from samples import sample

from gpbench.cli import main
from gpbench.records.store import Store


def listing(capsys, *argv):
    assert main(["ls", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def results(tmp_path):
    for k, status in enumerate(("done", "diverged", "done")):
        record = sample(
            id=f"{k:016x}",
            status=status,
            method="sep" if k else "svi",
            setting="m=15%",
            split=k,
            metrics={"nll": None if k == 1 else 0.5},
            seconds={"train": 2.0},
        )
        Store(tmp_path).write(record, {}, {"step": np.arange(2)})
    return tmp_path


@pytest.mark.parametrize("words", [["--dataset", "heart"], ["--where", "split=1"]])
def test_a_filter_of_runs_is_refused_for_anything_else(words, capsys):
    assert main(["ls", "methods", *words]) == 2
    given = " ".join(words)
    error = f"gpbench: {given} selects runs: write `gpbench ls runs {given}`, or leave it out\n"
    assert capsys.readouterr().err == error


@pytest.mark.parametrize(
    "filters, splits",
    [
        ([], [0, 1, 2]),
        (["--status", "diverged"], [1]),
        (["--method", "sep,svi", "--status", "done"], [0, 2]),
        (["--dataset", "crabs"], []),
        (["--protocol", "clean", "--method", "sep"], [1, 2]),
    ],
)
def test_runs_are_filtered(results, capsys, filters, splits):
    assert [r["split"] for r in listing(capsys, "runs", "--results", results, *filters)] == splits


def test_the_split_set_is_shown_where_runs_of_a_data_set_are_on_several(tmp_path, capsys):
    for k, (name, setting) in enumerate((("kfold", ""), ("random90", ""), ("raetsch", "set=raetsch"))):
        record = sample(id=f"{k:016x}", split=4, split_set=name, setting=setting)
        Store(tmp_path).write(record, {}, {"step": np.arange(2)})
    assert main(["ls", "runs", "--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" of " in line for line in lines] == [False, True, True, False] and "4 of kfold" in lines[1]


def test_a_name_that_is_none_is_refused(results, capsys):
    assert main(["ls", "runs", "--results", str(results), "--protocol", "cleen"]) == 2
    assert capsys.readouterr().err == "gpbench: no run has protocol 'cleen'; did you mean clean?\n"
    assert main(["ls", "runs", "--results", str(results), "--status", "done,lost"]) == 2
    assert capsys.readouterr().err == "gpbench: no run has status 'lost'; known are diverged, done, failed\n"


def test_runs_are_aligned_text_without_a_terminal(results, capsys):
    main(["ls", "runs", "--results", str(results)])
    header, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 3 and all(row.find("pima") == header.find("dataset") for row in rows)


def test_a_default_results_folder_that_is_missing_has_no_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "none"))
    assert listing(capsys, "runs") == []


def test_data_sets_have_task_size_and_title(capsys):
    wdbc = next(item for item in listing(capsys, "datasets") if item["name"] == "wdbc")
    assert (wdbc["task"], wdbc["rows"], wdbc["inputs"]) == ("binary", 569, 30) and wdbc["title"]


@pytest.mark.parametrize("group", ["method", "protocol", "experiment"])
def test_a_users_own_files_are_listed_with_their_first_comment(tmp_path, capsys, group):
    (tmp_path / group / "mine").mkdir(parents=True)
    (tmp_path / group / "mine" / "table1.yaml").write_text("# @package _global_\n# My own.\nkey: 1\n")
    items = listing(capsys, f"{group}s", "--config-dir", tmp_path)
    assert {"name": "mine/table1", "description": "My own."} in items


@pytest.mark.parametrize("argv", [["ls", "datasets"], ["ls", "runs"], ["show", "--last"], ["table"]])
def test_reading_verbs_start_without_the_slow_packages(results, argv):
    """`scripts/bench start` measures what that is worth: half a second is the aim."""
    slow = "{'jax', 'equinox', 'scipy', 'sklearn', 'hydra', 'matplotlib'}"
    code = f"import sys; from gpbench.cli import main; main(sys.argv[1:]); assert not {slow} & set(sys.modules)"
    env = {**os.environ, "GPBENCH_RESULTS": str(results)}
    subprocess.run([sys.executable, "-c", code, *argv], check=True, capture_output=True, env=env)
