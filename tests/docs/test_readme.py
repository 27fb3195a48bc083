"""README.md and docs/: their lengths, the output of commands, and the verdicts on each paper's claims."""

import doctest
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_commands import PAGES, ROOT, blocks
from test_examples import call, gpbench

from gpbench.api import tables
from gpbench.claims import SCALE, definition

README = ROOT / "README.md"
MADE = {"settings.md", "datasets.md", "experiment_list.md"}
ROWS = re.findall(r"^\| \[(\w+)\]\(.*\| ([^|]+) \|$", README.read_text(), re.MULTILINE)
VERDICTS = [grade.word for grade in SCALE]


def shown() -> list[tuple[Path, str, str]]:
    """Every command of a block `console`, with its page and the output below it."""
    parts = re.compile(r"^\$ gpbench (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
    return [(page, *found) for page in PAGES for block in blocks(page, "console") for found in parts.findall(block)]


def claims(paper: str) -> str:
    """The cell of a paper's claims: how many have each verdict."""
    verdicts: Sequence = tables.verify(paper, results=sorted(ROOT.glob("results/*/records.parquet"))).data
    counts = {word: sum(row["verdict"] == word for row in verdicts) for word in VERDICTS}
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def test_the_readme_has_at_most_150_lines():
    assert len(README.read_text().splitlines()) <= 150


@pytest.mark.parametrize("drawer, most", [("tutorial", 1_200), ("how-to", 5_700), ("reference", 8_700)])
def test_the_documentation_stays_short(drawer, most):
    texts = [page.read_text() for page in PAGES if page.parent.name == drawer and page.name not in MADE]
    prose = (re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in texts)
    assert sum(len(re.findall(r"[^\W\d_]{2,}", text)) for text in prose) <= most


@pytest.mark.parametrize("page, command, output", shown(), ids=[command for _, command, _ in shown()])
def test_a_command_prints_what_the_page_shows(page, command, output, tmp_path, monkeypatch):
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    prints = call if command.startswith("run") else gpbench  # quicker where JAX is imported
    printed = prints(tmp_path, *command.split())
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(output, printed, options), printed


@pytest.mark.parametrize("paper, verdicts", ROWS, ids=[paper for paper, _ in ROWS])
def test_the_row_of_a_paper_has_the_verdicts_on_its_claims(paper, verdicts):
    assert claims(paper) == verdicts


def test_every_paper_has_a_row_whose_verdicts_are_of_all_its_claims():
    assert sorted(paper for paper, _ in ROWS) == sorted(definition.files())
    for paper, verdicts in ROWS:
        assert sum(map(int, re.findall(r"\d+", verdicts))) == len(definition.read(paper))
