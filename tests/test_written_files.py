"""Files that a user names with --out are complete or as they were; sizes of Parquet's pages are those of its footer."""

import io
import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import FullDisk, grid, write

from gpbench import pages
from gpbench.cli import main
from gpbench.errors import StorageError

COMPARE = ["compare", "sep", "svi", "--results", "records"]
TO_TABLE = ["table", "--results", "records"]
WRITERS = {"table.md": TO_TABLE, "crate.zip": TO_TABLE, "picture.svg": COMPARE}
WRITERS |= {"records.parquet": ["collect", "records"], "rows.npz": ["data", "rows", "sinc", "--split", "0"]}
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
    assert written(written.file) == 0
    older = written.file.read_bytes()
    monkeypatch.setattr("gpbench.outputs.open", FullDisk, raising=False)
    assert written(written.file) == StorageError.exit_code
    *_, line = capsys.readouterr().err.splitlines()
    reason = "No space left on device; free some space, or name another file"
    assert line == f"gpbench: cannot write {written.file}: {reason}"
    assert written.file.read_bytes() == older and [*written.file.parent.iterdir()] == [written.file]


def test_a_link_stays_one_and_one_to_itself_becomes_the_file(written):
    link = written.file.parent / "link" / written.file.name
    link.parent.mkdir()
    for _ in range(2):  # its file is not there at first
        link.unlink(missing_ok=True)
        link.symlink_to(written.file)
        assert written(link) == 0 and link.is_symlink() and len(content := written.file.read_bytes()) > 100
    assert written(written.file) == 0 and written.file.read_bytes()[:4] == content[:4]
    assert {*written.file.parent.iterdir()} == {written.file, link.parent} and [*link.parent.iterdir()] == [link]
    written.file.unlink()
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


COLUMNS = {"text": [None, "x", "a longer text"], "flag": [True, False, None], "list": [[1, 2], [], None]}
TABLE = pa.table({name: cells * 1000 for name, cells in COLUMNS.items()})
TABLE = TABLE.append_column("real", pa.array(np.random.default_rng(0).normal(size=3000)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "none"},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "data_page_size": 100},
        {"row_group_size": 700, "write_page_checksum": True},
        {"write_statistics": False, "write_page_index": True},
    ],
)
def test_the_pages_unpack_to_what_the_footer_says_less_their_headers(options):
    pq.write_table(TABLE, file := io.BytesIO(), **options)
    facts = pq.read_metadata(file)
    groups = [facts.row_group(k) for k in range(facts.num_row_groups)]
    stated = sum(group.total_byte_size for group in groups)
    size = pages.unpacked_size(file.getvalue(), facts)
    headers = 120 * (stated // 90 if "data_page_size" in options else 12 * len(groups))
    assert stated - headers < size < stated and size > stated / 3


@pytest.mark.parametrize("damage", [bytes(40), b"\xff" * 40, b"\x1c" * 40, b"\x19" * 40, b""])
def test_what_is_no_header_is_an_error(damage):
    pq.write_table(TABLE, file := io.BytesIO())
    content = file.getvalue()
    damaged = content[:4] + damage + content[4 + len(damage) :] if damage else content[:100]
    with pytest.raises((ValueError, LookupError, RecursionError)):
        pages.unpacked_size(damaged, pq.read_metadata(file))
