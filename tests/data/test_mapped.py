"""Tables that stay on disk."""

import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import FullDisk

from gpbench.data import prepare, splits
from gpbench.data.sources import load
from gpbench.errors import DataError, StorageError

SPLITS = {"set": "random", "sets": {"random": 1}, "test_rows": 20}


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(3.0, 2.0, (300, 4))
    return np.column_stack([X, X @ [1.0, -2.0, 0.5, 0.0] + 7.0]).astype(np.float32)


def card(path, task="regression", **source):
    sources = [{"kind": "file", "path": str(path), "reader": "mapped", **source}]
    return {"name": "big", "task": task, "sources": sources, "splits": SPLITS}


@pytest.mark.parametrize("form", ["npy", "npz", "parquet", "first"])
def test_rows_read_from_disk_are_those_of_the_table_in_memory(form, table, tmp_path, monkeypatch):
    monkeypatch.setattr("gpbench.data.mapped._BLOCK", 64)
    path, source = tmp_path / f"big.{form}", {}
    if form == "npz":
        np.savez(path, X=table[:, :-1], y=table[:, -1])
    elif form == "parquet":
        columns = {name: table[:, i] for name, i in zip(["goal", "a", "b", "c", "d"], [4, 0, 1, 2, 3])}
        pq.write_table(pa.table(columns), path)
        source = {"target": "goal"}
    else:
        path = path.with_suffix(".npy")
        np.save(path, np.roll(table, 1, axis=1) if form == "first" else table)
        source = {"target": 0 if form == "first" else -1}
    this = card(path, **source)
    dataset = load(this, store=tmp_path / "store")
    assert isinstance(dataset.X, np.memmap)
    train, test = splits.indices(this, dataset, 0)
    resident, split = (prepare(dataset, train, test, most=most) for most in (None, 50))
    assert pytest.approx(resident.X[:50], abs=1e-12) == split.X and len(split.X) == 50
    assert split.X_test == pytest.approx(resident.X_test, abs=1e-12)
    assert split.y_variance == pytest.approx(1.0) == resident.y_variance
    index = np.array([[270, 3], [0, 111]])
    X, y = split.on_disk(index)
    assert pytest.approx(resident.X[index], abs=1e-12) == X and y == pytest.approx(resident.y[index], abs=1e-12)
    original = (table - table[train].mean(axis=0, dtype=float)) / table[train].std(axis=0, dtype=float)
    assert X[0, 0] == pytest.approx(original[train[270], :-1], abs=1e-6)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((17, 2), np.nan, "column 'x3' has missing or infinite cells"),
        ((slice(None), -1), 7.0, "the targets of the 250 training rows are all equal"),
    ],
)
def test_columns_that_cannot_be_scaled_are_named(place, value, message, table, tmp_path):
    table[place] = value
    np.save(tmp_path / "big.npy", table)
    dataset = load(card(tmp_path / "big.npy"), store=tmp_path)
    with pytest.raises(DataError, match=message):
        prepare(dataset, np.arange(250), np.arange(250, 300), most=50)


@pytest.mark.parametrize(
    ("save", "arrays", "task", "message"),
    [
        (np.savez, {"X": np.zeros((9, 2)), "y": np.arange(9.0)}, "binary", "must be -1 and 1"),
        (np.savez, {"X": np.zeros((9, 2), int), "y": np.arange(9.0)}, "regression", "must be float32 or float64"),
        (np.savez, {"X": np.zeros((9, 2)), "z": np.arange(9.0)}, "regression", "y.npy"),
        (np.savez_compressed, {"X": np.eye(9), "y": np.arange(9.0)}, "regression", "X is compressed; write the file"),
        (np.savez, {"X": np.zeros((9, 2)), "y": np.arange(8.0)}, "regression", "has 9 rows in X and 8 in y: save both"),
    ],
)
def test_what_cannot_be_mapped_is_refused_in_a_line(save, arrays, task, message, tmp_path):
    save(tmp_path / "big.npz", **arrays)
    with pytest.raises(DataError, match=message):
        load(card(tmp_path / "big.npz", task), store=tmp_path)


def test_a_copy_that_finds_no_room_is_a_line_and_is_not_there(table, tmp_path, monkeypatch):
    pq.write_table(pa.table({name: table[:, i] for i, name in enumerate("abcde")}), tmp_path / "big.parquet")
    monkeypatch.setattr("gpbench.outputs.open", FullDisk, raising=False)
    with pytest.raises(StorageError, match="No space left on device; free some space, or set GPBENCH_STORE to another"):
        load(card(tmp_path / "big.parquet"), store=tmp_path)
    assert not [*(tmp_path / "mapped").iterdir()]


CUT = """
import os, sys
import numpy as np
from gpbench.data.sources import load
path, other = sys.argv[1:]
splits = {"set": "random", "sets": {"random": 1}, "test_rows": 20}
sources = [{"kind": "file", "path": path, "reader": "mapped"}]
dataset = load({"name": "big", "task": "regression", "sources": sources, "splits": splits})
X = np.load(other, mmap_mode="r")
os.truncate(other, 128)
print(dataset.X[::500].sum(), X[::500].sum())
"""


def test_a_table_that_is_cut_short_while_it_is_read_ends_the_process_in_a_line(tmp_path):
    for path in (mapped := tmp_path / "mapped.npy", other := tmp_path / "other.npy"):
        np.save(path, np.random.default_rng(0).normal(size=(10_000, 3)))
    command = [sys.executable, "-c", CUT, str(mapped)]
    done = subprocess.run([*command, str(mapped)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"gpbench: {mapped} was changed while it was in use") and done.stderr.count("\n") == 1
    np.save(mapped, np.load(other))
    done = subprocess.run([*command, str(other)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGBUS, "", "")  # which is not of our file
