"""Every data test has a store of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GPBENCH_STORE", str(tmp_path / "store"))
    return tmp_path / "store"
