"""The rows of a split: in new records, and from the stored configuration for those of older versions."""

from dataclasses import replace

import pytest
import yaml

from gpbench.records import collected
from gpbench.records.record import Record
from gpbench.records.rows import with_rows
from gpbench.records.store import Store

CARD = {"name": "toy", "task": "binary", "rows": 205, "sources": [{"kind": "file", "path": "toy.csv", "target": -1}]}
RECORD = Record.from_json(
    {
        "id": "a" * 16,
        "status": "done",
        "dataset": "toy",
        "method": "sep",
        "setting": "",
        "protocol": "clean",
        "split": 0,
        "seed": 0,
        "metrics": {},
        "seconds": {},
    }
)


def config(**splits):
    return {"split": "all", "dataset": {**CARD, **({"splits": splits} if splits else {})}, "method": {"name": "sep"}}


def rows(stored):
    record = with_rows(RECORD, lambda: yaml.safe_dump(stored, sort_keys=False))
    return tuple(getattr(record, name) for name in ("split_set", "train_rows", "test_rows"))


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({}, ("random90", 184, 21)),
        ({"set": "hla", "sets": {"hla": 20}}, ("hla", 184, 21)),
        ({"set": "random", "sets": {"random": 5}, "test_rows": 5, "train_rows": None}, ("random", 200, 5)),
        ({"set": "random", "sets": {"random": 5}, "test_rows": 5, "train_rows": 50}, ("random", 50, 5)),
        ({"set": "official", "sets": {"official": 1}, "train_rows": 200}, ("official", 200, 5)),
        ({"set": "yang", "sets": {"yang": 10}}, ("yang", None, None)),
        ({"set": "groups90", "sets": {"groups90": 5}}, ("groups90", None, None)),
    ],
)
def test_a_record_without_rows_has_those_that_its_configuration_says(splits, expected):
    assert rows(config(**splits)) == expected


def test_an_unreadable_configuration_says_nothing():
    assert rows({}) == rows({"dataset": None}) == rows({"dataset": {"name": "toy"}}) == (None, None, None)
    assert with_rows(RECORD, lambda: "dataset:\n  - [\n") == RECORD and with_rows(RECORD, lambda: None) == RECORD


def test_a_record_with_rows_is_left_alone():
    own = replace(RECORD, split_set="yang", train_rows=9, test_rows=1)
    assert with_rows(own, lambda: yaml.safe_dump(config())) is own
    assert with_rows(Record.create(**RECORD.to_json(), test_rows=1), lambda: yaml.safe_dump(config())).test_rows == 1


def test_folders_and_collections_complete_their_records(tmp_path):
    Store(tmp_path).write(RECORD, config(), {})
    collected.write(tmp_path / "all.parquet", [(RECORD, yaml.safe_dump(config(), sort_keys=False))])
    for store in (Store(tmp_path), collected.open_store(tmp_path / "all.parquet")):
        assert (store.get("a" * 16).train_rows, store.all()[0].test_rows) == (184, 21)


def test_rows_of_more_than_64_bits_are_not_taken():
    assert rows({"dataset": {**CARD, "rows": 10**30}}) == (None, None, None)
