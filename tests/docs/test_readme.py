"""README.md and docs/: their lengths, the output of commands, and the grades of each paper's claims."""

import doctest
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_commands import PAGES, ROOT, blocks
from test_examples import call, gpbench

from gpbench.api import tables
from gpbench.claims import definition
from gpbench.claims.grades import SCALE

README = ROOT / "README.md"
MADE = {"settings.md", "datasets.md", "experiment_list.md"}
HEADER, *ROWS = (
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in re.search(r"^\| claims of \|(?:.*\n)(?:\|.*\n)*", README.read_text(), re.MULTILINE)[0].splitlines()
)
ROWS = {paper: dict(zip(HEADER[1:], map(int, (n or "0" for n in numbers)))) for paper, *numbers in ROWS[1:]}
"""Numbers of claims with each grade by paper, of the table in README.md."""


def shown() -> list[tuple[Path, str, str]]:
    """Every command of a block `console`, with its page and the output below it."""
    parts = re.compile(r"^\$ gpbench (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
    return [(page, *found) for page in PAGES for block in blocks(page, "console") for found in parts.findall(block)]


def test_the_documentation_stays_short():
    assert len(README.read_text().splitlines()) <= 150
    for drawer, most in {"tutorial": 1_200, "how-to": 5_800, "reference": 11_100}.items():
        texts = [page.read_text() for page in PAGES if page.parent.name == drawer and page.name not in MADE]
        prose = (re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in texts)
        assert sum(len(re.findall(r"[^\W\d_]{2,}", text)) for text in prose) <= most, drawer


@pytest.mark.parametrize("page, command, output", shown(), ids=[command for _, command, _ in shown()])
def test_a_command_prints_what_the_page_shows(page, command, output, tmp_path, monkeypatch):
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    prints = call if command.startswith("run") else gpbench  # quicker where JAX is imported
    printed = prints(tmp_path, *command.split())
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(output, printed, options), printed


@pytest.mark.parametrize("paper", definition.files())
def test_the_row_of_a_paper_has_the_grades_of_its_claims(paper):
    verdicts: Sequence = tables.verify(paper, results=sorted(ROOT.glob("results/*/records.parquet"))).data
    assert ROWS[paper] == {grade.word: sum(row["verdict"] == grade.word for row in verdicts) for grade in SCALE}


def test_every_paper_has_a_row_of_all_its_claims_which_runs_or_tests_can_decide_here():
    *papers, last = ROWS
    assert sorted(papers) == sorted(definition.files()) and last == "all"
    assert all(sum(ROWS[paper].values()) == len(definition.read(paper)) for paper in papers)
    assert ROWS["all"] == {word: sum(ROWS[paper][word] for paper in papers) for word in ROWS["all"]}
    claims = [claim for paper in definition.files() for claim in definition.read(paper)]
    assert all(claim.clauses or claim.tests or claim.elsewhere for claim in claims)
    assert "Runs or tests can decide every claim" in README.read_text()
