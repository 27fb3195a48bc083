"""What every verb prints fits the terminal, and uses the width that it has."""

import hashlib
import re

import pytest
from samples import grid, write

from gpbench.analysis.printing import aligned
from gpbench.cli import VERBS, main

SETTING = "m=25%, kernel=squared_exponential(isotropic), steps=250"
_READING = [*(f"ls {kind}" for kind in ("methods", "datasets", "protocols", "experiments", "runs")), "table", "rank"]
_READING += [
    "show --last",
    "table --dataset pima --metric all --later",
    "compare sep svi",
    "power sep svi",
    "verify sep",
]
_READING += [
    "best --task binary",
    "cite clean",
    "data ls",
    "data info kegg",
    "run dataset=wdbc method=logistic --dry-run",
]
READING = [words.split() for words in _READING]
HELP = [["--help"], *([verb, "--help"] for verb in VERBS), ["data", "fetch", "--help"]]
COPIED = re.compile(r"https?://|[0-9a-f]{40}|^ *[\w.]+: |^ *- |^  \w+ = {|^folder|::")
"""Addresses, paths, checksums, YAML and BibTeX, which are copied as they are."""


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path))

    def metrics(*place):
        value = 0.3 + int(hashlib.sha256(repr(place).encode()).hexdigest()[:4], 16) / 2**20
        return {"nll": value, "error": value / 2, "ece": 0.02, "brier": 0.1, "auc": 0.9}

    facts = {"setting": SETTING, "held_out": True, "train_rows": 690, "test_rows": 76}
    facts["versions"] = dict.fromkeys(("python", "gpbench", "jax", "numpy", "scipy", "equinox"), "1.2.3")
    return write(tmp_path, grid(("pima", "heart", "crabs"), ("sep", "svi", "gfitc"), metrics=metrics, **facts))


def check(commands, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    for words in commands:
        try:
            assert main(words) in (0, 1), words
        except SystemExit as stop:  # --help
            assert not stop.code, words
        lines = capsys.readouterr().out.splitlines()
        assert lines and not [line for line in lines if len(line) > width and not COPIED.search(line)], words


def test_no_line_is_longer_than_eighty_characters(results, monkeypatch, capsys):
    quick = ("ls", "show", "table", "data", "run")
    check([words for words in (*READING, *HELP) if words[0] in quick or words[-1] == "--help"], 80, monkeypatch, capsys)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_of_any_verb_is_longer_than_the_terminal(width, results, monkeypatch, capsys):
    check([*READING, *HELP], width, monkeypatch, capsys)


def test_columns_that_would_be_too_narrow_become_lines_and_wide_ones_stay_columns():
    header, text = ("claim", "verdict", "evidence", "says"), ("a word " * 15).strip()
    rows = [("sep/c01", "undecided", text, text), ("sep/c02", "not run", "", text)]
    narrow, wide = (aligned(header, rows, width) for width in (70, 140))
    assert narrow[0] == "sep/c01  verdict: undecided" and narrow[1].startswith("  evidence: a word")
    assert wide[0].split() == [*header] and wide[1].startswith("sep/c01  undecided  a word")
    assert max(map(len, narrow)) <= 70 and max(map(len, wide)) <= 140
    assert aligned(header, rows)[1].count(text) == 2


def test_a_short_list_of_runs_says_once_what_they_share(results, monkeypatch, printed):
    monkeypatch.setenv("COLUMNS", "80")
    table, shared = printed("ls", "runs", "--protocol", "clean").split("\n\n")
    header, *rows = table.splitlines()
    assert header.split() == ["id", "dataset", "method", "split", "metrics"] and len(rows) == 27
    assert shared.startswith("all runs: status done, setting m=25%") and "protocol clean" in shared
