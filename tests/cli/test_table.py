"""`gpbench table`, `rank`, `compare` and `power`: tables, pictures, JSON, one line for what is wrong."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import samples
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


def test_csv_and_json_agree_filters_select_and_later_papers_and_missing_runs_are_listed_on_demand(results, printed):
    rows = list(csv.DictReader(io.StringIO(printed("table", "--results", results, "--format", "csv"))))
    answer = json.loads(printed("table", "--results", results, "--json"))
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
        assert len(json.loads(printed("table", "--results", results, "--json", *words.split()))) == n, words
    assert "later papers" not in printed("table", "--results", results)
    assert "bayesian_benchmarks" in printed("table", "--results", results, "--later")
    text = printed("table", "sep/table1", "--preset", "full", "--missing", "--results", results)
    assert text.startswith("Missing runs of sep/table1, preset full: 1,260 of 1,260.")


def test_runs_within_a_budget_stand_in_a_table_only_where_a_setting_names_them(results, capsys, printed):
    where = ["--results", results, "--json"]
    before = printed("table", *where), printed("rank", *where)
    within = "m=15%, budget=20.0"
    for record in Store(results).all():
        other = replace(record, id=record.id.replace("0", "f"), setting=within, budget=20.0, cpu_seconds=15.0)
        other = replace(other, metrics={"nll": record.metrics["nll"] + 0.1 * (1 + record.split % 2)})
        Store(results).write(other, {"split": record.split}, {"step": np.arange(2)})
    assert (printed("table", *where), printed("rank", *where)) == before
    for words in (["table", *where], ["report", "--results", results, "--out", results / "site"]):
        assert main(list(map(str, words))) == 0
        shown = f"`gpbench table --setting '{within}'` shows all of this setting"
        captured = capsys.readouterr()
        assert captured.err == f"gpbench: left out: the runs within a budget of sep, svi; {shown}\n"
    assert "of 12 runs" in captured.out
    rows = json.loads(printed("table", *where, "--setting", within))
    assert len(rows) == 4 and {row["setting"] for row in rows} == {within}


def test_a_method_with_runs_within_a_budget_alone_is_named_beside_what_shows_it(results, capsys, printed):
    where, within = ["--results", results, "--json"], "m=15%, budget=20.0"
    Store(results).write(sample(id="e" * 16, method="gfitc", setting=within, metrics={"nll": 0.5}, budget=20.0), {}, {})
    for words in (["table"], ["rank"]):
        main([*words, *map(str, where)])
        line = capsys.readouterr().err
        assert line.startswith("gpbench: left out, for all their runs have a budget: gfitc; `gpbench table")
        assert line.count("\n") == 1 and f"--setting '{within}'" in line
    assert "seconds: `gpbench leaderboard --division cl" in printed("best", "--task", "binary", "--results", results)
    assert "gfitc" in printed("table", "--method", "gfitc", *where)
    assert "gfitc" in printed("table", "--setting", within, *where)


def test_splits_select_runs_by_number_and_range(results, capsys, printed):
    def n_splits(*words):
        rows = json.loads(printed("table", "--results", results, "--json", *words))
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


def write_ranked(folder, commit="a" * 40, shift=0.0):
    nll = lambda dataset, method, split: {"nll": 0.5 + split / 10 + shift + (method == "svi") * (1 + split / 99)}
    facts = {"setting": "m=15%", "precision": "float64", "commit": commit, "train_rows": 900, "test_rows": 100}
    sets, methods = ("pima", "crabs", "heart"), ("sep", "svi", "gfitc")
    return samples.write(folder, samples.grid(sets, methods, metrics=nll, seconds={"train": 2.0}, **facts))


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    return write_ranked(tmp_path_factory.mktemp("results"))


def test_ranks_and_comparisons_are_tables_json_pictures_and_files_of_other_endings(ranked, tmp_path, printed):
    picture = tmp_path / "new" / "ranks.png"
    assert "average rank over 3 data sets" in printed("rank", "--results", ranked, "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    answer = json.loads(printed("rank", "--results", ranked, "--json", "--method", "sep,svi"))
    assert answer["methods"] == ["sep", "svi"] and answer["average"] == [1.0, 2.0]
    assert printed("rank", "--results", ranked, "--format", "csv").startswith("method,average_rank")
    for ending, magic in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        picture = tmp_path / f"difference.{ending}"
        assert "svi in 0" in printed("compare", "sep", "svi", "--results", ranked, "--out", picture)
        assert picture.read_bytes().startswith(magic)
    answer = json.loads(printed("compare", "sep", "svi", "--results", ranked, "--json"))
    assert [d["dataset"] for d in answer] == ["crabs", "heart", "pima"]
    assert all((d["better"], d["n_splits"]) == ("A", 3) for d in answer)
    file = tmp_path / "difference.md"
    assert printed("compare", "sep", "svi", "--results", ranked, "--format", "md", "--out", file) == ""
    assert "| pima |" in file.read_text()
    assert "splits needed" in printed("power", "sep", "svi", "--results", ranked, "--dataset", "pima,heart")
    answer = json.loads(printed("power", "sep", "svi", "--results", ranked, "--json"))
    assert [(line["dataset"], line["n_splits"]) for line in answer] == [(d, 3) for d in ("crabs", "heart", "pima")]
    assert all(line["splits_needed"] == 2 and line["test_train_ratio"] == pytest.approx(1 / 9) for line in answer)


OF_EACH = [("a", "wdbc", "nll"), ("a", "boston", "rmse"), ("b", "heart", "nll"), ("b", "boston", "rmse")]


@pytest.mark.parametrize("verb", ["compare", "power"])
def test_the_default_metric_is_one_that_both_sides_have(verb, tmp_path, printed):
    facts = {"train_rows": 900, "test_rows": 100}
    runs = [(m, d, metric, k) for m, d, metric in OF_EACH for k in range(3)]
    for id, (method, dataset, metric, split) in enumerate(runs):
        values = {metric: 1.0 + split**2 * (method == "a")}
        record = sample(f"{id:016x}", dataset=dataset, method=method, split=split, metrics=values, **facts)
        Store(tmp_path).write(record, {}, {})
    (line,) = json.loads(printed(verb, "a", "b", "--results", tmp_path, "--json"))
    assert (line["dataset"], line["metric"]) == ("boston", "rmse")


def test_a_side_with_runs_within_a_budget_alone_is_one_line_whose_words_compare_it(tmp_path, capsys, printed):
    store, within = Store(write_ranked(tmp_path)), "m=15%, budget=20.0"
    for k, (method, split) in enumerate((m, s) for m in ("quick", "brisk") for s in range(3)):
        fields = {
            "metrics": {"nll": 0.9 + split / 7 * (1 + k)},
            "precision": "float64",
            "train_rows": 9,
            "test_rows": 1,
        }
        store.write(sample(f"f{k:015x}", method=method, setting=within, split=split, budget=20.0, **fields), {}, {})
    where = ["--results", tmp_path]
    assert main(["compare", "quick", "sep", *map(str, where)]) == 2
    settings = ["--setting", within, "--setting", "m=15%"]
    line = f"all runs of method quick have a budget; name settings, as with --setting '{within}' --setting 'm=15%'"
    assert capsys.readouterr().err == f"gpbench: {line}\n"
    assert "Paired differences quick - sep" in printed("compare", "quick", "sep", *settings, *where)
    for words in (["quick", "brisk"], ["sep", "svi"]):  # nothing is left out of these
        assert main(["compare", *words, *map(str, where)]) == 0 and not capsys.readouterr().err
