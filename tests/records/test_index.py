"""The index of a large folder says what the records say, whatever happened to either, and small folders have none."""

import json
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from damaged import raw, record
from samples import FullDisk, flips

from gpbench.records import folder, index
from gpbench.records.record import Record
from gpbench.records.store import Store

IDS = [f"{k:016x}" for k in range(8)]
ODD = [
    {"metrics": {"nll": None, "error": -0.0}, "objective": 1e-300, "steps": 2**62, "created": None},
    {"metrics": {"nll": 1, "error": 0.5}, "later": {"x": [1.5]}, "shipped": False, "settings": {}, "output": 3},
    {"metrics": {"nll": None}, "host": {"cpu": "a b\n", "memory_gib": 23.5}, "created": "2026-01-01 00:00"},
]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "FEWEST", 4)
    monkeypatch.setattr(index, "_RACY_NS", -(10**12))
    store = Store(tmp_path / "results")
    for k, id in enumerate(IDS):
        store.write(record(id, created=f"2026-01-0{9 - k}T00:00:00", metrics={"nll": k / 7}), {}, {})
    return store


def by_files(store) -> list[dict]:
    read = (folder.read(str(store.runs), id)[0] for id in store.ids())
    return [one.to_json() for one in sorted(filter(None, read), key=lambda one: one.age)]


def agrees(store) -> bool:
    """Whether the records, their order, that of their fields, and the last one are those of the files."""
    expected = by_files(store)
    read = [one.to_json() for one in Store(store.runs.parent).all()]
    assert Store(store.runs.parent).last().to_json() == expected[-1]
    return list(map(json.dumps, read)) == list(map(json.dumps, expected))


def rewrite(store, id=IDS[0], **fields):
    (store.runs / id / "record.json").write_bytes(folder.seal(raw(id, **fields), {}))


def in_place(store):
    path = store.runs / IDS[0] / "record.json"
    before, content = path.stat(), path.read_bytes()
    value, _ = folder.unseal(content)
    path.write_bytes(folder.seal(value | {"metrics": {"nll": 9.0}}, {}))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(store):
    for old, new in ((IDS[1], "x"), (IDS[2], IDS[1]), ("x", IDS[2])):
        (store.runs / old).rename(store.runs / new)


def copied(store):
    shutil.copytree(store.runs, store.runs.with_name("other"))
    shutil.rmtree(store.runs)
    store.runs.with_name("other").rename(store.runs)
    rewrite(store, IDS[3], metrics={"nll": 8.0})


CHANGES = {
    "rewritten in place, with its old time": in_place,
    "replaced": lambda store: store.write(record(IDS[0], metrics={"nll": 9.0}), {}, {}, replace=True),
    "deleted": lambda store: store.delete(IDS[0]),
    "two swapped": swapped,
    "another one": lambda store: store.write(record("f" * 16), {}, {}),
    "damaged": lambda store: (store.runs / IDS[0] / "record.json").write_text("{"),
    "no record": lambda store: (store.runs / IDS[0] / "record.json").unlink(),
    "all copied": copied,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_change_of_a_folder_is_missed(store, change):
    assert agrees(store) and agrees(store)
    change(store)
    assert agrees(store) and agrees(store)


def test_without_the_stamp_a_change_would_be_missed(store, monkeypatch):
    monkeypatch.setattr(index, "stamp", lambda facts: b"0.0.0.0")
    assert agrees(store)
    in_place(store)
    assert not agrees(store)


def test_records_in_the_index_are_not_opened_and_a_small_folder_has_none(store, monkeypatch):
    small = Store(store.runs.parent / "small")
    small.write(record(IDS[0]), {}, {})
    assert small.all() and not (small.runs.parent / index.NAME).exists()
    expected = store.all()
    monkeypatch.setattr(folder, "read", None)
    assert store.all() == expected


def test_odd_records_are_kept_whole(store):
    for k, fields in enumerate(ODD):
        rewrite(store, IDS[k], **fields)
    assert agrees(store) and agrees(store)
    for one in store.all():
        assert json.dumps(pickle.loads(pickle.dumps(one)).to_json()) == json.dumps(one.to_json())


def test_a_record_that_may_change_within_the_same_tick_is_not_in_the_index(store, monkeypatch):
    monkeypatch.setattr(index, "_RACY_NS", 2 * 10**9)
    store.all()
    assert not any(id.encode() in (store.runs.parent / index.NAME).read_bytes() for id in IDS)


def forged(lines: list[bytes]) -> bytes:
    content = b"".join(line + b"\n" for line in lines)
    return content + index._digest(content)


def test_an_index_that_is_none_is_made_again(store):
    store.all()
    path = store.runs.parent / index.NAME
    whole = path.read_bytes()
    template, *lines = whole.splitlines()[:-1]
    deep = b'{"id":' + b"[" * 9000 + b"]" * 9000 + b"}"
    others = [b"{}", deep, template[:-1], template.replace(b'"done"', b'"odd"'), template.replace(b"0.0", b"{}")]
    contents = [forged([other, *(line.replace(key(template), key(other)) for line in lines)]) for other in others]
    contents += [forged([template, *(line[:-n] + b"A" * more for line in lines)]) for n, more in ((4, 0), (9, 1))]
    contents += [forged(lines), forged([b"", b" ", b"a b c d e"]), b"", b"PAR1", whole[:-1], whole[: len(whole) // 2]]
    contents += [b"x" * 2**20, *flips(whole, 30)]
    for content in contents:
        path.write_bytes(content)
        assert agrees(store)
    path.unlink()
    os.mkfifo(path)
    assert agrees(store)


def test_an_index_of_records_with_other_fields_is_made_again(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(index, "slots", lambda: {"id": None})
        patch.setattr(index, "_split", lambda record: (b'{"id":""}', b""))  # as if records had no others
        store.all()
    path = store.runs.parent / index.NAME
    before = path.read_bytes()
    assert agrees(store) and path.read_bytes() != before


def key(template: bytes) -> bytes:
    return index._digest(template)[: index._KEY]


def test_a_full_disk_and_a_folder_that_cannot_be_written_lose_nothing(store, monkeypatch):
    monkeypatch.setattr("gpbench.outputs.open", FullDisk, raising=False)
    assert agrees(store) and [path.name for path in store.runs.parent.iterdir()] == ["runs"]
    monkeypatch.setattr("gpbench.outputs.open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "")))
    assert agrees(store)


def test_readers_and_writers_at_the_same_time(store):
    seen: list[Record] = []

    def write(seed):
        for k in range(12):
            store.write(record(f"{seed}{k:015x}", metrics={"nll": float(k)}), {}, {})
            seen.extend(Store(store.runs.parent).all())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4, 8)))
    made = [one for one in seen if one.id not in IDS]
    assert len(made) > 12 and all(one.metrics["nll"] == int(one.id[1:], 16) for one in made)
    assert agrees(store) and len(store.all()) == len(IDS) + 48
