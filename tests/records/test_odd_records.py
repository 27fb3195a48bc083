"""Records, configurations and arrays that no run leaves stop no verb, and take no memory."""

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import bombs
import numpy as np
import pyarrow as pa
import pytest
from damaged import CONFIG, TRACE, A, B, raw, record, write

import gpbench
from gpbench import limits
from gpbench.analysis import cells, tables
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import folder, parquet
from gpbench.records.collection import open_store
from gpbench.records.store import Store


def deep(levels):
    return json.loads("[" * levels + "]" * levels)


ODD = {"cell": {"metrics": {"nll": 1e308}}, "true": {"metrics": {"nll": True}}}
ODD |= {"diagnostics": {"diagnostics": {"slope": "steep"}}, "objective": {"objective": -1e308}}
ODD |= {"split": {"split": 10**30}, "negative": {"split": -1}, "negative error": {"row_stderr": {"nll": -0.1}}}
ODD |= {"truth": {"split": True}, "number": {"seed": int("9" * 400)}, "counts": {"train_rows": "many"}}
ODD |= {"unknown": {"more": {"count": 10**30}}, "surrogate": {"setting": "m=\ud800"}, "message": {"message": ["why"]}}
ODD |= {"host": {"host": "here"}, "twice": {}, "deep": {"more": deep(100)}, "deeper": {"more": deep(900)}}
ODD |= {"names": {"metrics": {f"metric{k}": 0.5 for k in range(1001)}}, "list": {"more": {"list": [0] * 1001}}}
ODD |= {"keys": {"more": {str(k): 0 for k in range(60_000)}}, "size": {"message": "x" * 2**20}}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Good records of two methods on two data sets, and odd ones."""
    store = Store(tmp_path_factory.mktemp("odd") / "results")
    runs = [(dataset, method, split) for dataset in ("pima", "heart") for method in ("sep", "svi") for split in (0, 1)]
    for k, (dataset, method, split) in enumerate(runs):
        fields = {"dataset": dataset, "method": method, "split": split, "metrics": {"nll": 0.5 + 0.01 * k}}
        store.write(record(f"{k:016x}", **fields), CONFIG, TRACE)
    for name, fields in ODD.items():
        (store.runs / name).mkdir()
        (store.runs / name / "record.json").write_text(json.dumps(raw(name, **fields)))
    text = (store.runs / "twice" / "record.json").read_text()
    (store.runs / "twice" / "record.json").write_text(text.replace("{", '{"seed": 1, "seed": 2, ', 1))
    (store.runs / "deepest").mkdir()
    (store.runs / "deepest" / "record.json").write_text("[" * 100_000)
    return store.runs.parent


@pytest.mark.parametrize(
    "words",
    ["ls runs --json", "table --metric all --results", "rank --results", "compare sep svi --results", "collect"],
)
def test_odd_records_stop_no_verb_and_are_named_once(words, odd, tmp_path, streams):
    out = ["--out", str(tmp_path / "all.parquet")] if words == "collect" else []
    lines = streams(*words.replace("--json", "--json --results").split(), odd, *out).err.splitlines()
    for name in (*ODD, "deepest"):
        assert sum(line.startswith(f"gpbench: skipped the record {odd / 'runs' / name}: ") for line in lines) == 1


def test_odd_records_are_in_no_frame_and_cannot_be_shown(odd, refused):
    assert len(gpbench.frame(odd)) == 8
    assert all(refused("show", name, "--results", odd) for name in ODD)


LETTERS = "abcdefghijklm"
BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}]\n" for a, b in pairwise(LETTERS))


TEXTS = [BOMB, BOMB.replace("[*", "{<<: [*").replace("]\n", "]}\n"), "[" * 100_000, "a: " + "9" * 5000, "- 1", "a: ["]
TEXTS += ["dataset: [1]", "config_dirs: [1]", "a: .nan", "a: !!binary x", "a: !!int ''", "a: \0", "&a [*a]"]


@pytest.mark.parametrize("text", TEXTS)
def test_an_odd_configuration_is_one_line_and_empty(text, store, capsys):
    with pytest.raises(ValueError, match="configuration"):
        folder.parse_config(text)
    (store.runs / A / "record.json").write_text(json.dumps(raw()))
    (store.runs / A / "config.yaml").write_text(text)
    for words in (["show", A], ["show", A, "--json"], ["cite", A]):
        assert main([*words, "--results", str(store.runs.parent)]) == 0
        assert "x, x, x" not in (printed := capsys.readouterr()).out
        assert printed.err.count("\n") == (words[0] == "show")  # `cite` does not read it


@pytest.mark.parametrize("name, limit", [("trace.npz", "TRACE"), ("state.npz", "STATE")])
def test_arrays_that_unpack_to_too_much_are_one_line_and_never_in_memory(name, limit, store, monkeypatch, capsys):
    monkeypatch.setattr(limits, limit, 10_000)
    (store.runs / A / "record.json").write_text(json.dumps(raw()))
    (store.runs / A / name).write_bytes(bombs.arrays(step=(10_000_000,)))
    monkeypatch.setattr(np, "load", None)  # it would read them
    read = store.trace if name == "trace.npz" else store.state
    assert read(A) == {} == read(A)
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and re.search(r"of [0-9,]+ bytes unpacks to 10,000,\d+ bytes, and 10,000 are", line)
    assert store.get(A) == record()


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"nll": np.zeros(2)}, "its traces are not of one length"),
        ({"nll": np.array(0.0)}, "its traces are not of one length"),
        ({"nll": np.array(["a", "b", "c"])}, "its arrays are not of real numbers"),
        ({"nll": np.array([-1e308, 0.0, 1e308])}, r"its arrays have numbers beyond 1e\+300"),
    ],
)
def test_a_trace_that_no_run_leaves_is_one_line(changed, fault, store, capsys):
    """A stranger seals it as he likes, and pictures are drawn of it."""
    store.write(record(B), {}, {"step": np.arange(3), "nll": np.zeros(3), **changed})
    assert store.trace(B) == {}
    assert re.search(f"{fault}; .* trains it again\n$", capsys.readouterr().err)


def test_a_folder_or_another_file_for_a_collection_is_one_line(store, tmp_path, refused):
    (out := tmp_path / "records.parquet").mkdir()
    line = "it is a folder, and a file is needed there"
    error = refused("collect", store.runs.parent, "--out", out, code=5)
    assert f"cannot write {out}: {line}; name another file" in error
    assert f"cannot read {out} ({line})" in refused("table", "--results", out)
    for content in (b"PAR1 half of a file", b""):  # whether it was a collection, nobody can tell
        (other := tmp_path / "other.parquet").write_bytes(content)
        assert f"{other} is there, and has no runs" in refused("collect", store.runs.parent, "--out", other)
        assert other.read_bytes() == content


@pytest.mark.parametrize("name", ["record.json", *folder.FILES])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_a_pipe_or_a_device_in_a_record_is_one_line(name, make, store, capsys):
    path = store.runs / A / name
    path.unlink()
    make(path)
    assert store.get(A) is None and store.all(whole=True) == []
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ("it is a folder, and a file is needed there" in said) == path.is_dir()


def hostile(path, record_texts, **columns):
    """A collection of these texts, with a digest of its footer, in which equal values take no space."""
    texts = pa.array(record_texts).dictionary_encode()
    table = pa.table({"id": pa.array([A] * len(texts)), "record": texts, **columns})
    path.write_bytes(parquet.content(table, [*columns]))


@pytest.mark.parametrize("text", ["[" * 100_000, "1,2", "}{", "", '{"id": 1e999}', "NaN", "9" * 5000, "\\ud800", None])
def test_what_is_sealed_is_checked_like_everything_else(text, tmp_path, capsys):
    good = json.dumps(raw())
    hostile(path := tmp_path / "a.parquet", [text, good], config=pa.array(["", "[" * 10_000]))
    store = open_store(path)
    assert [one.id for one in store.all()] == [A] and store.config(A) == {}
    assert capsys.readouterr().err.count("\n") == 2


def test_a_collection_of_too_many_records_or_bytes_is_one_line(tmp_path, monkeypatch):
    hostile(path := tmp_path / "a.parquet", [json.dumps(raw())] * 5000, config=pa.array([""] * 5000))
    assert path.stat().st_size < 5000
    for name, most in (("ROWS", 4999), ("COLLECTION", 1000)):
        with monkeypatch.context() as patch:
            patch.setattr(limits, name, most)
            with pytest.raises(ConfigError, match=rf"cannot read .* \(it .* and {most:,} are the most\)"):
                open_store(path).all()


def test_a_table_of_many_metrics_takes_time_in_proportion(tmp_path, printed):
    store = Store(tmp_path / "results")
    write(store, metrics={f"metric{k}": 0.5 for k in range(300)})
    csv = printed("table", "--metric", "all", "--format", "csv", "--results", tmp_path / "results")
    assert csv.count("metric") > 300
    entries = cells.entries(cells.group_runs(store.all()), ["all"])
    assert len(entries) == 301 and len(tables.sheet(entries).grids) == 301
