"""Store, mirror and addresses: what is taken, in which order, and what is said where nothing can be had."""

import errno
import gzip
import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
import requests
import small_tables
import yaml
from servers import serving

from gpbench.cli import main
from gpbench.data import files, load, readers, sources
from gpbench.data import store as local
from gpbench.errors import ConfigError, DataError

X, LABELS = np.array([[1.0, 2.5], [3.0, -0.0], [5.0, 6.0]]), ["no", "yes", "no"]
CSV = b"1,2.5,no\n3,0,yes\n5,6,no\n"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def npz(X=X, y=LABELS) -> bytes:
    return small_tables.npz(X=X, y=y)


MIRROR = {"kind": "mirror", "files": {"toy.npz": sha(npz())}, "reader": "npz"}


def make(*sources: dict, **more) -> dict:
    labels = {"no": -1, "yes": 1}
    return {"name": "toy", "task": "binary", "labels": labels, "sources": list(sources), "checksum": CHECKSUM, **more}


def address(at: str, sha256: str | None = None, name: str = "toy.csv", **more) -> dict:
    return {"kind": "official", "at": at, "files": {name: sha256}, "reader": "table", "target": -1, **more}


CHECKSUM = "83af9b15de103e3c6d55ea817e7ad6749398ad1e9a05748811ff461248fdd293"


@pytest.fixture
def mirror_dir(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "toy.npz").write_bytes(npz())
    return folder


@pytest.fixture
def server():
    """A server on this machine: `content` is what it answers, `short` how many bytes it omits, `hits` the paths."""

    site = SimpleNamespace(content=CSV, short=0, hits=[])

    def answer(handler):
        site.hits.append(handler.path)
        handler.send_response(200 if site.content else 404)
        handler.send_header("Content-Length", str(len(site.content)))
        handler.end_headers()
        handler.wfile.write(site.content[: len(site.content) - site.short])

    with serving(answer) as address:
        site.at = f"{address}data/"
        yield site


def stored(store):
    return sorted(path.name for path in store.rglob("*") if path.is_file()) if store.exists() else []


def test_mirror_and_official_file_give_the_same_arrays_and_checksum(mirror_dir, server):
    one = sources.obtain(make(MIRROR), MIRROR, mirror=mirror_dir)
    two = sources.obtain(make(), address(server.at), mirror=None)
    assert one.checksum == two.checksum == CHECKSUM  # the -0.0 of the one and the 0 of the other included
    assert one.classes == two.classes == ("no", "yes")
    assert server.hits == ["/data/toy.csv"]
    server.content = CSV.replace(b"no", b"0").replace(b"yes", b"1")  # a source may spell the labels its own way
    three = sources.obtain(make(), address(server.at, labels={"0": -1, "1": 1}), mirror=None)
    assert three.classes == ("no", "yes") and three.checksum == CHECKSUM


def test_the_mirror_is_asked_before_addresses_and_a_second_load_needs_neither(mirror_dir, store, server, capsys):
    first = load(make(MIRROR, address(server.at)), mirror=mirror_dir)
    assert server.hits == [] and capsys.readouterr().err == ""
    assert stored(store) == [f"{CHECKSUM[:16]}.npz"]
    (mirror_dir / "toy.npz").unlink()
    second = load(make(MIRROR), offline=True)
    np.testing.assert_array_equal(first.X, second.X)
    assert first.X.dtype == second.X.dtype == np.float64
    assert (first.classes, first.columns, first.checksum) == (second.classes, second.columns, second.checksum)


def test_whole_numbers_are_stored_small_and_come_back_as_they_were(store, tmp_path):
    source = {"kind": "file", "path": str(tmp_path / "t.csv"), "target": "y"}
    card = {"name": "toy", "task": "regression", "sources": [source]}
    (tmp_path / "t.csv").write_text("a,b,y\n0,255,0.5\n7,3,1.5\n")
    card["checksum"] = load(card).checksum
    dataset = load(card)
    with np.load(local.path(card, store)) as archive:
        assert archive["X"].dtype == np.uint8
    np.testing.assert_array_equal(load(card).X, dataset.X)


def test_an_absent_mirror_file_is_quiet_and_a_damaged_one_is_said(mirror_dir, server, store, capsys):
    (mirror_dir / "toy.npz").unlink()
    assert load(make(MIRROR, address(server.at)), mirror=mirror_dir, again=True).checksum == CHECKSUM
    assert capsys.readouterr().err == ""
    (mirror_dir / "toy.npz").write_bytes(npz()[:-1])
    assert load(make(MIRROR, address(server.at)), mirror=mirror_dir, again=True).checksum == CHECKSUM
    assert "damaged or another version; took the next source" in capsys.readouterr().err


def test_a_file_with_a_wrong_checksum_is_never_parsed(mirror_dir, monkeypatch):
    def parse(*_):
        raise AssertionError("parsed before it was checked")

    monkeypatch.setattr(readers, "npz", parse)
    (mirror_dir / "toy.npz").write_bytes(npz(X + 1))
    with pytest.raises(DataError, match=r"toy.npz: sha256 is .*, not "):
        load(make(MIRROR), mirror=mirror_dir)


@pytest.mark.parametrize(
    ("content", "short", "sha256", "message"),
    [
        (CSV, 5, None, "no answer"),  # cut off on the way
        (CSV.replace(b"6", b"7"), 0, sha(CSV), "sha256 is"),  # another file
        (CSV.replace(b"6", b"7"), 0, None, "not 83af9b15"),  # another file, where only the arrays' checksum is known
        (b"<html>moved</html>", 0, None, "no rows|no inputs|cells"),
        (b"", 0, None, "the server answers 404"),
    ],
)
def test_a_bad_download_never_lands_in_the_store(server, store, content, short, sha256, message):
    server.content, server.short = content, short
    with pytest.raises(DataError, match=message):
        load(make(address(server.at, sha256)))
    assert stored(store) == []


def test_a_damaged_store_is_said_and_mended(mirror_dir, store, capsys):
    card = make(MIRROR)
    load(card, mirror=mirror_dir)
    path = local.path(card, store)
    good = path.read_bytes()
    for damage in (good[: len(good) // 2], npz(X + 1), b""):
        path.write_bytes(damage)
        assert load(card, mirror=mirror_dir).checksum == CHECKSUM
        assert "is damaged" in capsys.readouterr().err
        assert local.get(card, store).checksum == CHECKSUM


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EACCES, "Permission denied")])
def test_a_store_that_cannot_be_written_warns_and_leaves_no_part(mirror_dir, store, monkeypatch, capsys, code, words):
    def fail(file, **_):
        file.write(b"half")
        raise OSError(code, "Permission denied")

    monkeypatch.setattr(local.np, "savez_compressed", fail)
    assert load(make(MIRROR), mirror=mirror_dir).checksum == CHECKSUM
    assert words in capsys.readouterr().err and stored(store) == []


def test_a_checksum_of_40_digits_is_that_of_git_and_index_files_are_checked_too(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"test content\n")
    of_git = "d670460b4b4aece5915caf5c68d12f560a9fe3e4"  # echo 'test content' | git hash-object --stdin
    assert files.from_folder(tmp_path, "t.csv", of_git) == b"test content\n"
    with pytest.raises(DataError, match=rf"git's checksum is {of_git}, not {'0' * 40}: damaged"):
        files.from_folder(tmp_path, "t.csv", "0" * 40)
    data, mask = gzip.compress(b"1,2\n3,4\n"), gzip.compress(b"0,1\n1,0\n")
    (tmp_path / "d.gz").write_bytes(data)
    (tmp_path / "m.gz").write_bytes(mask)
    source = {"kind": "mirror", "files": {"d.gz": sha(data), "m.gz": sha(mask)}, "reader": "uci_datasets"}
    card = {"name": "toy", "task": "regression", "sources": [source], "folds_checksum": "0" * 64}
    with pytest.raises(DataError, match="folds_checksum"):
        load(card, mirror=tmp_path)
    assert load({**card, "folds_checksum": None}, mirror=tmp_path).folds["yang"].tolist() == [1, 0]


def test_without_network_and_mirror_the_error_names_all_places_and_a_mirror_that_is_no_folder(store, tmp_path):
    with pytest.raises(DataError) as caught:
        load(make(MIRROR, address("http://127.0.0.1:9/", name="toy.data")))
    text = str(caught.value)
    for part in (str(store), "GPBENCH_MIRROR", "toy.npz", sha(npz()), "http://127.0.0.1:9/toy.data", "no answer"):
        assert part in text and "\n" not in text
    line = r"the mirror .*nowhere: no such folder; mend GPBENCH_MIRROR, data\.mirror or"
    with pytest.raises(ConfigError, match=line):
        load(make(MIRROR, address("http://127.0.0.1:1")), mirror=tmp_path / "nowhere")


def test_offline_and_for_people_no_address_is_asked_and_what_to_do_is_said_where_one_could_help(server, tmp_path):
    remedy = "; run `gpbench data fetch toy` where there is a network and copy that store here"
    with pytest.raises(DataError, match="offline, so not downloaded") as caught:
        load(make(MIRROR, address(server.at)), offline=True)
    assert str(caught.value).endswith(remedy) and server.hits == []
    with pytest.raises(DataError) as caught:
        load(make({"kind": "file", "path": str(tmp_path / "none.csv"), "target": -1}), offline=True)
    assert remedy not in str(caught.value)
    note = {"kind": "official", "at": server.at, "files": {"toy.xls": None}, "note": "an Excel file"}
    with pytest.raises(DataError, match=r"toy.xls: an Excel file"):
        load(make(note))
    assert server.hits == []


RIGHT = sha(CSV)


def answer(handler, head=False):
    """`file.csv`, a redirect to it, the same without HEAD, and a large file of which nobody may ask for the content."""
    path = handler.path.strip("/")
    if path == "moved.csv":
        handler.send_response(301)
        handler.send_header("Location", "/file.csv")
        handler.send_header("Content-Length", "0")
        return handler.end_headers()
    if (path == "no_head.csv" and head) or (path == "large.csv" and not head):
        return handler.send_error(405)
    if path not in ("file.csv", "no_head.csv", "large.csv"):
        return handler.send_error(404)
    handler.send_response(200)
    handler.send_header("Content-Length", str(2**30 if path == "large.csv" else len(CSV)))
    handler.end_headers()
    if not head:
        handler.wfile.write(CSV)


@pytest.fixture(scope="module")
def at():
    with serving(answer, head=lambda handler: answer(handler, head=True)) as address:
        yield address


@pytest.fixture
def probe(at, tmp_path, capsys, new_file):
    """Writes a card with these files, a source each, and probes it."""

    def run(*files: tuple[str, str | None], reader: str | None = "table", words: tuple[str, ...] = ()):
        source = {"kind": "official", "at": at} | ({"reader": reader, "target": -1} if reader else {})
        sources = [source | {"files": {name: checksum}} for name, checksum in files]
        card = {"name": "toy", "task": "regression", "sources": sources}
        new_file(tmp_path / "dataset" / "toy.yaml", yaml.safe_dump(card))
        code = main(["data", "probe", "toy", "--config-dir", str(tmp_path), *words])
        printed = capsys.readouterr()
        lines = [" ".join(line.split()).removeprefix(f"toy {at}") for line in printed.out.splitlines()]
        return code, lines, printed.err

    return run


def test_each_file_has_a_line_and_one_source_that_answers_is_enough(at, probe):
    right = [(name, RIGHT) for name in ("file.csv", "moved.csv", "no_head.csv", "large.csv")]
    code, lines, error = probe(*right, ("file.csv", None), ("gone.csv", None), ("file.csv", "0" * 64))
    assert (code, error) == (0, "") and lines[:6] == [
        "file.csv: answers, 24 bytes, checksum right",
        f"moved.csv: answers, 24 bytes, checksum right, redirects to {at}file.csv",
        "no_head.csv: answers, 24 bytes, checksum right",
        "large.csv: answers, 1,073,741,824 bytes",
        "file.csv: answers, 24 bytes",
        "gone.csv: the server answers 404",
    ]
    assert "damaged or another version, 24 bytes" in lines[6]


@pytest.mark.parametrize("name, checksum", [("gone.csv", None), ("file.csv", "0" * 64)])
def test_a_card_without_an_address_that_answers_is_an_error(name, checksum, probe):
    code, _, error = probe((name, checksum))
    assert code == 3 and error == "gpbench: no address answers for toy; find a copy and add it to the card\n"


def test_a_page_for_people_counts_neither_way_and_a_server_that_is_down_is_said_in_json(probe, monkeypatch):
    code, lines, _ = probe(("gone.html", None), reader=None)
    assert (code, lines) == (0, ["gone.html: the server answers 404, not read by gpbench"])

    def down(*args, **options):
        raise requests.ConnectionError

    monkeypatch.setattr("requests.Session.request", down)
    code, lines, _ = probe(("file.csv", RIGHT), words=("--json",))
    told = json.loads(" ".join(lines))
    assert code == 3 and told["unavailable"] == ["toy"] and told["files"][0]["problem"] == "no answer (ConnectionError)"
