"""Files that a user names with --out: complete or as they were, by each of the functions that write them."""

import os
import threading

import pytest
from samples import FullDisk, grid, write

from gpbench.cli import main
from gpbench.errors import StorageError

COMPARE = ["compare", "sep", "svi", "--results", "records"]
WRITERS = {
    "table.md": ["table", "--results", "records"],
    "crate.zip": ["table", "--results", "records"],
    "picture.svg": COMPARE,
    "records.parquet": ["collect", "records"],
    "rows.npz": ["data", "rows", "sinc", "--split", "0"],
}
"""Words of a verb for each kind of file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with records of two methods."""
    folder = tmp_path_factory.mktemp("outputs")
    nll = lambda dataset, method, split: {"nll": 0.5 + (method == "svi")}
    write(folder / "records", grid(["pima"], ["sep", "svi"], 2, metrics=nll, seconds={"train": 1.0}))
    return folder


@pytest.fixture(params=WRITERS)
def written(request, folder, tmp_path, monkeypatch):
    """A function that writes a file of one kind, by its path: the verb's exit code; `.file` is one in a folder."""
    monkeypatch.chdir(folder)
    written = lambda path: main([*WRITERS[request.param], "--out", str(path)])
    written.file = tmp_path / request.param
    return written


def test_a_full_disk_leaves_the_older_file_as_it_was(written, monkeypatch, capsys):
    written.file.write_text("older")
    monkeypatch.setattr("gpbench.outputs.open", FullDisk, raising=False)
    assert written(written.file) == StorageError.exit_code
    *_, line = capsys.readouterr().err.splitlines()
    reason = "No space left on device; free some space, or name another file"
    assert line == f"gpbench: cannot write {written.file}: {reason}"
    assert written.file.read_text() == "older" and [*written.file.parent.iterdir()] == [written.file]


def test_a_link_stays_one_and_its_file_is_written(written):
    link = written.file.parent / "link" / written.file.name
    link.parent.mkdir()
    for _ in range(2):  # its file is not there at first
        link.unlink(missing_ok=True)
        link.symlink_to(written.file)
        assert written(link) == 0 and link.is_symlink() and len(content := written.file.read_bytes()) > 100
    assert written(written.file) == 0 and written.file.read_bytes()[:4] == content[:4]
    assert {*written.file.parent.iterdir()} == {written.file, link.parent} and [*link.parent.iterdir()] == [link]


def test_a_link_to_itself_becomes_the_file(written):
    written.file.symlink_to(written.file)
    assert written(written.file) == 0 and written.file.is_file() and not written.file.is_symlink()


def test_a_pipe_is_written_to_and_stays_one(written):
    read: list[bytes] = []
    os.mkfifo(written.file)
    reader = threading.Thread(target=lambda: read.append(written.file.read_bytes()))
    reader.start()
    assert written(written.file) == 0
    reader.join()
    assert len(read[0]) > 100 and written.file.is_fifo()


def test_a_card_that_finds_no_room_is_not_there(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.csv").write_text("x,y\n" + "".join(f"{k}.5,{2 * k}.25\n" for k in range(30)))
    words = ["run", f"dataset={tmp_path}/mine.csv", "target=y", "method=linear", "--dry-run"]
    with monkeypatch.context() as full:
        full.setattr("gpbench.outputs.open", FullDisk, raising=False)
        assert main(words) == StorageError.exit_code
    assert "No space left on device" in capsys.readouterr().err and not [*(tmp_path / "dataset").iterdir()]
    assert main(words) == 0
