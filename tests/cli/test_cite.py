"""`gpbench cite`, and the references behind it."""

import itertools
import json
import re
from pathlib import Path

from samples import sample

from gpbench.cli import main
from gpbench.papers import references
from gpbench.records.store import Store

BIB = Path(references.__file__).with_suffix(".bib").read_text()
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "book": {"title", "publisher", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "phdthesis": {"author", "title", "school", "year"},
    "misc": {"author", "title", "howpublished", "year"},
    "software": {"author", "title"},
}


def parsed(text):
    """{key: (kind, {field: value})}, by counting braces as BibTeX does; anything between entries is an error."""
    entries, rest = {}, text.strip()
    while rest:
        head = re.match(r"@(\w+)\{([\w-]+),\s*", rest)
        assert head, rest[:60]
        fields, rest = {}, rest[head.end() :]
        while not rest.startswith("}"):
            name = re.match(r"(\w+) = (?=\{)", rest)
            assert name, rest[:60]
            rest = rest[name.end() :]
            depths = itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in rest)
            end = next(position for position, depth in enumerate(depths) if depth == 0)
            fields[name[1]], rest = rest[1:end], rest[end + 1 :].lstrip(",").lstrip()
        assert head[2] not in entries, f"{head[2]} is there twice"
        entries[head[2]], rest = (head[1], fields), rest[1:].strip()
    return entries


def cite(capsys, *words):
    assert main(["cite", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_every_entry_is_bibtex_and_everything_that_ships_can_be_cited():
    for key, (kind, fields) in parsed(BIB).items():
        assert fields.keys() >= NEEDED[kind], key
        assert kind != "book" or fields.keys() & {"author", "editor"}, key
        assert all(value.isascii() and value.strip() for value in fields.values()), key
        assert key in ("gpbench", "statlog") or key.endswith(fields["year"]), key
    for name in references.names():
        works = references.references([name])
        assert works, name
        lacking = [work.text for work in works if not work.bibtex and re.search(r"\(\d{4}\)", work.text)]
        assert not lacking, (name, lacking)  # places and packages, such as UCI 1, have no year


def test_works_are_cited_once_and_named_without_an_entry_and_with_what_cites_them(capsys):
    lines = cite(capsys, "abalone", "adult")
    assert all(f"% no entry in references.bib for {text} (" in lines for text in ("UCI 1", "UCI 2"))
    assert "@inproceedings{kohavi1996," in lines
    entries = parsed(cite(capsys, "sep", "boston", "concrete", "hl2016"))
    assert list(entries) == ["hernandez-lobato2016", "hernandez-lobato2015", "harrison1978", "yeh1998"]
    works = json.loads(cite(capsys, "--json", "boston", "concrete"))
    assert {r["key"]: r["cited_by"] for r in works}["hernandez-lobato2015"] == ["boston", "concrete"]


def test_a_run_cites_its_method_data_protocol_and_gpbench_and_a_user_brings_references_of_their_own(tmp_path, capsys):
    Store(tmp_path).write(sample("0123456789abcdef", dataset="yacht", method="svi"), {}, {})
    keys = {"hensman2013", "hensman2015", "hernandez-lobato2015", "gerritsma1981", "gpbench"}
    assert parsed(cite(capsys, "0123", "--results", tmp_path)).keys() == keys
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("# Mine\n# cite: Müller (1999); Nobody (2001)\n_target_: a.B\n")
    (tmp_path / "references.bib").write_text("@misc{muller1999,\n  title = {T}\n}\n")
    out = cite(capsys, "mine", "--config-dir", tmp_path)
    assert out == "@misc{muller1999,\n  title = {T}\n}\n\n% no entry in references.bib for Nobody (2001) (nobody2001)\n"
