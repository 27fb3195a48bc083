"""Every data test has a store of its own, and no mirror unless it asks for one."""

import os
from pathlib import Path

import pytest

_MIRROR = os.environ.get("GPBENCH_MIRROR")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("GPBENCH_MIRROR", raising=False)
    monkeypatch.setenv("GPBENCH_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def mirror() -> Path:
    if not _MIRROR:
        pytest.skip("GPBENCH_MIRROR names no mirror of the data files")
    return Path(_MIRROR)
