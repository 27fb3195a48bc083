"""A results folder holds whole records only, whoever wrote them and whatever happened meanwhile."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from damaged import A, ended_pid, raw, record

from gpbench.errors import ConfigError, StorageError
from gpbench.records import collection, processes
from gpbench.records.identity import SCHEMA
from gpbench.records.store import Store

OTHER = "0" * 14 + "bb"


def write(store, id=A, **fields):
    replace = fields.pop("replace", False)
    return store.write(record(id, **fields), {"method": {"m": "15%"}}, {"step": np.arange(3)}, replace=replace)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_what_was_written_is_read_back_and_kept_unless_it_is_to_be_replaced(store):
    write(store)
    assert store.get(A) == record()
    assert store.config(A) == {"method": {"m": "15%"}}
    np.testing.assert_array_equal(store.trace(A)["step"], [0, 1, 2])
    write(store)
    write(store, metrics={"nll": 9.0})
    assert store.get(A).metrics["nll"] == 0.5
    write(store, metrics={"nll": 9.0}, replace=True)
    assert store.get(A).metrics["nll"] == 9.0
    assert [path.name for path in store.runs.iterdir()] == [A]


def test_a_record_of_a_newer_schema_is_skipped_with_one_line_and_an_older_one_is_read(store, tmp_path, capsys):
    store.write(replace(record(), schema=SCHEMA + 1), {}, {})
    write(store, id=OTHER, schema=1)
    rows = [(replace(record(id), schema=SCHEMA + k), "") for k, id in enumerate("ab")]
    collection.write(tmp_path / "both.parquet", rows)
    for records, kept in ((store, OTHER), (collection.Collection(tmp_path / "both.parquet"), "a")):
        assert [one.id for one in records.all()] == [kept]
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and f"schema {SCHEMA + 1}" in line and "upgrade" in line


def test_numbers_that_are_not_finite_or_whose_squares_are_not_are_null(store):
    write(store, status="diverged", metrics={"nll": np.float64("nan"), "error": float("inf"), "rmse": np.float32(1)})
    text = (store.runs / A / "record.json").read_text()
    assert json.loads(text)["metrics"] == {"nll": None, "error": None, "rmse": 1.0}
    others = json.dumps(raw(metrics={"nll": float("nan"), "rmse": 1e999}, objective=float("-inf")))
    (store.runs / A / "record.json").write_text(others.replace("Infinity", "1e999", 1))
    assert store.get(A).metrics == {"nll": None, "rmse": None} and store.get(A).objective is None
    store.write(record(OTHER, metrics={"nll": np.float64(1e200)}, objective=-1e200), {"method": {"m": 1e200}}, {})
    assert store.get(OTHER).metrics == {"nll": None} and store.get(OTHER).objective is None
    assert store.config(OTHER) == {"method": {"m": 1e200}}


def test_a_run_that_another_process_puts_in_place_between_two_looks_is_no_damaged_one(store, monkeypatch, capsys):
    read = store._read

    def look(id, *, whole):
        found = read(id, whole=whole)
        if not store.contains(id):
            write(store)
        return found

    monkeypatch.setattr(store, "_read", look)
    assert store.get(A) == record() and not capsys.readouterr().err


@pytest.mark.parametrize("read", [lambda s: s.get(A), lambda s: s.all()[0], lambda s: s.last()])
def test_a_record_that_a_killed_replacement_moved_aside_comes_back(store, read):
    write(store)
    aside = store.runs / f".tmp-aaaaaaaaaaaaaaaa-{ended_pid()}-01234567-old"  # between the two renames of `write`
    (store.runs / A).rename(aside)
    assert read(store) == record() and not aside.exists()


@pytest.mark.parametrize("part, comes_back", [(0, True), (1, True), (2, False)])
def test_a_process_that_moved_a_record_aside_is_known_by_its_start_and_machine(store, part, comes_back, monkeypatch):
    """Its id may be another process's by now; and on another machine it may be alive, until it is silent for long."""
    write(store)
    facts = processes.name().split(".")
    aside = store.runs / f".tmp-aaaaaaaaaaaaaaaa-{'.'.join(facts)}-01234567-old"
    (store.runs / A).rename(aside)
    assert store.get(A) is None  # it is in the middle of `write`
    facts[part] = [str(ended_pid()), "1", "0123abcd"][part]
    other = aside.rename(store.runs / f".tmp-aaaaaaaaaaaaaaaa-{'.'.join(facts)}-01234567-old")
    assert (store.get(A) is not None) == comes_back != other.exists()
    monkeypatch.setattr("gpbench.records.processes._SILENT_SECONDS", -1.0)
    assert store.all() == [record()]


def test_many_writers_of_one_run_leave_one_whole_record(store):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, [store] * 8))
    assert store.all() == [record()]
    assert [path.name for path in store.runs.iterdir()] == [A]


DAMAGED = ["", "{", "[]", "{}", "\x00\xff"]
DAMAGED += map(json.dumps, (raw("cc"), raw(OTHER, preset=["quick"]), raw(OTHER, status="running")))


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_named_once_skipped_and_written_anew(store, capsys, text):
    write(store)
    (store.runs / OTHER).mkdir()
    (store.runs / OTHER / "record.json").write_text(text)
    assert store.all() == store.all() == [record()]
    warning = capsys.readouterr().err
    assert warning.count(OTHER) >= 1 and warning.count("\n") == 1
    assert store.get(OTHER) is None
    with pytest.raises(ConfigError, match="cannot be read"):
        store.find(OTHER)
    write(store, OTHER)
    assert len(store.all()) == 2


def test_last_is_the_record_made_last_and_find_wants_a_prefix_of_one_run(store):
    with pytest.raises(ConfigError, match="no runs"):
        store.last()
    write(store, "ab00000000000000", created="2026-01-01T00:00:00+00:00")
    write(store, "aa00000000000000", created="2026-01-02T00:00:00+00:00")
    assert store.last().id == "aa00000000000000"
    assert store.find("ab").id == "ab00000000000000"
    with pytest.raises(ConfigError, match="2 runs start with 'a'"):
        store.find("a")
    with pytest.raises(ConfigError, match="no run 'zz'"):
        store.find("zz")


def test_a_folder_without_a_record_and_a_temporary_folder_do_not_count(store, capsys):
    (store.runs / OTHER).mkdir(parents=True)
    (store.runs / ".tmp-00000000000000cc-1-abcd").mkdir()
    assert store.all() == []
    assert OTHER in (warning := capsys.readouterr().err) and "cc" not in warning


def test_what_dead_processes_left_is_deleted_and_what_live_ones_write_is_not(store):
    dead = ended_pid()
    left, fresh, live = (store.runs / f".tmp-aa-{pid}-{k}" for k, pid in enumerate([dead, dead, os.getpid()]))
    for folder in (left, fresh, live):
        folder.mkdir(parents=True)
    for folder in (left, live):
        os.utime(folder, (0, 0))
    write(store)
    assert not left.exists() and fresh.exists() and live.exists()


def test_a_folder_that_may_not_be_written_gives_one_line(store, tmp_path, monkeypatch):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StorageError, match=r"results is a file, .*; move the file, or name"):
        write(store)

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.mkdir", forbidden)
    with pytest.raises(StorageError, match="Permission denied"):
        write(Store(tmp_path / "other"))


def test_a_record_that_cannot_take_the_place_of_another_leaves_that_one(store, monkeypatch):
    write(store, created="2026-01-01")
    rename = Path.rename

    def refuse(path, target):
        if path.name.startswith(".tmp-") and Path(target).name == A and not path.name.endswith("-old"):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError):
        store.write(record(created="2026-02-02"), {}, {}, replace=True)
    monkeypatch.undo()
    assert store.get(A).created.startswith("2026-01-01")
