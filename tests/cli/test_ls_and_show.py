"""`gpbench ls`, `show`, `rm` and `cite`, and the references behind them."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from samples import grid, sample, write

from gpbench.cli import main
from gpbench.cli.recorded import inputs_line
from gpbench.papers import references
from gpbench.records.store import Store


@pytest.fixture
def listing(printed):
    return lambda *argv: json.loads(printed("ls", *argv, "--json"))


@pytest.fixture
def results(tmp_path):
    facts = {"setting": "m=15%", "seconds": {"train": 2.0}}
    for k, (method, status, nll) in enumerate((("svi", "done", 0.5), ("sep", "diverged", None), ("sep", "done", 0.5))):
        write(tmp_path, [sample(f"{k:016x}", status=status, method=method, split=k, metrics={"nll": nll}, **facts)])
    return tmp_path


def test_runs_are_filtered_and_aligned_text_without_a_terminal(results, listing, printed):
    for words, splits in {
        "": [0, 1, 2],
        "--status diverged": [1],
        "--method sep,svi --status done": [0, 2],
        "--dataset crabs": [],
        "--protocol clean --method sep": [1, 2],
    }.items():
        assert [r["split"] for r in listing("runs", "--results", results, *words.split())] == splits, words
    header, *rows = printed("ls", "runs", "--results", results).splitlines()
    assert len(rows) == 3 and all(row.find("pima") == header.find("dataset") for row in rows)


def test_the_split_set_is_shown_where_there_are_several_and_own_files_by_their_comment(tmp_path, printed, listing):
    for k, (name, setting) in enumerate((("kfold", ""), ("random90", ""), ("raetsch", "set=raetsch"))):
        write(tmp_path, [sample(id=f"{k:016x}", split=4, split_set=name, setting=setting)])
    lines = printed("ls", "runs", "--results", tmp_path).splitlines()
    assert [" of " in line for line in lines] == [False, True, True, False] and "4 of kfold" in lines[1]
    for group in ("method", "protocol", "experiment"):
        (tmp_path / group / "mine").mkdir(parents=True)
        (tmp_path / group / "mine" / "table1.yaml").write_text("# @package _global_\n# My own.\nkey: 1\n")
        items = listing(f"{group}s", "--config-dir", tmp_path)
        assert {"name": "mine/table1", "description": "My own."} in items


def test_a_missing_default_folder_has_no_runs_and_data_sets_have_task_size_and_title(tmp_path, listing, monkeypatch):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "none"))
    assert listing("runs") == []
    wdbc = next(item for item in listing("datasets") if item["name"] == "wdbc")
    assert (wdbc["task"], wdbc["rows"], wdbc["inputs"]) == ("binary", 569, 30) and wdbc["title"]


def test_reading_verbs_start_without_the_slow_packages(tmp_path):
    """`scripts/bench start` measures what that is worth: half a second is the aim."""
    nll = lambda dataset, method, split: {"nll": split / 10 + (method == "svi")}
    write(tmp_path, grid(("pima", "heart"), ("sep", "svi"), metrics=nll, train_rows=90, test_rows=10))
    slow = {"jax", "equinox", "hydra", "matplotlib", "requests", "rich"}
    verbs = {"cite sep": "numpy", "ls datasets": "scipy", "data ls": "sklearn", "data info kegg": "sklearn"}
    verbs |= {"ls runs": "scipy", "show --last": "scipy", "table": "sklearn"}
    verbs |= dict.fromkeys(("rank", "compare sep svi", "power sep svi", "best --task binary"), "jax")
    code = "import json, sys; from gpbench.cli import main; main(sys.argv[1:]); print(json.dumps([*sys.modules]))"
    env = {**os.environ, "GPBENCH_RESULTS": str(tmp_path)}
    for verb, more in verbs.items():
        words = [sys.executable, "-c", code, *verb.split()]
        done = subprocess.run(words, check=True, capture_output=True, env=env, text=True)
        assert not (slow | {more}) & {*json.loads(done.stdout.splitlines()[-1])}, verb


@pytest.fixture
def two_runs(tmp_path):
    columns = {name: np.ones(5) for name in ("target", "log_prob", "mean", "variance")}
    for k, predictions in enumerate((None, {"row": np.arange(5), **columns})):
        facts = {"setting": "m=15%", "metrics": {"nll": 0.5}, "seconds": {"train": 2.0}}
        record = sample(f"a{k}00000000000000", split=k, created=f"2026-01-0{k + 1}T00:00:00+00:00", **facts)
        config = {"method": {"m": "15%"}}
        Store(tmp_path).write(record, config, {"step": np.arange(2)}, predictions=predictions)
    return tmp_path


def test_a_run_is_shown_by_its_first_digits_or_as_the_last_with_all_that_lies_in_its_folder(two_runs, printed):
    for argv, split in ((["a0"], 0), (["--last"], 1)):
        answer = json.loads(printed("show", *argv, "--results", two_runs, "--json"))
        assert answer["split"] == split and answer["config"] == {"method": {"m": "15%"}}
    text = printed("show", "a0", "--results", two_runs)
    assert "nll 0.5" in text and str(two_runs / "runs" / "a000000000000000") in text and "m: 15%" in text
    for id, rows, line in (("a0", None, "predictions  none"), ("a1", 5, "predictions  of 5 test rows")):
        assert json.loads(printed("show", id, "--results", two_runs, "--json"))["predictions"] == rows
        assert line in printed("show", id, "--results", two_runs)


def test_rm_deletes_the_runs_named_and_nothing_where_one_is_unknown(two_runs, printed, refused):
    words = ["--results", str(two_runs)]
    (two_runs / "runs" / "a000000000000000" / "record.json").write_text("{")  # damaged ones too
    assert refused("rm", "a1", "zz", *words).count("\n") == 1
    assert printed("rm", "a0", "--dry-run", *words) == "would delete a000000000000000  a damaged record\n"
    assert len(list((two_runs / "runs").iterdir())) == 2
    assert printed("rm", "a0", "a1", "a1", *words).splitlines()[1:] == ["deleted a100000000000000  pima  sep  m=15%  1"]
    assert list((two_runs / "runs").iterdir()) == []


def test_rm_refuses_a_collection_and_a_symbolic_link(two_runs, refused):
    collection = str(two_runs / "all.parquet")
    assert main(["collect", str(two_runs), "--out", collection]) == 0
    assert "is a collection to read from" in refused("rm", "a0", "--results", collection)
    folder = two_runs / "runs" / "a000000000000000"
    folder.symlink_to(folder.rename(two_runs / "elsewhere"))
    assert "is a symbolic link, not a folder" in refused("rm", "a0", "--results", two_runs, code=5)
    assert folder.is_symlink() and (two_runs / "elsewhere" / "record.json").exists()


def test_a_folder_without_runs_stands_for_the_collection_in_it(two_runs, tmp_path, printed, refused):
    assert main(["collect", str(two_runs), "--out", str(tmp_path / "collected" / "records.parquet")]) == 0
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


BIB = Path(references.__file__).with_suffix(".bib").read_text()
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "book": {"title", "publisher", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "phdthesis": {"author", "title", "school", "year"},
    "misc": {"author", "title", "howpublished", "year"},
    "software": {"author", "title"},
}


def parsed(text):
    """{key: (kind, {field: value})}, by counting braces as BibTeX does; anything between entries is an error."""
    entries, rest = {}, text.strip()
    while rest:
        head = re.match(r"@(\w+)\{([\w-]+),\s*", rest)
        assert head, rest[:60]
        fields, rest = {}, rest[head.end() :]
        while not rest.startswith("}"):
            name = re.match(r"(\w+) = (?=\{)", rest)
            assert name, rest[:60]
            rest = rest[name.end() :]
            depths = itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in rest)
            end = next(position for position, depth in enumerate(depths) if depth == 0)
            fields[name[1]], rest = rest[1:end], rest[end + 1 :].lstrip(",").lstrip()
        assert head[2] not in entries, f"{head[2]} is there twice"
        entries[head[2]], rest = (head[1], fields), rest[1:].strip()
    return entries


def test_every_entry_is_bibtex_and_everything_that_ships_can_be_cited():
    for key, (kind, fields) in parsed(BIB).items():
        assert fields.keys() >= NEEDED[kind], key
        assert kind != "book" or fields.keys() & {"author", "editor"}, key
        assert all(value.isascii() and value.strip() for value in fields.values()), key
        assert key in ("gpbench", "statlog") or key.rstrip("b").endswith(fields["year"]), key
    for name in references.names():
        works = references.references([name])
        assert works, name
        lacking = [work.text for work in works if not work.bibtex and re.search(r"\(\d{4}\)", work.text)]
        assert not lacking, (name, lacking)  # places and packages, such as UCI 1, have no year


def test_works_are_cited_once_and_named_without_an_entry_and_with_what_cites_them(printed):
    lines = printed("cite", "abalone", "adult")
    assert all(f"% no entry in references.bib for {text} (" in lines for text in ("UCI 1", "UCI 2"))
    assert "@inproceedings{kohavi1996," in lines
    entries = parsed(printed("cite", "sep", "boston", "concrete", "hl2016"))
    assert list(entries) == ["hernandez-lobato2016", "hernandez-lobato2015", "harrison1978", "yeh1998"]
    works = json.loads(printed("cite", "--json", "boston", "concrete"))
    assert {r["key"]: r["cited_by"] for r in works}["hernandez-lobato2015"] == ["boston", "concrete"]


def test_a_run_cites_its_method_data_protocol_and_gpbench_and_a_user_brings_references_of_their_own(tmp_path, printed):
    Store(tmp_path).write(sample("0123456789abcdef", dataset="yacht", method="svi"), {}, {})
    keys = {"hensman2013", "hensman2015", "hernandez-lobato2015", "gerritsma1981", "gpbench"}
    assert parsed(printed("cite", "0123", "--results", tmp_path)).keys() == keys
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("# Mine\n# cite: Müller (1999); Nobody (2001)\n_target_: a.B\n")
    (tmp_path / "references.bib").write_text("@misc{muller1999,\n  title = {T}\n}\n")
    out = printed("cite", "mine", "--config-dir", tmp_path)
    assert out == "@misc{muller1999,\n  title = {T}\n}\n\n% no entry in references.bib for Nobody (2001) (nobody2001)\n"
