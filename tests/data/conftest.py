"""Every data test has a store of its own; many have a table and its card."""

from pathlib import Path

import pytest

from gpbench.data import cards, sources


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GPBENCH_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function from columns, options of the source and keys of the card to the card and the data set.

    A target y that the columns lack counts the rows.
    """
    monkeypatch.chdir(tmp_path)

    def make(columns: dict, source: dict | None = None, **keys):
        if "y" not in columns:
            columns = columns | {"y": range(len(next(iter(columns.values()))))}
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]
        Path("own.csv").write_text("\n".join(lines))
        file = {"kind": "file", "path": "own.csv", "target": "y", **(source or {})}
        card = cards.checked({"name": "own", "task": "regression", "sources": [file], **keys})
        return card, sources.load(card, store=tmp_path / "store")

    return make
