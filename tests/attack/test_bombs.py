"""Small files that stand for far more than memory holds are refused in one line, within 500 MB and 100 seconds."""

import json
import re
import shutil
from pathlib import Path

import bombs
import forked
import pyarrow as pa
import pytest
import yaml

from gpbench.cli import main
from gpbench.records import folder as files

ROOT = Path(__file__).resolve().parents[2]
MOST = 500_000_000 // 1024
"""KiB of a whole command."""


def refused(folder: Path, line: str, *words, code: int | None = None) -> None:
    """Runs a command in a process of its own and checks its end, its one line and its memory."""
    own = {f"GPBENCH_{name}": str(folder / name.lower()) for name in ("RESULTS", "STORE", "CACHE")}
    environment = {**forked.os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_TEST_MEMORY": str(6 * 10**9), **own}
    ended, _, err, peak = forked.measured([*map(str, words)], folder, environment, 100)
    said = [text for text in err.splitlines() if not re.match("gpbench: (wrote|warning)", text)]
    assert re.search(line, "".join(said[:1])) and "Traceback" not in err and len(err) < 3000, err[-3000:]
    assert ended == code if code is not None else (ended in (2, 3) and len(said) == 1)
    assert peak < MOST, f"{peak / 1000:.0f} MiB"


RUN = ("method=constant", "split=0")


@pytest.mark.parametrize("name", bombs.TABLES)
def test_a_table_of_few_bytes(name, tmp_path):
    make, line = bombs.TABLES[name]
    (tmp_path / name).write_bytes(make())
    refused(tmp_path, line, "run", f"dataset={name}", *["target=y"] * (not name.endswith(".svm")), *RUN)


def card(folder: Path, **entries) -> None:
    (folder / "dataset").mkdir()
    content = {"name": "mine", "task": "regression", **entries}
    (folder / "dataset" / "mine.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.mark.parametrize("name", bombs.CARDS)
def test_a_table_of_few_bytes_with_a_card(name, tmp_path):
    make, source, line = bombs.CARDS[name]
    (tmp_path / name).write_bytes(make())
    (tmp_path / "long.csv").write_text(f"s\n{'x' * 10**6}\n" + 3000 * "train\n")
    card(tmp_path, sources=[{"kind": "file", "path": name, "target": "y", **source}])
    refused(tmp_path, line, "run", "dataset=mine", "--config-dir", tmp_path, *RUN)


SPLITS = {
    "sets": {"sets": {"random90": 10**9}},
    "repeats": {"set": "kfold", "repeats": 10**9},
    "folds": {"set": "temporal", "folds": 10**9},
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_card_of_a_thousand_million_splits(name, tmp_path):
    card(tmp_path, sources=[{"kind": "sklearn", "loader": "diabetes"}], splits=SPLITS[name])
    words = ("run", "dataset=mine", "split=all", "method=constant", "--config-dir", tmp_path)
    refused(tmp_path, "splits: one set has .*000,000,000, and 10,000 are the most: lower", *words)


READS = {
    "must be breast_cancer, ": {"loader": "svmlight_file", "arguments": {"f": "/dev/zero"}},
    "=files: must be breast_c": {"loader": "files", "arguments": {"container_path": "."}},
    "must be a mapping with `scaled` of": {"loader": "iris", "arguments": {"as_frame": True}},
    "a whole number from 1 to 2,097,152": {"generator": "sines", "seed": 0, "rows": 10**8},
    "at most 524,288 rows": {"generator": "kuka_sim", "seed": 0, "rows": 2**21},
}


@pytest.mark.parametrize("line", READS)
def test_a_card_that_reads_or_makes_what_it_likes(line, tmp_path):
    card(tmp_path, sources=[{"kind": "sklearn" if "loader" in READS[line] else "generated", **READS[line]}])
    refused(tmp_path, line, "run", "dataset=mine", "--config-dir", tmp_path, *RUN)


def test_a_card_of_as_many_rows_as_are_made_and_predictions_of_more_bytes_than_are_read(tmp_path):
    card(tmp_path, sources=[{"kind": "generated", "generator": "kuka_sim", "seed": 0, "rows": 2**19}], outputs=7)
    refused(tmp_path, "", "data", "verify", "mine", "--config-dir", tmp_path, code=0)
    with open(tmp_path / "their.csv", "wb") as file:
        file.truncate(3 * 10**9)
    refused(tmp_path, "the file has 3,000,000,000 bytes, and 268,435,456 are the most: split it", "import", "their.csv")


@pytest.mark.parametrize("name", ["packed", "plain", "stated"])
def test_a_download_without_end(name, tmp_path):
    with bombs.served() as at:
        source = {"kind": "official", "at": at, "files": {f"{name}.csv": None}, "reader": "table", "target": "y"}
        card(tmp_path, sources=[source])
        refused(
            tmp_path, "is larger than [0-9,]+ bytes: download it", "run", "dataset=mine", "--config-dir", tmp_path, *RUN
        )


def imported(rows: int, dataset: str, mean: pa.Array | None = None) -> bytes:
    texts = {"dataset": bombs.same(dataset, rows), "method": bombs.same("x", rows)}
    return bombs.parquet(rows, **texts, split=pa.nulls(rows), row=pa.nulls(rows), mean=mean or pa.nulls(rows))


@pytest.mark.parametrize(
    "content, line",
    [
        (lambda: imported(2 * 10**7, "x"), "bytes of memory, and .*: save it as csv"),
        (lambda: imported(3000, "x" * 10**6), "bytes of memory, and .*: save it as csv"),
        (lambda: imported(1, "x", pa.array([[0.0] * 9])), "columns left out, since a cell is no number or text: mean"),
    ],
)
def test_predictions_of_another_program(content, line, tmp_path):
    (tmp_path / "theirs.parquet").write_bytes(content())
    refused(tmp_path, line, "import", "theirs.parquet")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    results = tmp_path_factory.mktemp("saved")
    words = ["dataset=sinc", "method=linear", f"run.results={results}", "run.save=true", "run.predictions=true"]
    assert main(["run", *words]) == 0
    return next((results / "runs").iterdir())


def put(saved: Path, folder: Path, name: str, content: bytes) -> None:
    """A results folder with the saved run, of which one file has another content, and is sealed."""
    run = folder / "results" / "runs" / saved.name
    shutil.copytree(saved, run)
    (run / name).write_bytes(content)
    record, _ = files.unseal((run / files.RECORD).read_bytes())
    others = {other.name: other.read_bytes() for other in run.iterdir() if other.name != files.RECORD}
    (run / files.RECORD).write_bytes(files.seal(record, others))
    (folder / "rows.csv").write_text("0.5\n")


@pytest.mark.parametrize("name", bombs.RECORDS)
def test_a_file_of_a_record(name, saved, tmp_path):
    file, make, (verb, *options), line = bombs.RECORDS[name]
    put(saved, tmp_path, file, make())
    refused(tmp_path, line, verb, saved.name, *options, code={"show": 0}.get(verb, 2))


def test_a_record_of_a_network_that_is_larger_than_memory(tmp_path):
    words = ["dataset=sinc", "method=ensemble", "method.steps=1", "run.save=true", f"run.results={tmp_path}"]
    assert main(["run", *words]) == 0
    (saved,) = (tmp_path / "runs").iterdir()
    config = yaml.safe_load((saved / files.CONFIG).read_text())
    config["method"]["hidden"] = [20_000, 20_000]
    put(saved, tmp_path, files.CONFIG, yaml.safe_dump(config).encode())
    refused(tmp_path, "its state is of another version", "predict", saved.name, "--data", "rows.csv", "--no-header")


def test_a_record_that_stands_a_million_times_in_a_collection(saved, tmp_path):
    """An object of two million numbers is parsed in half a second."""
    text = (saved / files.RECORD).read_text()
    for record in (text, json.dumps([1] * 10**5)):
        columns = {"id": bombs.same("x", 2**20), "record": bombs.same(record, 2**20), "config": bombs.same("", 2**20)}
        (tmp_path / "all.parquet").write_bytes(bombs.parquet(1, **columns))
        refused(tmp_path, "a column unpacks to .* are the most", "ls", "runs", "--results", "all.parquet")
