"""What is damaged in storage, or written by somebody else, is named in one line and never taken for a result."""

import json
from datetime import date

import numpy as np
import pytest
from damaged import CONFIG, PREDICTIONS, STATE, TRACE, A, B, raw, record, write

from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import collection, folder
from gpbench.records.collection import open_store
from gpbench.records.store import Store


def flips(content, count):
    """The content with one bit flipped, at random places."""
    for position in np.random.default_rng(0).integers(0, 8 * len(content), count).tolist():
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        yield bytes(damaged)


@pytest.mark.parametrize("name", folder.FILES)
def test_every_flipped_bit_of_another_file_is_noticed_said_once_and_mended(store, name, capsys):
    path = store.runs / A / name
    for damaged in flips(path.read_bytes(), 100):
        path.write_bytes(damaged)
        assert store.get(A) is None and store.all() == [record()] and store.all(whole=True) == []
    capsys.readouterr()
    reader = Store(store.runs.parent)
    for _ in range(2):
        assert (reader.config(A), reader.trace(A).keys(), reader.predictions(A).keys(), reader.state(A).keys()) == (
            {} if name == "config.yaml" else CONFIG,
            set() if name == "trace.npz" else TRACE.keys(),
            set() if name == "predictions.parquet" else PREDICTIONS.keys(),
            set() if name == "state.npz" else STATE.keys(),
        )
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and f"its {name} is not what was written" in line and "`gpbench run`" in line
    write(store)
    assert store.get(A) == record() and store.trace(A).keys() == TRACE.keys()


def test_a_file_of_another_run_is_noticed_and_predictions_may_be_deleted(store):
    store.write(record(B), CONFIG, {"step": np.arange(9)})
    (store.runs / B / "predictions.parquet").write_bytes((store.runs / A / "predictions.parquet").read_bytes())
    assert store.get(B) is None and store.predictions(B) == {} and store.get(A) == record()
    (store.runs / A / "predictions.parquet").unlink()
    assert store.get(A) == record() and store.predictions(A) == {}


def test_a_record_that_was_edited_is_named_and_one_from_before_checksums_is_read(store, capsys):
    path = store.runs / A / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"metrics": {"nll": 0.1}}))
    assert store.all() == [] and "is not what was written" in capsys.readouterr().err
    (store.runs / A / "record.json").write_text(json.dumps(raw(), indent=1) + "\n")
    assert store.get(A) == record() == store.all(whole=True)[0] and store.config(A) == CONFIG


def test_a_damaged_run_is_not_collected(store, tmp_path, capsys):
    write(store, B)
    (store.runs / B / "trace.npz").write_bytes(b"PK")
    out = tmp_path / "all.parquet"
    assert main(["collect", str(store.runs.parent), "--out", str(out)]) == 0
    assert [one.id for one in open_store(out).all()] == [A] and open_store(out).trace(A).keys() == TRACE.keys()
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and B in line and "trace.npz" in line


def test_a_damaged_trace_of_a_collection_is_one_line(tmp_path, capsys):
    path = tmp_path / "all.parquet"
    collection.write(path, [(record(), ""), (record(B), "")], {A: b"no archive", B: b""})
    for _ in range(2):
        store = open_store(path)
        assert store.trace(A) == store.trace(A) == {} and store.all()
        assert capsys.readouterr().err.count("\n") == 1


def test_a_bad_row_of_a_collection_is_named_and_left_out(tmp_path, capsys):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "all.parquet"
    collection.write(path, [(record(f"{k}" * 16, split=k, extra=[k]), "") for k in range(10)])
    table = pq.read_table(path)
    texts = table.column("record").to_pylist()
    for row, old, new in (
        (1, '"nll":0.5', '"nll":"low"'),
        (2, "2" * 16, "0" * 16),
        (3, '"done"', '"running"'),
        (4, "{", "[7"),
        (5, '"split":5,', ""),
        (6, '"error":0.2', '"error":1e308'),
        (7, '"extra":[7]', f'"extra":{"[" * 100}{"]" * 100}'),
        (8, '"extra":[8]', '"to_json":[8]'),
    ):
        assert old in texts[row]
        texts[row] = texts[row].replace(old, new, 1)
    pq.write_table(table.set_column(table.column_names.index("record"), "record", pa.array(texts)), path)
    store = open_store(path)
    assert [one.id[0] for one in store.all()] == ["0", "9"] and store.all()[0].value("extra") == [0]
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "skipped 8 records" in line and "row 1: nll is not a number" in line
    assert [fault.partition(":")[0] for fault in collection.read(path)[1]] == [f"row {k}" for k in range(1, 9)]


@pytest.mark.parametrize("column", [None, [b"x"], [{"a": 1}], [date(2026, 1, 1)]])
@pytest.mark.parametrize("name", ["record", "config"])
def test_a_collection_without_its_texts_is_one_line(column, name, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    collection.write(path := tmp_path / "all.parquet", [(record(), "")])
    table = pq.read_table(path).drop_columns([name])
    pq.write_table(table.append_column(name, pa.array(column)) if column else table, path)
    with pytest.raises(ConfigError, match=f"is no collection: it has no column {name} of texts"):
        open_store(path).all()


def test_a_collection_of_the_format_before_is_one_line_that_says_how_to_make_it_again(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"id": [A], "metrics.nll": [0.5], "_fields": ['["id"]'], "_config": [""]}), tmp_path / "a.parquet"
    )
    with pytest.raises(ConfigError, match="by an earlier gpbench, in another format; `gpbench collect DIR --out"):
        open_store(tmp_path / "a.parquet").all()
