"""A small results folder and its site, made once for the tests of a file."""

import pytest
import sites


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return sites.records(tmp_path_factory.mktemp("conf"))


@pytest.fixture(scope="module")
def results(records, tmp_path_factory):
    return sites.write(tmp_path_factory.mktemp("results"), records)


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    return sites.make(results, tmp_path_factory.mktemp("out") / "site")
