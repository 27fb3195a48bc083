"""ctslice and song: folds come with the files whose rows they number, and go with no others."""

import gzip
import hashlib

import numpy as np
import pytest

from gpbench import cli
from gpbench.data import cards, files, load, sources, splits
from gpbench.data.dataset import checksum
from gpbench.errors import DataError

NAMES = ("ctslice", "song")
ROWS = [b"1,2,3\n", b"4,5,6\n", b"7,8,9\n"]


def table(*rows: bytes) -> bytes:
    return gzip.compress(b"".join(rows), mtime=0)


FILES = {"data.csv.gz": table(*ROWS), "test_mask.csv.gz": table(b"1,0\n", b"0,1\n", b"0,1\n")}


def toy(of: str, monkeypatch, **served: bytes) -> dict:
    """The card of a data set with `FILES` instead of its own, whose address serves `data` in place of theirs."""
    answers = FILES | ({"data.csv.gz": served["data"]} if served else {})
    monkeypatch.setattr(files, "from_address", lambda at, name, sha256: files.check(answers[name], sha256, name))
    card = cards.read(of)
    first, *others = (source for source in card["sources"] if "data1.csv.gz" not in source["files"])
    first = {**first, "files": {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}}
    return {**card, "sources": [first, *others], "folds_checksum": checksum({"yang": np.array([0, 1, 1], "<i8")})}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_is_read_has_a_checksum_and_the_others_are_for_people(name):
    card = cards.read(name)
    for source in card["sources"]:
        if source["kind"] == "copy":
            assert all(source["files"].values()) and list(source["files"])[-1] == "test_mask.csv.gz"
        else:
            with pytest.raises(files.Absent, match=r"without the .*folds of the cop"):
                sources.obtain(card, source, mirror=None)


@pytest.mark.parametrize(("name", "archive"), [("ctslice", "slice"), ("song", "song")])
def test_the_folds_are_those_of_the_mirror(name, archive, mirror):
    card = cards.read(name)
    with np.load(mirror / f"{archive}_splits_only.npz") as arrays:
        fold = arrays["fold"].astype("<i8")
    assert fold.shape == (card["rows"],) and checksum({"yang": fold}) == card["folds_checksum"]
    counts = np.bincount(fold)
    assert len(counts) == splits.count(card) and counts.max() - counts.min() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_the_card_give_rows_and_folds_and_the_store_keeps_both(name, monkeypatch):
    card = toy(name, monkeypatch)
    dataset = load(card)
    assert dataset.y.tolist() == [3, 6, 9] and splits.indices(card, dataset, 0)[1].tolist() == [0]
    again = load(card, offline=True)
    assert again.folds["yang"].tolist() == [0, 1, 1] and again.checksum == dataset.checksum


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_another_order_and_other_folds_are_refused(name, monkeypatch):
    with pytest.raises(DataError, match=r"data\.csv\.gz: sha256 is .*damaged or another version"):
        load(toy(name, monkeypatch, data=table(*ROWS[::-1])))
    card = {**toy(name, monkeypatch), "folds_checksum": cards.read(name)["folds_checksum"]}
    with pytest.raises(DataError, match="gives arrays with folds_checksum"):
        load(card)


def test_without_a_network_a_run_ends_in_one_clear_line(tmp_path, capsys):
    words = ["dataset=song", "method=constant", "data.offline=true", f"run.results={tmp_path / 'results'}"]
    code = cli.main(["run", *words])
    printed = capsys.readouterr().err
    assert code == DataError.exit_code and printed.count("\n") == 1
    places = ("song is unavailable", "offline, so not downloaded", "treforevans/uci_datasets", "archive.ics.uci.edu")
    assert all(part in printed for part in (*places, "run `gpbench data fetch song` where there is a network"))
