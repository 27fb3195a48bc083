"""The page of what is reproduced, made again from the committed records."""

from pathlib import Path

import pytest
from committed import PLANNER

from gpbench.papers import PAPERS
from gpbench.records.collection import open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def records():
    return [record for path in ROOT.glob("results/*/records.parquet") for record in open_store(path).all()]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_is_that_of_the_records(paper, records, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import reproduced

    assert reproduced.section(paper, records, PLANNER) in reproduced.PAGE.read_text()
