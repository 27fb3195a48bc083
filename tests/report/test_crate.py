"""Crates: archives of a table, its runs and what they cite, described as RO-Crate 1.1."""

import hashlib
import json
import platform
import re
import zipfile
from functools import cache
from pathlib import Path

import pytest
from samples import sample

import gpbench
from gpbench.analysis.leaderboard import division_of
from gpbench.analysis.sheets import Sheet
from gpbench.api.tables import Table
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.papers import references
from gpbench.records import collection
from gpbench.records.store import Store

METADATA = "ro-crate-metadata.json"
CLEAN, OTHER = "c" * 40, "d" * 40
HOST = {"cpu": "Some Processor", "cores": 2, "memory_gib": 7.6}


def record(number, **fields):
    """A run of an hour and a half, of code that is committed."""
    created = f"2026-03-01T10:{number // 60:02}:{number % 60:02}.000+00:00"
    facts = {"commit": CLEAN, "dirty": False, "host": HOST, "device": "cpu", "precision": "float64"}
    facts["versions"] = {"python": "3.11.9", "gpbench": "0.1.0", "jax": "0.10.0", "scipy": None}
    facts["data_checksum"] = hashlib.sha256(str(fields.get("dataset")).encode()).hexdigest()
    facts |= {"seconds": {"compile": 600.0, "train": 4800.0}, "train_rows": 900, "test_rows": 100}
    return sample(f"{number:016x}", created=created, **facts | fields)


def methods(**fields):
    """Runs of two methods on three data sets; the last ones are of code with changes."""
    jobs = [(k, d, m, s) for k, d in enumerate(("pima", "crabs", "heart")) for m in ("sep", "svi") for s in range(3)]
    nll = lambda k, m, s: 0.5 + s / 10 + k / 50 + (m == "svi") * (0.1 + s / 99)
    return [
        record(n, dataset=d, method=m, split=s, metrics={"nll": nll(k, m, s)}, **{"dirty": n > 15} | fields)
        for n, (k, d, m, s) in enumerate(jobs)
    ]


def board():
    """Runs of two methods and another program on the small sets of a division."""
    sets = division_of("classification").datasets(quick=True)
    jobs = [(d, m, s) for m in ("svi", "logistic", "theirs") for d, s in sets.items()]
    others = {"imported": True, "source": "theirs.parquet", "commit": None, "dirty": None, "host": None, "device": None}
    others |= {"versions": {"theirlib": "2.1"}, "seconds": {}}
    shared = {"cpu_seconds": 9.0, "held_out": True, "schema": 2}
    metrics = [{"nll": 0.5 + n % 7 / 9, "error": 0.2, "brier": 0.3, "ece": 0.05} for n in range(len(jobs))]
    return [
        record(n, dataset=d, method=m, split=s, metrics=metrics[n], **shared | (others if m == "theirs" else {}))
        for n, (d, m, s) in enumerate(jobs)
    ]


WORDS = {
    "table": (methods, ["table"]),
    "rank": (methods, ["rank"]),
    "compare": (methods, ["compare", "sep", "svi"]),
    "power": (methods, ["power", "sep", "svi"]),
    "leaderboard": (board, ["leaderboard", "--division", "classification"]),
}


def collected(path, records):
    collection.write(path, [(record, "") for record in records])
    return path


def files_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def unpacked(path, folder):
    (folder / "records.parquet").write_bytes(files_of(path)["records.parquet"])
    return folder / "records.parquet"


@pytest.fixture(scope="module")
def crate_of(tmp_path_factory):
    """The crate that a command writes, made once."""

    @cache
    def make(name):
        folder = tmp_path_factory.mktemp(name)
        runs, words = WORDS[name]
        results, out = collected(folder / "all.parquet", runs()), folder / "new" / "crate.zip"
        assert main([*words, "--results", str(results), "--out", str(out)]) == 0
        return out

    return make


def graph_of(path):
    return {entity["@id"]: entity for entity in json.loads(files_of(path)[METADATA])["@graph"]}


def links(graph, value):
    return [graph[link["@id"]] for link in (value if isinstance(value, list) else [value])]


def references_in(value):
    if isinstance(value, dict) and value.keys() == {"@id"}:
        return [value["@id"]]
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else []
    return [id for part in parts for id in references_in(part)]


@pytest.mark.parametrize("name", WORDS)
def test_the_description_has_every_file_with_its_size_and_checksum_and_all_that_it_refers_to(name, crate_of):
    files = files_of(crate_of(name))
    graph = json.loads(files[METADATA])["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    assert len(by_id) == len(graph) and all({"@id", "@type"} <= entity.keys() for entity in graph)
    version = by_id[METADATA]["conformsTo"]["@id"]
    assert {*references_in(graph)} <= {*by_id, version} and by_id[METADATA]["about"] == {"@id": "./"}
    root = by_id["./"]
    assert root.keys() >= {"name", "description", "datePublished", "license"} and root["@type"] == "Dataset"
    assert {item["@id"] for item in root["hasPart"]} == files.keys() - {METADATA}
    for file in files.keys() - {METADATA}:
        assert by_id[file]["@type"] == "File" and by_id[file]["contentSize"] == str(len(files[file]))
        assert by_id[file]["sha256"] == hashlib.sha256(files[file]).hexdigest()
    texts = {"table.md", "table.csv", "table.tex", "records.parquet", "references.bib", METADATA}
    assert files.keys() == texts | ({"figure.png"} if name in ("rank", "compare", "leaderboard") else set())


@pytest.mark.parametrize("name", WORDS)
def test_its_records_give_the_same_table_again(name, crate_of, tmp_path, printed):
    (runs, words), files = WORDS[name], files_of(crate_of(name))
    results = unpacked(crate_of(name), tmp_path)
    kept = collection.open_store(results).all()
    assert {record.id: record for record in kept} == {record.id: record for record in runs()}
    for format, file in (("md", "table.md"), ("csv", "table.csv"), ("latex", "table.tex")):
        assert printed(*words, "--results", results, "--format", format).encode() == files[file]


def test_only_the_runs_of_the_table_are_in_it_and_seeds_are_said_where_some_are_not_0(tmp_path):
    results = collected(tmp_path / "all.parquet", methods())
    gpbench.table(dataset="pima", method="sep", results=results).to_crate(tmp_path / "crate.zip")
    kept = collection.open_store(unpacked(tmp_path / "crate.zip", tmp_path)).all()
    assert [(record.dataset, record.method) for record in kept] == [("pima", "sep")] * 3
    made = [sample(f"{k:016x}", dataset="pima", method="sep", split=k, seed=seed) for k, seed in enumerate([0, 1, 1])]
    facts = [gpbench.table(results=collected(tmp_path / f"{n}.parquet", made[:n])).to_markdown() for n in (1, 3)]
    assert "- seed:" not in facts[0] and "- seed: 0 (1), 1 (2)" in facts[1]


def test_a_name_of_another_kind_of_file_and_a_table_without_runs_are_one_line(tmp_path):
    table = gpbench.table(dataset="pima", results=collected(tmp_path / "all.parquet", methods()))
    with pytest.raises(ConfigError, match=r"table\.pdf: an RO-Crate is a zip file; give a name that ends in \.zip$"):
        table.to_crate(tmp_path / "table.pdf")
    with pytest.raises(gpbench.ConfigError, match="no run stands in this table"):
        Table(Sheet(title="Nothing.", grids=[], rows=[])).to_crate(tmp_path / "crate.zip")
    assert not (tmp_path / "crate.zip").exists()


def test_equal_runs_in_another_place_and_order_give_equal_bytes(crate_of, tmp_path):
    for item in methods()[::-1]:
        Store(tmp_path).write(item, {"run": {"results": str(tmp_path)}}, {})
    gpbench.rank(results=tmp_path).to_crate(tmp_path / "crate.zip")
    assert (tmp_path / "crate.zip").read_bytes() == crate_of("rank").read_bytes()
    dates = {entry.date_time for entry in zipfile.ZipFile(tmp_path / "crate.zip").infolist()}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


def test_it_says_which_code_ran_where_for_how_long_on_which_data(crate_of):
    by_id = graph_of(crate_of("table"))
    commits = {e["creativeWorkStatus"]: e for e in by_id.values() if e["@type"] == "SoftwareSourceCode"}
    assert {state: (e["version"], e["description"][:19]) for state, e in commits.items()} == {
        "clean": (CLEAN, "The code of 16 runs"),
        "dirty": (CLEAN, "The code of 2 runs "),
    }
    software = {(e["name"], e["version"]) for e in by_id.values() if e["@type"] == "SoftwareApplication"}
    assert software == {("gpbench", "0.1.0"), ("python", "3.11.9"), ("jax", "0.10.0")}
    computation = by_id["#computation"]
    (own,) = links(by_id, computation["instrument"])  # which made the table too
    assert own == links(by_id, by_id["#table"]["instrument"])[0] and len(own["isBasedOn"]) == 2
    assert {e["name"] for e in links(by_id, own["softwareRequirements"])} == {"python", "jax"}
    assert [(e["name"], e["value"]) for e in links(by_id, computation["additionalProperty"])] == [
        ("hours of compute", 27.0),
        ("machine", "cpu, Some Processor, 2 cores, 7.6 GiB"),
    ]
    assert by_id["./"]["datePublished"] == "2026-03-01T10:00:17.000+00:00"
    data = {entity["identifier"]: entity for entity in links(by_id, computation["object"])}
    assert data.keys() == {"pima", "crabs", "heart"}
    assert data["pima"]["sha256"] == hashlib.sha256(b"pima").hexdigest()
    assert data["pima"]["license"] == "none stated by the copy used" and "archive.ics.uci.edu" in data["pima"]["url"][0]


def test_it_names_the_programs_of_imported_runs_and_the_hours_of_processors(crate_of):
    by_id = graph_of(crate_of("leaderboard"))
    instruments = {entity["name"]: entity for entity in links(by_id, by_id["#computation"]["instrument"])}
    assert instruments.keys() == {"gpbench", "theirs"}
    (library,) = links(by_id, instruments["theirs"]["softwareRequirements"])
    assert (library["name"], library["version"]) == ("theirlib", "2.1")
    hours = {e["name"]: e["value"] for e in by_id.values() if e.get("unitText") == "h"}
    runs = len(board())
    assert hours == {"hours of compute": runs * 2 / 3 * 1.5, "CPU hours without compilation": runs * 9 / 3600}


CITED = {
    "table": ["sep", "svi", "crabs", "heart", "pima", "clean", "gpbench"],
    "leaderboard": ["svi", "logistic", *division_of("classification").datasets(quick=True), "clean", "gpbench"],
}


def test_its_bibliography_is_what_gpbench_cite_prints_and_no_file_has_a_path_or_the_host(crate_of, printed, tmp_path):
    for name, cited in CITED.items():
        text = files_of(crate_of(name))["references.bib"].decode()
        keys = re.findall(r"^@\w+\{([^,]+),", text, re.MULTILINE)
        others = re.findall(r"^% no entry in references.bib for (.*) \(", text, re.MULTILINE)
        assert len(keys) == len({*keys}) and {*keys, *others} == {work.key for work in references.references(cited)}
        assert {*printed("cite", *cited).strip().split("\n\n")} == {*text.strip().split("\n\n")}
    for name in WORDS:
        files = files_of(crate_of(name))
        texts = [content.decode() for file, content in files.items() if Path(file).suffix not in (".png", ".parquet")]
        for record, config in collection.read(unpacked(crate_of(name), tmp_path))[0]:
            texts += [str(record.to_json()), config]
        for text in texts:
            assert platform.node() not in text and not re.search(r"(?<![\w:/.<])/[A-Za-z]+/", text), name


def test_runs_of_two_commits_have_a_file_each(tmp_path):
    before, after = (methods(commit=commit) for commit in (CLEAN, OTHER))
    results = [collected(tmp_path / "before.parquet", before), collected(tmp_path / "after.parquet", after)]
    gpbench.compare(CLEAN, OTHER, results=results).to_crate(tmp_path / "crate.zip")
    files = files_of(tmp_path / "crate.zip")
    names = ["records.parquet", "records2.parquet"]
    for name in names:
        (tmp_path / name).write_bytes(files[name])
    again = gpbench.compare(CLEAN, OTHER, results=[tmp_path / name for name in names])
    assert again.to_markdown() + "\n" == files["table.md"].decode()
