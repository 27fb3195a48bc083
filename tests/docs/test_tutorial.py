"""The tutorials: their files are those of docs/examples, and their commands run in their order."""

import csv
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_commands import ROOT, blocks
from test_examples import EXAMPLES, gpbench

from gpbench.cli import main

METHOD = ROOT / "docs" / "tutorial" / "README.md"
TABLE = ROOT / "docs" / "tutorial" / "own_table.md"
OWN = {METHOD: {"quadratic.py": "python", "method/quadratic.yaml": "yaml"}, TABLE: {"dataset/flats.yaml": "yaml"}}
VERDICTS = {"open", "worse", "better"}


def commands(page: Path) -> list[list[str]]:
    """The words of each command `gpbench ...` of a page, in order."""
    lines = [line.partition(" #")[0] for block in blocks(page) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gpbench ")]


def write_files(page: Path, folder: Path) -> None:
    for name, language in OWN[page].items():
        path = folder / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(blocks(page, language)[0])
    if page == TABLE:
        assert "cp docs/examples/dataset/flats.csv mine/dataset\n" in blocks(page)[0]
        shutil.copy(EXAMPLES / "dataset" / "flats.csv", folder / "mine" / "dataset")
        (folder / "new.csv").write_text(blocks(page, "text")[-1])


def predicted(folder: Path) -> list[float]:
    with (folder / "rents.csv").open() as lines:
        return [float(row["mean"]) for row in csv.DictReader(lines)]


def test_a_tutorial_shows_the_files_as_they_are():
    for page, files in OWN.items():
        assert all(blocks(page, language)[0] == (EXAMPLES / name).read_text() for name, language in files.items())
    lines = (EXAMPLES / "dataset" / "flats.csv").read_text().splitlines(keepends=True)
    assert blocks(TABLE, "text")[0] == "".join(lines[:2])


def test_every_command_of_the_tutorial_runs_in_its_order(tmp_path):
    write_files(METHOD, tmp_path)
    printed = [gpbench(tmp_path, *words) for words in commands(METHOD)]
    assert len(printed) > 10
    (shown,) = blocks(METHOD, "text")
    ranks = [line.split() for line in printed[-2].splitlines()]
    assert all(line.split() in ranks for line in shown.splitlines()), printed[-2]


def test_a_table_becomes_a_ranking_and_predictions_by_the_commands_of_the_tutorial(tmp_path, monkeypatch):
    """With quick methods and two splits, in this process; the next test runs the commands as they are."""
    write_files(TABLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("RESULTS", "STORE"):
        monkeypatch.setenv(f"GPBENCH_{name}", str(tmp_path / name.lower()))
    quick = {"method=gpr": "method=constant", "gpr": "constant", "svi": "linear", "split=all": "split=[0,1]"}
    for words in commands(TABLE):
        if "shipped" in words:
            continue
        if "method=linear" in words:
            words[words.index("split=0")] = "split=[0,1]"
        each = ["method=linear", "method=constant"] if "-m" in words else [""]
        for method in each:
            used = [method if word.startswith("method=linear,") else quick.get(word, word) for word in words]
            assert main([word for word in used if word != "-m"]) == 0, words
    assert len(predicted(tmp_path)) == 2 and all(200 < rent < 2500 for rent in predicted(tmp_path))


def test_every_command_of_the_tutorial_about_a_table_runs_in_its_order(tmp_path, monkeypatch):
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    write_files(TABLE, tmp_path)
    printed = {" ".join(words): gpbench(tmp_path, *words) for words in commands(TABLE)}
    ranking = [line.split() for line in printed["best --data flats --config-dir mine"].splitlines()]
    for shown in map(str.split, blocks(TABLE, "text")[1].splitlines()[2:]):
        (line,) = [line for line in ranking if line[:1] == shown[:1] and "has" not in line]
        assert [word for word in line if word in VERDICTS] == [word for word in shown if word in VERDICTS]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": "results", "GPBENCH_STORE": "store"}
    code = blocks(TABLE, "python")[0] + "print(*mean)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, check=True, capture_output=True, text=True
    )
    assert [float(word) for word in done.stdout.split()] == pytest.approx(predicted(tmp_path))
