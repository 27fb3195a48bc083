"""`gpbench rank`, `compare` and `power` from the command line: tables, pictures, JSON, one line for what is wrong."""

import json

import pytest
import samples
from samples import sample

from gpbench.cli import main
from gpbench.records.store import Store


def write(folder, commit="a" * 40, shift=0.0):
    nll = lambda dataset, method, split: {"nll": 0.5 + split / 10 + shift + (method == "svi") * (1 + split / 99)}
    facts = {"setting": "m=15%", "precision": "float64", "commit": commit, "train_rows": 900, "test_rows": 100}
    sets, methods = ("pima", "crabs", "heart"), ("sep", "svi", "gfitc")
    return samples.write(folder, samples.grid(sets, methods, metrics=nll, seconds={"train": 2.0}, **facts))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return write(tmp_path_factory.mktemp("results"))


def out(capsys, *argv):
    assert main(list(map(str, argv))) == 0
    return capsys.readouterr().out


def test_ranks_and_comparisons_are_tables_json_pictures_and_files_of_other_endings(results, capsys, tmp_path):
    picture = tmp_path / "new" / "ranks.png"
    assert "average rank over 3 data sets" in out(capsys, "rank", "--results", results, "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    answer = json.loads(out(capsys, "rank", "--results", results, "--json", "--method", "sep,svi"))
    assert answer["methods"] == ["sep", "svi"] and answer["average"] == [1.0, 2.0]
    assert out(capsys, "rank", "--results", results, "--format", "csv").startswith("method,average_rank")
    for ending, magic in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        picture = tmp_path / f"difference.{ending}"
        assert "svi in 0" in out(capsys, "compare", "sep", "svi", "--results", results, "--out", picture)
        assert picture.read_bytes().startswith(magic)
    answer = json.loads(out(capsys, "compare", "sep", "svi", "--results", results, "--json"))
    assert [d["dataset"] for d in answer] == ["crabs", "heart", "pima"]
    assert all((d["better"], d["n_splits"]) == ("A", 3) for d in answer)
    file = tmp_path / "difference.md"
    assert out(capsys, "compare", "sep", "svi", "--results", results, "--format", "md", "--out", file) == ""
    assert "| pima |" in file.read_text()
    assert "splits needed" in out(capsys, "power", "sep", "svi", "--results", results, "--dataset", "pima,heart")
    answer = json.loads(out(capsys, "power", "sep", "svi", "--results", results, "--json"))
    assert [(line["dataset"], line["n_splits"]) for line in answer] == [(d, 3) for d in ("crabs", "heart", "pima")]
    assert all(line["splits_needed"] == 2 and line["test_train_ratio"] == pytest.approx(1 / 9) for line in answer)


OF_EACH = [("a", "wdbc", "nll"), ("a", "boston", "rmse"), ("b", "heart", "nll"), ("b", "boston", "rmse")]


@pytest.mark.parametrize("verb", ["compare", "power"])
def test_the_default_metric_is_one_that_both_sides_have(verb, tmp_path, capsys):
    facts = {"train_rows": 900, "test_rows": 100}
    runs = [(m, d, metric, k) for m, d, metric in OF_EACH for k in range(3)]
    for id, (method, dataset, metric, split) in enumerate(runs):
        values = {metric: 1.0 + split**2 * (method == "a")}
        record = sample(f"{id:016x}", dataset=dataset, method=method, split=split, metrics=values, **facts)
        Store(tmp_path).write(record, {}, {})
    (line,) = json.loads(out(capsys, verb, "a", "b", "--results", tmp_path, "--json"))
    assert (line["dataset"], line["metric"]) == ("boston", "rmse")


def test_a_side_with_runs_within_a_budget_alone_is_one_line_whose_words_compare_it(tmp_path, capsys):
    store, within = Store(write(tmp_path)), "m=15%, budget=20.0"
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
    assert "Paired differences quick - sep" in out(capsys, "compare", "quick", "sep", *settings, *where)
    for words in (["quick", "brisk"], ["sep", "svi"]):  # nothing is left out of these
        assert main(["compare", *words, *map(str, where)]) == 0 and not capsys.readouterr().err
