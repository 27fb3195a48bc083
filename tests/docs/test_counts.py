"""Counts in README.md and docs/results/, and the page of what is reproduced, are those of the committed records."""

import re
from pathlib import Path

import pytest
from committed import PLANNER
from PIL import Image
from pyarrow import parquet

from gpbench.analysis.reproduction import load_reproductions, summaries
from gpbench.papers import PAPERS
from gpbench.records.collection import open_store
from gpbench.records.store import latest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "results" / "README.md")
TARGETS = {"sep": (54, 54), "aep_dgp": (55, 58), "qsgp": (6, 6)}
"""Numbers of targets met, and of targets."""


def rows(paper: str) -> list[str]:
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if re.match(rf"\| \[`?{paper}`?\]", line)]


def test_pages_and_the_badge_have_the_numbers_of_targets_and_of_runs_that_ship():
    for paper, counts in TARGETS.items():
        met = "{} of {}".format(*counts)
        assert rows(paper) and all(f"| {met}" in row for row in rows(paper))
        page = (ROOT / "docs" / "results" / f"{paper}.md").read_text(encoding="utf-8")
        assert f"targets met: {met}" in " ".join(page.split())
    met, targets = (sum(each[part] for each in TARGETS.values()) for part in (0, 1))
    badge = (ROOT / "docs" / "gallery" / "badge.svg").read_text(encoding="utf-8")
    assert f"{met} of {targets} targets reproduced" in badge and f"![{met} of {targets} t" in PAGES[0].read_text()
    files = sorted(ROOT.glob("results/*/records.parquet"))
    ids = {id for file in files for id in parquet.read_table(file, columns=["id"]).column("id").to_pylist()}
    for page in (PAGES[0], ROOT / "docs" / "reference" / "records.md"):
        assert f"{len(ids):,} runs" in page.read_text(encoding="utf-8")


def test_a_papers_page_has_the_grades_of_its_row_in_the_readme():
    """Which tests/docs/test_readme.py holds against the records."""
    table = re.findall(r"^\| (claims of|sep|svdgp|aep_dgp|gam|qsgp) \| (.*) \|$", PAGES[0].read_text(), re.MULTILINE)
    (_, header), *rows = ((name, [cell.strip() for cell in cells.split("|")]) for name, cells in table)
    assert len(rows) == 5
    for paper, numbers in rows:
        words = ", ".join(f"{n} {word}" for word, n in zip(header, numbers) if n)
        page = (ROOT / "docs" / "results" / f"{paper}.md").read_text(encoding="utf-8")
        assert f"grades the claims: {words}." in " ".join(page.split())


def test_the_numbers_of_targets_are_those_of_the_records():
    records = latest(record for file in ROOT.glob("results/*/records.parquet") for record in open_store(file).all())
    found = summaries(load_reproductions(records))
    assert {one.paper: (one.met, one.targets) for one in found if one.targets} == TARGETS
    counts = [sum(one.outcomes[name] for one in found) for name in ("equal", "better", "worse")]
    assert [sum(counts), *counts] == [118, 82, 33, 3]
    for page in PAGES:
        assert "118 targets 82 are equal, 33 " in " ".join(page.read_text(encoding="utf-8").split())
    with Image.open(ROOT / "docs" / "gallery" / "printed.png") as picture:
        assert picture.info["Title"] == "Ours against printed: 118 numbers of the papers"


@pytest.fixture(scope="module")
def records():
    return [record for path in ROOT.glob("results/*/records.parquet") for record in open_store(path).all()]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_is_that_of_the_records(paper, records, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import reproduced

    assert reproduced.section(paper, records, PLANNER) in reproduced.PAGE.read_text()
