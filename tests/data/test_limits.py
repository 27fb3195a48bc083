"""Files that unpack to too much; downloads that are too large, too slow or lead away from https; a damaged store."""

import bz2
import contextlib
import io
import lzma
import tarfile
import time

import numpy as np
import pytest
import requests
from bombs import packed, tarred, zipped
from samples import flips
from scipy.io import savemat
from servers import serving
from small_tables import npz

from gpbench.data import archives, files, readers, robots
from gpbench.data import store as local
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Raw
from gpbench.errors import DataError

ZEROS, LARGE = np.zeros(4000), bytes(32_000)


def sparse_tar():
    """A member of a terabyte of holes."""
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.size": str(2**40), "GNU.sparse.map": "0,1"}
    info.size = 1
    return packed(lambda file: file.write(info.tobuf(tarfile.PAX_FORMAT) + b"x".ljust(512, b"\0") + bytes(1024)))


NPZ = packed(np.savez_compressed, X=ZEROS, y=ZEROS, bits=ZEROS, state=ZEROS, month=ZEROS)
MAT = packed(savemat, {"x": ZEROS, "y": ZEROS}, do_compression=True)
FLIGHTS = bz2.compress(b"Month," + b"x" * 40_000)
PLANES = b"tailnum,year,issue_date\n"


@pytest.mark.parametrize(
    "unpack",
    [
        lambda: readers.fingerprints_npz([NPZ], {"target": "y", "bits": 8}),
        lambda: robots.mujoco_walk([NPZ], {}),
        lambda: readers.airline_npz([NPZ], {}),
        lambda: readers.airline_csv([FLIGHTS, PLANES], {}),
        lambda: archives.member(tarred("w:gz", LARGE), "a"),
        lambda: archives.member(tarred("w:bz2", LARGE), "a"),
        lambda: archives.member(tarred("w:xz", LARGE), "b"),
        lambda: archives.member(sparse_tar(), "a"),
        lambda: archives.member(npz(X=ZEROS), "X.npy"),
    ],
)
def test_what_unpacks_to_too_much_is_one_line_with_both_sizes(unpack, monkeypatch, one_line):
    monkeypatch.setattr(archives, "LARGEST", 20_000)
    with one_line(DataError, match=r"of [0-9,]+ bytes unpacks to .*20,000"):
        unpack()


def test_what_unpacks_to_less_is_read_and_a_download_that_is_cut_off_is_no_file(at):
    assert readers.npz([NPZ], {}).X.shape == (4000,)
    assert readers.mat([MAT], {"matrix": "x", "target": "y"}).X.size == 4000
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        assert archives.member(tarred(mode, b"content"), "a") == b"content"
    assert archives.open_decompressed(lzma.compress(b"a\nb")).readlines() == [b"a\n", b"b"]
    with pytest.raises(files.Absent, match="no answer"):
        files.from_address(at, "short", None)


def headed(header):
    """An .npz file with two arrays of this header."""
    start = np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little")
    return zipped(dict.fromkeys(("X.npy", "y.npy"), start + header))


HEADERS = [b"(((((", b"{", b"'''", b"\0", b"[" * 9000, b"-" * 9000 + b"1", b"{'descr': '<f8', ("]
HEADERS += [b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,)}"]  # terabytes
IDX = [b"", b"\x01", b"\0x", b"\1\0\0", b"\1\0\0\0\0", b"\1" + b"\xff" * 4, b"\2" + b"\xff" * 8]
IDX += [b"A" + b"\0\0\0\1" * 65 + b"x"]
BITS = npz(bits=np.zeros((2, 1), np.uint8), y=1)


@pytest.mark.parametrize(
    "read",
    [
        *(lambda header=header: readers.npz([headed(header)], {}) for header in HEADERS),
        *(lambda content=content: readers.idx([b"\0\0\x08" + content], {}) for content in IDX),
        lambda: readers.idx([], {}),
        *(lambda n=n: readers.libsvm([b"1 1:2"], {"inputs": n}) for n in (10**12, 10**20, 1e12, "3")),
        lambda: readers.year_zip([b""], {"rows": 10**14}),
        lambda: readers.fingerprints_npz([BITS], {"target": "y", "bits": 8}),
        lambda: robots.mujoco_walk([npz(state=ZEROS, act=ZEROS, length=2)], {}),
        lambda: readers.npz([npz(X=np.eye(2), y=ZEROS, feature_names=3)], {}),
        lambda: readers.mat([b"x"], {"matrix": "x", "target": "y"}),
    ],
)
def test_what_is_no_such_file_is_one_line(read):
    with pytest.raises(DataError) as caught:
        read()
    assert str(caught.value) and "\n" not in str(caught.value)


def unruly(handler):
    """Answers with endless, slow, short and moved files."""
    handler.send_response(302 if "moved" in handler.path else 200)
    if handler.path == "/moved":
        handler.send_header("Location", "/moved")
    if handler.path == "/short":
        handler.send_header("Content-Length", "1000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range({"/endless": 10**9, "/slow": 200, "/short": 1}.get(handler.path, 0)):
            handler.wfile.write(b"x" * (1 if handler.path == "/slow" else 500))
            time.sleep(0.02 if handler.path == "/slow" else 0)


@pytest.fixture(scope="module")
def at():
    with serving(unruly) as address:
        yield address


@pytest.mark.parametrize(
    "name, limits, line",
    [
        ("endless", {"largest": 100_000}, "endless is larger than 100,000 bytes"),
        ("slow", {"longest": 0.2}, "slow takes longer than 0 seconds: [0-9]+ bytes so far"),
        ("moved", {}, "moved leads on more than 10 times"),
    ],
)
def test_a_download_has_limits(name, limits, line, at):
    begun = time.monotonic()
    with pytest.raises(DataError, match=line):
        files.download(at + name, **limits)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("target", ["http://elsewhere/a", "//elsewhere/a", "ftp://elsewhere/a", "b"])
def test_no_redirect_leads_from_https_to_http(target, monkeypatch):
    asked = []

    def request(session, method, url, **_):
        asked.append(url)
        response = requests.Response()
        response.status_code, response.url, response.raw = 302 if len(asked) == 1 else 200, url, io.BytesIO(b"")
        response.headers["location"] = target
        return response

    monkeypatch.setattr(requests.Session, "request", request)
    with requests.Session() as session:
        if ":" in target:
            with pytest.raises(DataError, match=f"leads from https to {target}"):
                files.request(session, "GET", "https://here/a", 1.0)
        else:
            assert files.request(session, "GET", "https://here/a", 1.0).status_code == 200
    assert [url.partition(":")[0] for url in asked] == ["https"] * len(asked) and len(asked) == (2 - (":" in target))


@pytest.mark.parametrize("checked", [True, False])
def test_every_flipped_bit_of_a_stored_data_set_is_noticed(checked, tmp_path):
    rng, nine = np.random.default_rng(0), np.arange(9)
    folds, names = {"yang": nine % 3}, (("a", "b"), ("p", "q"))
    raw = Raw(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), names[0], folds, names[1], groups=nine // 3)
    source = {"kind": "official", "at": "http://x/", "files": {"a": None}}
    card = {"name": "toy", "task": "regression", "sources": [source]}
    dataset = from_raw(card, raw)
    card |= {"checksum": dataset.checksum} if checked else {}
    local.save(dataset, card, tmp_path)
    path = local.path(card, tmp_path)
    whole, noticed = path.read_bytes(), 0
    for damaged in flips(whole, 400):
        path.write_bytes(damaged)
        try:
            np.testing.assert_equal(vars(local.get(card, tmp_path)), vars(dataset))
        except DataError as error:
            noticed += 1
            assert "\n" not in str(error) and str(error).startswith(f"{path} is damaged (")
    assert noticed > 150  # the others are in dates, sizes and flags that nothing reads
