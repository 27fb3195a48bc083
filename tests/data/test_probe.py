"""Addresses that answer, lead elsewhere, have other content or are gone, of a server on this machine."""

import hashlib
import json

import pytest
import requests
import yaml
from servers import serving

from gpbench.cli import main

CONTENT = b"1,2.5,no\n3,0,yes\n"
RIGHT = hashlib.sha256(CONTENT).hexdigest()


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
    handler.send_header("Content-Length", str(2**30 if path == "large.csv" else len(CONTENT)))
    handler.end_headers()
    if not head:
        handler.wfile.write(CONTENT)


@pytest.fixture(scope="module")
def at():
    with serving(answer, head=lambda handler: answer(handler, head=True)) as address:
        yield address


@pytest.fixture
def probe(at, tmp_path, capsys):
    """Writes a card with these files, a source each, and probes it."""

    def run(*files: tuple[str, str | None], reader: str | None = "table", words: tuple[str, ...] = ()):
        source = {"kind": "official", "at": at} | ({"reader": reader, "target": -1} if reader else {})
        sources = [source | {"files": {name: checksum}} for name, checksum in files]
        (tmp_path / "dataset").mkdir(exist_ok=True)
        card = {"name": "toy", "task": "regression", "sources": sources}
        (tmp_path / "dataset" / "toy.yaml").write_text(yaml.safe_dump(card))
        code = main(["data", "probe", "toy", "--config-dir", str(tmp_path), *words])
        printed = capsys.readouterr()
        lines = [" ".join(line.split()).removeprefix(f"toy {at}") for line in printed.out.splitlines()]
        return code, lines, printed.err

    return run


def test_each_file_has_a_line_and_one_source_that_answers_is_enough(at, probe):
    code, lines, error = probe(
        ("file.csv", RIGHT),
        ("moved.csv", RIGHT),
        ("no_head.csv", RIGHT),
        ("large.csv", RIGHT),
        ("file.csv", None),
        ("gone.csv", None),
        ("file.csv", "0" * 64),
    )
    assert (code, error) == (0, "") and lines[:6] == [
        "file.csv: answers, 17 bytes, checksum right",
        f"moved.csv: answers, 17 bytes, checksum right, redirects to {at}file.csv",
        "no_head.csv: answers, 17 bytes, checksum right",
        "large.csv: answers, 1,073,741,824 bytes",
        "file.csv: answers, 17 bytes",
        "gone.csv: the server answers 404",
    ]
    assert "damaged or another version, 17 bytes" in lines[6]


@pytest.mark.parametrize("name, checksum", [("gone.csv", None), ("file.csv", "0" * 64)])
def test_a_card_without_an_address_that_answers_is_an_error(name, checksum, probe):
    code, _, error = probe((name, checksum))
    assert code == 3 and error == "gpbench: no address answers for toy; find a copy and add it to the card\n"


def test_a_page_for_people_counts_neither_way(probe):
    code, lines, _ = probe(("gone.html", None), reader=None)
    assert (code, lines) == (0, ["gone.html: the server answers 404, not read by gpbench"])


def test_a_server_that_is_down_is_said_in_json(probe, monkeypatch):
    def down(*args, **options):
        raise requests.ConnectionError

    monkeypatch.setattr("requests.Session.request", down)
    code, lines, _ = probe(("file.csv", RIGHT), words=("--json",))
    told = json.loads(" ".join(lines))
    assert code == 3 and told["unavailable"] == ["toy"] and told["files"][0]["problem"] == "no answer (ConnectionError)"
