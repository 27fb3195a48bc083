"""What is damaged in storage, or written by somebody else, is named in one line and never taken for a result."""

import io
import json
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damaged import CONFIG, PREDICTIONS, STATE, TRACE, A, B, raw, record, write
from samples import flips

from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import collection, folder
from gpbench.records.arrays import kept_faults, unpack_predictions
from gpbench.records.collection import open_store
from gpbench.records.store import Store


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


def test_a_damaged_trace_of_a_collection_and_one_of_the_format_before_are_one_line(tmp_path, capsys):
    path = tmp_path / "all.parquet"
    collection.write(path, [(record(), ""), (record(B), "")], {A: b"no archive", B: b""})
    for _ in range(2):
        store = open_store(path)
        assert store.trace(A) == store.trace(A) == {} and store.all()
        assert capsys.readouterr().err.count("\n") == 1

    earlier = pa.table({"id": [A], "metrics.nll": [0.5], "_fields": ['["id"]'], "_config": [""]})
    pq.write_table(earlier, tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match="by an earlier gpbench, in another format; `gpbench collect DIR --out"):
        open_store(tmp_path / "a.parquet").all()


def test_a_bad_row_of_a_collection_is_named_and_left_out(tmp_path, capsys):
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
    collection.write(path := tmp_path / "all.parquet", [(record(), "")])
    table = pq.read_table(path).drop_columns([name])
    pq.write_table(table.append_column(name, pa.array(column)) if column else table, path)
    with pytest.raises(ConfigError, match=f"is no collection: it has no column {name} of texts"):
        open_store(path).all()


X = {"X": (5, 2), "y": (5,), "X_shift": (2,), "X_scale": (2,), "y_mean": (), "y_std": ()}
FIT = X | {"grid": (9, 2), "mean": (9,), "var": (9,), "hidden": (9, 3), "inducing": (4, 2), "lengthscales": (2,)}
PARTS = {"inputs": (2, 1), "grid": (7, 1), "mean": (2, 7), "std": (2, 7), "joint": (2,), "place": (2,)}
EFFECTS = X | {"shares": (8, 3)} | {f"effect1_{name}": shape for name, shape in PARTS.items()}


def arrays(shapes, **changes):
    return {f"kept_{name}": np.ones(shape) for name, shape in shapes.items()} | {
        f"kept_{name}": np.asarray(values) for name, values in changes.items()
    }


@pytest.mark.parametrize("shapes", [FIT, EFFECTS, {"inducing": (4, 9), "lengthscales": (9,)}, {}])
def test_what_runs_leave_passes(shapes):
    assert not [*kept_faults(arrays(shapes, own=np.zeros((2, 3, 4))))]  # a user's method keeps what it likes


@pytest.mark.parametrize(
    ("shapes", "changes", "message"),
    [
        (FIT, {"grid": np.ones((9, 2, 1))}, "grid has 3 axes, not 2"),
        (FIT, {"mean": np.ones(8)}, "mean has another size"),
        (FIT, {"grid": np.ones((0, 2))}, "grid has another size"),
        (FIT, {"var": np.full(9, np.nan)}, "var is not finite"),
        ({name: FIT[name] for name in FIT if name != "X_scale"}, {}, "X is there without X_scale"),
        (X | {"grid": (9, 2)}, {}, "grid is there without predictions"),
        (X | {"grid": (8, 2), "mean": (8,), "var": (8,)}, {}, "not square"),
        (EFFECTS, {"effect1_inputs": [[0], [2]]}, "effect1_inputs has numbers out of range"),
        (EFFECTS, {"effect1_place": [0, -1]}, "effect1_place has numbers out of range"),
    ],
)
def test_what_no_run_leaves_is_refused(shapes, changes, message):
    assert message in next(kept_faults(arrays(shapes, **changes)))


def test_inducing_points_that_are_not_drawn_and_probabilities_of_zero_pass():
    log_probs = np.log([[1.0, 1e-300]] * 9)
    log_probs[0] = [0.0, -np.inf]
    inducing = np.full((4, 2), np.nan)
    assert not [*kept_faults(arrays(X | {"grid": (9, 2)}, log_probs=log_probs, inducing=inducing))]


ROWS = {"row": np.arange(3), "target": np.zeros(3), "log_prob": np.full(3, -1.0)}
MOMENTS = ROWS | {"mean": np.zeros(3), "variance": np.ones(3)}
CLASSES = ROWS | {"log_prob_0": np.log([0.2, 0.5, 1.0]), "log_prob_1": np.array([np.log(0.8), np.log(0.5), -np.inf])}


def packed(columns) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({name: np.asarray(values) for name, values in columns.items()}), file)
    return file.getvalue()


@pytest.mark.parametrize("columns", [MOMENTS, CLASSES], ids=["regression", "classes"])
def test_predictions_of_a_run_are_read(columns):
    read = unpack_predictions(packed(columns))
    assert all(np.array_equal(read[name], columns[name]) for name in columns)


def without(absent):
    return {name: values for name, values in MOMENTS.items() if name != absent}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (MOMENTS | {"mean": ["a", "b", "c"]}, "mean is not of numbers"),
        (MOMENTS | {"mean": [np.nan, 0.0, 0.0]}, "mean is not finite"),
        (MOMENTS | {"target": [-1e308, 0.0, 0.0]}, "target has numbers beyond"),
        (MOMENTS | {"variance": [-1.0, 1.0, 1.0]}, "variance is out of range"),
        (CLASSES | {"log_prob_1": [np.nan, 0.0, 0.0]}, "log_prob_1 is out of range"),
        (CLASSES | {"log_prob_0": [2.0, 0.0, 0.0]}, "log_prob_0 is out of range"),
        (CLASSES | {"log_prob_3": np.zeros(3)}, "no column log_prob_2"),
        *((without(absent), f"no column {absent}") for absent in ("target", "variance", "log_prob")),
        ({name: values[:0] for name, values in MOMENTS.items()}, "is not of numbers"),
    ],
)
def test_numbers_that_no_run_writes_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        unpack_predictions(packed(columns))
