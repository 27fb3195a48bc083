"""`gpbench table` from the command line."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from samples import sample

import gpbench
from gpbench.cli import main
from gpbench.errors import AbsentError, ConfigError
from gpbench.records.store import Store


@pytest.fixture
def results(tmp_path):
    for k, (dataset, method, split) in enumerate(
        (d, m, s) for d in ("pima", "crabs") for m in ("sep", "svi") for s in range(3)
    ):
        record = sample(
            id=f"{k:016x}",
            dataset=dataset,
            method=method,
            setting="m=15%",
            split=split,
            metrics={"nll": 0.5 + split / 10, "error": 0.2},
            seconds={"compile": 1.0, "train": 2.0, "evaluate": 0.1},
            device="cpu",
            precision="float64",
        )
        Store(tmp_path).write(record, {"split": split}, {"step": np.arange(2)})
    return tmp_path


def out(capsys, *argv):
    assert main(list(map(str, argv))) == 0
    return capsys.readouterr().out


def test_csv_and_json_agree(results, capsys):
    rows = list(csv.DictReader(io.StringIO(out(capsys, "table", "--results", results, "--format", "csv"))))
    answer = json.loads(out(capsys, "table", "--results", results, "--json"))
    assert len(rows) == len(answer) == 4
    assert [(r["dataset"], r["method"], float(r["mean"])) for r in rows] == [
        (t["dataset"], t["method"], pytest.approx(t["mean"])) for t in answer
    ]
    assert answer[0]["made_with"]["device"] == {"cpu": 3} and len(answer[0]["runs"]) == 3


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


@pytest.mark.parametrize(
    "filters, n",
    [
        (["--dataset", "pima"], 2),
        (["--dataset", "pima,crabs", "--method", "svi"], 2),
        (["--setting", "m=15%"], 4),
        (["--metric", "nll,seconds"], 8),
        (["--metric", "all", "--dataset", "pima"], 6),
        (["--preset", "none"], 4),
        (["--metric", "nll", "--metric", "seconds"], 8),
        (["--dataset", "pima", "--dataset", "crabs", "--method", "svi"], 2),
    ],
)
def test_filters_select_records(results, capsys, filters, n):
    assert len(json.loads(out(capsys, "table", "--results", results, "--json", *filters))) == n


@pytest.mark.parametrize(
    "filters, line",
    [
        (["--dataset", "pimaa"], "no run has dataset 'pimaa'; did you mean pima?"),
        (["--metric", "nlll"], "no run has the metric 'nlll'; did you mean nll"),
        (["--setting", "m=99"], "no run has setting 'm=99'; known are 'm=15%'"),
        (["--setting", "m=16%"], "no run has setting 'm=16%'; did you mean 'm=15%'"),
    ],
)
def test_unrecorded_values_are_one_line(results, capsys, filters, line):
    assert main(["table", "--results", str(results), *filters]) == 2
    captured = capsys.readouterr()
    assert line in captured.err and captured.err.count("\n") == 1 and captured.out == ""


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


def test_an_ending_in_capitals_counts_and_one_that_is_unknown_lists_those_that_the_table_can_have(results, capsys):
    words = ["--results", results, "--out"]
    assert out(capsys, "table", "--format", "csv", *words, results / "a.ZIP").startswith("dataset,output,")
    assert json.loads(out(capsys, "rank", "--json", *words, results / "a.PNG"))
    assert json.loads(out(capsys, "rank", "--json", *words, results / "a.MD"))
    starts = {"a.ZIP": b"PK", "a.PNG": b"\x89PNG", "a.MD": b"|"}
    assert all(start in (results / name).read_bytes() for name, start in starts.items())
    for verb, endings in {"table": ".txt, .zip;", "rank": ".txt, .png, .pdf, .svg, .zip;"}.items():
        assert main([verb, *map(str, words), "a.foo"]) == 2
        assert endings in capsys.readouterr().err


def test_an_empty_results_folder_is_one_line(tmp_path, capsys):
    assert main(["table", "--results", str(tmp_path)]) == 2
    assert "train with `gpbench run`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["table"],
        ["table", "sep/table1"],
        ["plot", "sep/fig2"],
        ["rank"],
        ["compare", "a", "b"],
        ["power", "a", "b"],
        ["report"],
        ["ls", "runs"],
        ["show", "--last"],
        ["cite", "sep"],
    ],
)
def test_a_missing_results_folder_is_named(words, tmp_path, capsys):
    assert main([*words, "--results", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"gpbench: {tmp_path / 'none'}: no such folder\n"
    assert not (tmp_path / "none").exists()


def test_later_papers_are_listed_on_demand(results, capsys):
    assert "later papers" not in out(capsys, "table", "--results", results)
    assert "bayesian_benchmarks" in out(capsys, "table", "--results", results, "--later")


def test_a_terminal_gets_tables_that_fit_it(results, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    text = out(capsys, "table", "--results", results)
    assert "0.52 (" in text and max(map(len, text.splitlines())) <= 60
    assert text.count("nll (nats per row; lower is better)") == 1


def test_an_option_that_is_no_list_is_refused_where_it_is_given_twice(results, capsys):
    assert main(["table", "--results", str(results), "--format", "md", "--format", "csv"]) == 2
    assert capsys.readouterr().err == "gpbench: --format is given twice: leave one out\n"


def test_all_runs_are_missing_where_none_is_recorded(results, capsys):
    text = out(capsys, "table", "sep/table1", "--preset", "full", "--missing", "--results", results)
    assert text.startswith("Missing runs of sep/table1, preset full: 1,260 of 1,260.")


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
    for split, n in (
        (0, 1),
        ([0], 1),
        ([0, 1], 2),
        (np.int64(0), 1),
        (np.array([0, 2]), 2),
        (range(1, 3), 2),
        ("0, 1", 2),
    ):
        assert {row["n_splits"] for row in gpbench.table(split=split, results=results).data} == {n}
    for split in ([], range(3, 1), np.array([])):
        with pytest.raises(AbsentError, match="split names no value: leave it out for all of them"):
            gpbench.table(split=split, results=results)
    for split in (np.array(1), 1.5, [0.5]):
        with pytest.raises(ConfigError, match="split="):
            gpbench.table(split=split, results=results)
