"""Each raw format, read from a small file of that format."""

import gzip
import io
import struct

import numpy as np
import pytest
import scipy.io
from bombs import tarred, zipped
from small_tables import npz

from gpbench.data import archives, readers, tables
from gpbench.errors import DataError

TABLES = {
    "without header": (
        [b"101,5,1,2\n102,?,3,4\n\n"],
        {"target": -1, "drop": [0], "missing": "?"},
        ([[5, 1], [np.nan, 3]], ["2", "4"], ()),
    ),
    "with header": (
        [b'"fixed acidity";"quality";"pH"\r\n7.4;5;3.51\r\n'],
        {"target": "quality", "delimiter": ";"},
        ([[7.4, 3.51]], ["5"], ("fixed acidity", "pH")),
    ),
    "white space": (
        [b"sp sex index  FL\nB M 1 8.1\nO F   2 9\n"],
        {"target": "sex", "delimiter": "space", "codes": {"sp": {"B": 0, "O": 1}}},
        ([[0, 1, 8.1], [1, 2, 9]], ["M", "F"], ("sp", "index", "FL")),
    ),
    "several files": (
        [b";;; comment\n\nA,B\nSKY,1,9\n", b";;; comment\n\nA,B\nPATH,2,9\n"],
        {"target": 0, "skip": 3, "drop": [2]},
        ([[1], [2]], ["SKY", "PATH"], ()),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_text_table_is_read_as_its_options_say(name):
    blobs, options, (X, target, columns) = TABLES[name]
    raw = tables.table(blobs, options)
    np.testing.assert_array_equal(raw.X, X)
    assert raw.target.tolist() == target and raw.columns == columns
    with pytest.raises(DataError, match="no column 5"):
        tables.table(blobs, options | {"target": 5, "drop": []})


@pytest.mark.parametrize(
    "line, message",
    [
        ("1 0:1", "line 2: Invalid index 0 .*; indices count from 1"),
        ("1 3:1", "index 3 is beyond the 2 inputs of the card: write `inputs: 3`, or leave"),
        ("red 1:1", "line 2: could not convert string to float: b'red'"),
        ("1 2:1 1:1", "line 2: Feature indices .* should be sorted and unique"),
        ("1 qid:3 2:1", "a `qid` in 1 of 3 lines: give one to every line, or to none"),
    ],
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_that_is_no_libsvm_text_is_named(line, message, end):
    text = f"1 1:1\n{line}\n1 1:1{end}" if end or "3 lines" in message else f"1 1:1\n{line}"
    with pytest.raises(DataError, match=f"not libsvm text: {message}"):
        readers.libsvm([text.encode()], {"inputs": 2})


def test_queries_of_libsvm_are_groups():
    raw = readers.libsvm([b"2 qid:7 1:0.5 3:5 # a\n\n+1 qid:7 2:1e-3\n3 qid:9\n"], {})
    assert raw.X.tolist() == [[0.5, 0, 5], [0, 1e-3, 0], [0, 0, 0]] and raw.target.tolist() == [2, 1, 3]
    assert raw.groups.tolist() == [7, 7, 9]


def _idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def test_idx_pairs_are_put_one_below_the_other_and_a_cut_off_file_is_refused():
    images = np.arange(24).reshape(3, 2, 4)
    blobs = [_idx(images[:2]), _idx(np.array([7, 8])), _idx(images[2:]), _idx(np.array([9]))]
    raw = readers.idx(blobs, {})
    np.testing.assert_array_equal(raw.X, images.reshape(3, 8))
    assert raw.target.tolist() == [7, 8, 9]
    whole = gzip.decompress(_idx(np.zeros((2, 3, 3))))
    for content in (whole[:-1], whole[:2], b"", gzip.compress(whole)[:-9]):
        with pytest.raises(DataError, match=r"idx|packed"):
            readers.idx([content, _idx(np.zeros(2))], {})


def test_uci_datasets_puts_data_files_one_below_the_other_and_makes_folds_of_masks():
    parts, pack = [gzip.compress(b"1,2,3\n4,5,6\n"), gzip.compress(b"7,8,9\n")], gzip.compress
    raw = readers.uci_datasets([*parts, pack(b"0,1\n1,0\n1,0\n")], {})
    assert raw.X.tolist() == [[1, 2], [4, 5], [7, 8]] and raw.target.tolist() == [3, 6, 9]
    assert raw.folds["yang"].tolist() == [1, 0, 0]
    for blobs, message in (
        ([parts[0], pack(b"7,8\n"), pack(b"0,1\n1,0\n1,0\n")], "not a table of numbers"),
        ([pack(b"0,1\n")], "not a table of numbers"),
        ([*parts, pack(b"0,1\n1,0\n")], "exactly once"),
        ([parts[0], pack(b"1,1\n1,0\n")], "exactly once"),
    ):
        with pytest.raises(DataError, match=message):
            readers.uci_datasets(blobs, {})


def test_npz_takes_the_named_target_and_folds_and_never_unpickles():
    raw = readers.npz([npz(X=np.ones((2, 1)), z=["a", "b"], fold=[0, 1])], {"target": "z", "folds": {"yang": "fold"}})
    assert raw.target.tolist() == ["a", "b"] and raw.folds["yang"].tolist() == [0, 1]
    with pytest.raises(DataError, match="not the expected npz"):
        readers.npz([npz(X=np.ones((1, 1)), y=np.array([object()]))], {})
    with pytest.raises(DataError, match="not the expected npz"):
        readers.npz([b"no npz"], {})


def test_a_matlab_file_gives_the_named_arrays_and_a_zip_or_tar_the_named_member():
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"data": np.eye(2), "target": [[1], [-1]]}, do_compression=True)
    raw = readers.mat([buffer.getvalue()], {"matrix": "data", "target": "target"})
    np.testing.assert_array_equal(raw.X, np.eye(2))
    assert raw.target.tolist() == [1, -1]
    for content, name in ((buffer.getvalue(), "other"), (buffer.getvalue()[:-20], "data"), (b"", "data")):
        with pytest.raises(DataError, match="not the expected MATLAB file"):
            readers.mat([content], {"matrix": name, "target": "target"})
    assert archives.member(zipped({"UCI CBM Dataset/data.txt": b"1 2"}), "UCI CBM Dataset/data.txt") == b"1 2"
    assert archives.member(tarred("w:gz", b"3", "a/b.asc"), "a/b.asc") == b"3"
    for archive in (zipped({"a": b"1"}), tarred("w:gz", b"1")):
        with pytest.raises(DataError, match="no member 'b'"):
            archives.member(archive, "b")
    for archive in (b"nothing", zipped({"a": b"x" * 100})[:-30]):
        with pytest.raises(DataError, match="damaged"):
            archives.member(archive, "a")
