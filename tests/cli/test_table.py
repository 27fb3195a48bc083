"""`gpbench table`, `rank`, `compare` and `power`: tables, pictures, JSON, one line for what is wrong."""

import csv
import io
import json

import numpy as np
import pytest
from samples import grid, sample, write

import gpbench
from gpbench.errors import AbsentError, ConfigError


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
    }.items():
        assert len(json.loads(printed("table", "--results", results, "--json", *words.split()))) == n, words
    assert "later papers" not in printed("table", "--results", results)
    assert "bayesian_benchmarks" in printed("table", "--results", results, "--later")
    text = printed("table", "sep/table1", "--preset", "full", "--missing", "--results", results)
    assert text.startswith("Missing runs of sep/table1, preset full: 1,260 of 1,260.")


def test_splits_select_runs_by_number_and_range(results, refused, printed):
    def n_splits(*words):
        rows = json.loads(printed("table", "--results", results, "--json", *words))
        return {row["n_splits"] for row in rows}

    assert n_splits() == {3} and n_splits("--split", "0") == {1}
    assert n_splits("--split", "0,2") == n_splits("--split", "1-9") == {2} and n_splits("--split", "0-1,2") == {3}
    for words in ("7", "5-9", "2-1", "-1", "", "0:2", "1e3", "9" * 30):
        line = f"no run has split '{words}'; recorded are 0 to 2: write numbers and ranges, as in 0-9,12"
        assert line in refused("table", "--results", results, f"--split={words}")
    numbers = ((np.int64(0), 1), (np.array([0, 2]), 2), (range(1, 3), 2))
    for split, n in ((0, 1), ([0], 1), ([0, 1], 2), ("0, 1", 2), *numbers):
        assert {row["n_splits"] for row in gpbench.table(split=split, results=results).data} == {n}
    for split in ([], range(3, 1), np.array([])):
        with pytest.raises(AbsentError, match="split names no value: leave it out for all of them"):
            gpbench.table(split=split, results=results)
    for split in (np.array(1), 1.5, [0.5]):
        with pytest.raises(ConfigError, match="split="):
            gpbench.table(split=split, results=results)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    nll = lambda dataset, method, split: {"nll": 0.5 + split / 10 + (method == "svi") * (1 + split / 99)}
    facts = {"setting": "m=15%", "precision": "float64", "commit": "a" * 40, "train_rows": 900, "test_rows": 100}
    sets, methods = ("pima", "crabs", "heart"), ("sep", "svi", "gfitc")
    return write(tmp_path_factory.mktemp("results"), grid(sets, methods, metrics=nll, seconds={"train": 2.0}, **facts))


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
        write(tmp_path, [sample(f"{id:016x}", dataset=dataset, method=method, split=split, metrics=values, **facts)])
    (line,) = json.loads(printed(verb, "a", "b", "--results", tmp_path, "--json"))
    assert (line["dataset"], line["metric"]) == ("boston", "rmse")
