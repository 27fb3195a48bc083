"""A record says on what it was made, with a list of installed packages, which is read with distrust."""

import hashlib
import json
import subprocess
import zipfile
from collections import Counter
from importlib import metadata
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from samples import sample

import gpbench
from gpbench.cli import main
from gpbench.errors import AbsentError, ConfigError
from gpbench.records import collection, environment, packages
from gpbench.records.collection import open_store
from gpbench.records.store import Store

LIST, OTHER = "jax==0.10.0\nscipy==1.17\n", "jax==0.11.0\n"
NAME, OTHER_NAME = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (LIST, OTHER))
METRICS = {"nll": 0.5, "error": 0.2}


def stored(folder, *texts):
    """A results folder of three splits that name these lists, the last one of all that are left."""
    for split in range(3):
        text = texts[min(split, len(texts) - 1)]
        fields = {"split": split, "metrics": METRICS, "created": f"2026-01-0{split + 1}T00:00:00"}
        if text:
            fields["packages"] = packages.checksum(text)
        Store(folder).write(sample(f"{split}" * 16, **fields), {"method": {"name": "sep"}}, {}, package_list=text)
    return folder


@pytest.mark.parametrize("name", ["packages", f"packages/{NAME}.txt"])
def test_a_run_is_kept_where_its_list_cannot_be(name, tmp_path, refused):
    """A file where the folder must be, or a folder where the file must be."""
    spot = tmp_path / name
    spot.parent.mkdir(exist_ok=True)
    spot.write_text("x") if name == "packages" else spot.mkdir()
    stored(tmp_path, LIST)
    assert len(Store(tmp_path).all()) == 3
    said = refused("show", "0" * 16, "--packages", "--results", tmp_path)
    assert (f"{spot} is a file, and a folder is needed there; move the file" if spot.is_file() else "delete it") in said


def collect(out, *sources):
    assert main(["collect", *map(str, sources), "--out", str(out)]) == 0
    return out


def test_the_list_has_every_installed_package_once_with_its_version_and_a_record_names_its_checksum():
    expected = {}
    for package in metadata.distributions():
        expected.setdefault(canonicalize_name(package.metadata["Name"]), package.version)
    lines = [Requirement(line) for line in packages.installed().splitlines()]
    assert {line.name: str(line.specifier) for line in lines} == {name: f"=={expected[name]}" for name in expected}
    assert [line.name for line in lines] == sorted(expected)
    assert packages.versions()["hydra-core"] == metadata.version("hydra-core")
    facts = environment.facts()
    assert facts["packages"] == hashlib.sha256(packages.installed().encode()).hexdigest()[:16]
    assert {name: packages.versions().get(name) for name in environment._PACKAGES}.items() <= facts["versions"].items()


@pytest.mark.parametrize("content", [b"Name: \xff", b"Name: a b\nVersion: 1", b"Version: 1", b"Name: a\n\nVersion: 1"])
def test_a_package_that_does_not_say_what_it_is_is_left_out(content, tmp_path, monkeypatch, new_file):
    for name, text in (("a", content), ("My_.own", b"Metadata-Version: 2.1\nName: My_.own\nVersion: 1.0+b\n\nName: x")):
        new_file(tmp_path / f"{name}-1.dist-info" / "METADATA", text)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert packages.versions.__wrapped__() == {"my-own": "1.0+b"}


def test_results_folder_collection_and_archive_have_the_same_list_and_each_once(tmp_path):
    results = stored(tmp_path / "results", LIST, LIST, OTHER)
    assert {path.name for path in (results / "packages").iterdir()} == {f"{NAME}.txt", f"{OTHER_NAME}.txt"}
    first = collect(tmp_path / "all.parquet", results)
    again = collect(tmp_path / "again.parquet", first)
    assert again.read_bytes() == first.read_bytes()
    assert collection._read_packages(again) == {NAME: LIST, OTHER_NAME: OTHER}
    for source in (results, again):
        gpbench.table(results=source).to_crate(tmp_path / "crate.zip")
        with zipfile.ZipFile(tmp_path / "crate.zip") as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        assert files[f"packages/{NAME}.txt"].decode() == LIST and files[f"packages/{OTHER_NAME}.txt"].decode() == OTHER
        (tmp_path / "records.parquet").write_bytes(files["records.parquet"])
        assert collection._read_packages(tmp_path / "records.parquet") == {NAME: LIST, OTHER_NAME: OTHER}
        graph = {entity["@id"]: entity for entity in json.loads(files["ro-crate-metadata.json"])["@graph"]}
        described = graph[f"packages/{NAME}.txt"]
        assert described["sha256"] == hashlib.sha256(LIST.encode()).hexdigest() and described["@type"] == "File"
        required = [link["@id"] for link in graph["#software-gpbench"]["softwareRequirements"]]
        assert required == sorted(f"packages/{name}.txt" for name in (NAME, OTHER_NAME))
        assert {"@id": f"packages/{NAME}.txt"} in graph["./"]["hasPart"]
        assert {"@id": f"packages/{NAME}.txt"} not in graph["#table"]["result"]


def test_a_thousand_records_of_one_list_take_the_room_of_one_and_a_changed_list_is_no_such(tmp_path):
    text = "".join(f"{hashlib.sha256(bytes([n])).hexdigest()}==1\n" for n in range(100))
    name = packages.checksum(text)
    sizes = [
        len(collection.content([(sample(f"{n:016x}", packages=name), "") for n in range(runs)], package_lists=lists))
        for runs in (1, 1000)
        for lists in ({}, {name: text})
    ]
    assert sizes[1] - sizes[0] > len(text) / 2 and sizes[3] - sizes[2] < 1.1 * (sizes[1] - sizes[0])
    records = [(sample(packages=NAME), "")]
    path = tmp_path / "all.parquet"
    for text in (OTHER, "jax==0.10.0\nno line\n", "x" * (2**20 + 1)):
        path.write_bytes(collection.content(records, package_lists={NAME: text}))
        with pytest.raises(AbsentError, match=f"no list of packages with the checksum {NAME}"):
            open_store(path).packages(NAME)
        assert open_store(path).all() == [records[0][0]]


def test_records_without_a_list_are_collected_as_before(tmp_path, printed, refused):
    results = stored(tmp_path / "results", "")
    out = collect(tmp_path / "all.parquet", results)
    assert "package_list" not in pq.read_schema(out).names and collection._read_packages(out) == {}
    assert open_store(out).all() == Store(results).all() and "packages" not in open_store(out).all()[0].to_json()
    assert "packages" not in printed("show", "000", "--results", out)
    error = refused("show", "000", "--packages", "--results", out)
    assert "before records named all installed packages" in error and error.count("\n") == 1


def test_show_says_how_many_packages_there_were_and_lists_them(tmp_path, printed):
    results = stored(tmp_path / "results", LIST)
    assert f"{NAME} (2 installed: --packages lists them)" in printed("show", "000", "--results", results)
    for source in (results, collect(tmp_path / "all.parquet", results)):
        assert printed("show", "000", "--packages", "--results", source) == LIST
        of_json = json.loads(printed("show", "000", "--packages", "--json", "--results", source))
        assert of_json == gpbench.load_run("000", results=source).packages
    assert gpbench.load_run("000", results=results).packages == {"jax": "0.10.0", "scipy": "1.17"}


DAMAGES = {"another list": OTHER.encode(), "no text": b"\xff\x00", "a line more": LIST.encode() + b"evil==1\n"}
DAMAGES |= {"nothing": b"", "too long": LIST.encode() * 60_000, None: None}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_wrong_or_missing_list_is_one_line_and_no_obstacle(damage, tmp_path, capsys, refused, streams):
    results = stored(tmp_path / "results", LIST, LIST, OTHER)
    path = results / "packages" / f"{NAME}.txt"
    path.unlink() if damage is None else path.write_bytes(DAMAGES[damage])
    reason = f"no list of packages with the checksum {NAME}" if damage is None else str(path)
    error = refused("show", "000", "--packages", "--results", results)
    assert reason in error and error.count("\n") == 1
    assert main(["show", "000", "--results", str(results)]) == 0 and reason in capsys.readouterr().out
    error = streams("table", "--results", results, "--out", tmp_path / "crate.zip").err
    assert reason in error and error.count("without packages") == 1
    with zipfile.ZipFile(tmp_path / "crate.zip") as archive:
        assert [name for name in archive.namelist() if name.startswith("packages")] == [f"packages/{OTHER_NAME}.txt"]
    out = collect(tmp_path / "all.parquet", results)
    assert reason in capsys.readouterr().err and collection._read_packages(out) == {OTHER_NAME: OTHER}
    assert open_store(out).all() == Store(results).all()
    stored(results, LIST)  # the next run in that environment mends it
    Store(results).write(sample("9" * 16, packages=NAME), {}, {}, package_list=LIST)
    assert Store(results).packages(NAME) == LIST


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", "A" * 16, "0" * 17, "\x1b[31m" + "0" * 11])
def test_the_checksum_of_a_record_leads_to_no_other_file(name, tmp_path, new_file):
    new_file(tmp_path / "results" / "secret.txt", LIST)
    with pytest.raises(AbsentError) as raised:
        Store(tmp_path / "results").packages(name)
    assert str(raised.value).isprintable()


def test_facts_are_json_and_a_control_character_is_no_version():
    for text in ("a==1\x1b[2J\n", "a==1\x1cb==2\n", "a==1\r\n", "a==1 2\n", "A==1\n", "a=1\n", "\n"):
        with pytest.raises(ValueError, match="no NAME==VERSION"):
            packages.verified(text.encode(), packages.checksum(text))
    facts = environment.facts(device="cpu", precision="float64")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["device"] == "cpu" and facts["precision"] == "float64"
    assert facts["versions"]["gpbench"] == gpbench.__version__ and facts["versions"]["numpy"]
    assert facts["host"]["cores"] >= 1 and facts["host"]["memory_gib"] > 0 and facts["host"]["cpu"]
    assert facts["created"].endswith("+00:00")


def test_of_several_folders_the_one_with_a_whole_list_answers(tmp_path, printed):
    here, there = (stored(tmp_path / name, LIST) for name in ("here", "there"))
    (here / "packages" / f"{NAME}.txt").write_text(OTHER)
    assert printed("show", "000", "--packages", "--results", here, "--results", there) == LIST
    assert collection._read_packages(collect(tmp_path / "all.parquet", here, there)) == {NAME: LIST}
    (there / "packages" / f"{NAME}.txt").unlink()
    with pytest.raises(ConfigError, match="the checksum differs"):
        gpbench.load_run("000", results=[here, there]).packages  # noqa: B018


@pytest.fixture
def checkout(tmp_path, monkeypatch, new_file):
    monkeypatch.setattr(environment, "_ROOT", tmp_path)

    def git(*args):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    new_file(tmp_path / "gpbench" / "a.py", "1")
    git("add", ".")
    git("commit", "-m", "a")
    return tmp_path


def test_changed_code_makes_a_checkout_dirty_and_a_package_in_another_has_no_commit(checkout, monkeypatch):
    (checkout / "table.csv").write_text("a result")
    assert len(environment.commit()["commit"]) == 40 and environment.commit()["dirty"] is False
    (checkout / "gpbench" / "new.py").write_text("2")
    assert environment.commit()["dirty"] is True
    monkeypatch.setattr(environment, "_ROOT", checkout / "gpbench")
    assert environment.commit() == {"commit": None, "dirty": None}


def test_a_copy_of_the_code_without_its_history_takes_the_commit_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "_ROOT", tmp_path)
    monkeypatch.setenv("GPBENCH_COMMIT", "a" * 40)
    assert environment.commit() == {"commit": "a" * 40, "dirty": None}


ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> str:
    """The output of a git command here; skips the test where there is no whole history."""
    ended = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip("no git, or no checkout: the history is not known")
    return ended.stdout


def test_every_committed_record_names_a_commit_of_this_history_or_says_that_it_is_dirty():
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a shallow clone: the history is not known")
    history = set(git("rev-list", "HEAD").split())
    tables = [pq.read_table(path, columns=["record"]) for path in ROOT.glob("results/*/records.parquet")]
    records = [json.loads(text) for table in tables for text in table["record"].to_pylist()]
    assert len(records) > 6000
    assert not Counter(r["commit"] for r in records if r["commit"] and r["commit"] not in history and not r["dirty"])
