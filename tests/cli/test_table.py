"""`gpbench table` from the command line."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from samples import grid, sample, write

import gpbench
from gpbench.cli import main
from gpbench.errors import AbsentError, ConfigError
from gpbench.records.store import Store


@pytest.fixture
def results(tmp_path):
    metrics = lambda dataset, method, split: {"nll": 0.5 + split / 10, "error": 0.2}
    facts = {"setting": "m=15%", "device": "cpu", "precision": "float64"}
    seconds = {"compile": 1.0, "train": 2.0, "evaluate": 0.1}
    return write(tmp_path, grid(("pima", "crabs"), ("sep", "svi"), metrics=metrics, seconds=seconds, **facts))


def out(capsys, *argv):
    assert main(list(map(str, argv))) == 0
    return capsys.readouterr().out


def test_csv_and_json_agree_filters_select_and_later_papers_and_missing_runs_are_listed_on_demand(results, capsys):
    rows = list(csv.DictReader(io.StringIO(out(capsys, "table", "--results", results, "--format", "csv"))))
    answer = json.loads(out(capsys, "table", "--results", results, "--json"))
    assert len(rows) == len(answer) == 4
    assert [(r["dataset"], r["method"], float(r["mean"])) for r in rows] == [
        (t["dataset"], t["method"], pytest.approx(t["mean"])) for t in answer
    ]
    assert answer[0]["made_with"]["device"] == {"cpu": 3} and len(answer[0]["runs"]) == 3
    for words, n in {
        "--dataset pima": 2,
        "--dataset pima,crabs --method svi": 2,
        "--setting m=15%": 4,
        "--metric nll,seconds": 8,
        "--metric all --dataset pima": 6,
        "--preset none": 4,
        "--metric nll --metric seconds": 8,
        "--dataset pima --dataset crabs --method svi": 2,
    }.items():
        assert len(json.loads(out(capsys, "table", "--results", results, "--json", *words.split()))) == n, words
    assert "later papers" not in out(capsys, "table", "--results", results)
    assert "bayesian_benchmarks" in out(capsys, "table", "--results", results, "--later")
    text = out(capsys, "table", "sep/table1", "--preset", "full", "--missing", "--results", results)
    assert text.startswith("Missing runs of sep/table1, preset full: 1,260 of 1,260.")


def test_runs_within_a_budget_stand_in_a_table_only_where_a_setting_names_them(results, capsys):
    where = ["--results", results, "--json"]
    before = out(capsys, "table", *where), out(capsys, "rank", *where)
    within = "m=15%, budget=20.0"
    for record in Store(results).all():
        other = replace(record, id=record.id.replace("0", "f"), setting=within, budget=20.0, cpu_seconds=15.0)
        other = replace(other, metrics={"nll": record.metrics["nll"] + 0.1 * (1 + record.split % 2)})
        Store(results).write(other, {"split": record.split}, {"step": np.arange(2)})
    assert (out(capsys, "table", *where), out(capsys, "rank", *where)) == before
    for words in (["table", *where], ["report", "--results", results, "--out", results / "site"]):
        assert main(list(map(str, words))) == 0
        shown = f"`gpbench table --setting '{within}'` shows all of this setting"
        captured = capsys.readouterr()
        assert captured.err == f"gpbench: left out: the runs within a budget of sep, svi; {shown}\n"
    assert "of 12 runs" in captured.out
    rows = json.loads(out(capsys, "table", *where, "--setting", within))
    assert len(rows) == 4 and {row["setting"] for row in rows} == {within}


def test_a_method_with_runs_within_a_budget_alone_is_named_beside_what_shows_it(results, capsys):
    where, within = ["--results", results, "--json"], "m=15%, budget=20.0"
    Store(results).write(sample(id="e" * 16, method="gfitc", setting=within, metrics={"nll": 0.5}, budget=20.0), {}, {})
    for words in (["table"], ["rank"], ["best", "--task", "binary"]):
        main([*words, *map(str, where)])
        line = capsys.readouterr().err
        assert line.startswith("gpbench: left out, for all their runs have a budget: gfitc; `gpbench table")
        assert line.count("\n") == 1 and f"--setting '{within}'" in line
    assert "gfitc" in out(capsys, "table", "--method", "gfitc", *where)
    assert "gfitc" in out(capsys, "table", "--setting", within, *where)


def test_splits_select_runs_by_number_and_range(results, capsys):
    def n_splits(*words):
        rows = json.loads(out(capsys, "table", "--results", results, "--json", *words))
        return {row["n_splits"] for row in rows}

    assert n_splits() == {3} and n_splits("--split", "0") == {1}
    assert n_splits("--split", "0,2") == n_splits("--split", "1-9") == {2} and n_splits("--split", "0-1,2") == {3}
    for words in ("7", "5-9", "2-1", "-1", "", "0:2", "1e3", "9" * 30):
        assert main(["table", "--results", str(results), f"--split={words}"]) == 2
        line = f"no run has split '{words}'; recorded are 0 to 2: write numbers and ranges, as in 0-9,12"
        assert line in capsys.readouterr().err
    numbers = ((np.int64(0), 1), (np.array([0, 2]), 2), (range(1, 3), 2))
    for split, n in ((0, 1), ([0], 1), ([0, 1], 2), ("0, 1", 2), *numbers):
        assert {row["n_splits"] for row in gpbench.table(split=split, results=results).data} == {n}
    for split in ([], range(3, 1), np.array([])):
        with pytest.raises(AbsentError, match="split names no value: leave it out for all of them"):
            gpbench.table(split=split, results=results)
    for split in (np.array(1), 1.5, [0.5]):
        with pytest.raises(ConfigError, match="split="):
            gpbench.table(split=split, results=results)
