"""A store of one run, for tests that damage it."""

import pytest
from damaged import write

from gpbench.records.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results")
    write(store)
    return store
