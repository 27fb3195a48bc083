"""docs/reference/errata.md names the tests that there are, and all of them."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "reference" / "errata.md").read_text()


def test_the_page_names_every_test_of_an_erratum_and_no_other():
    written = {
        name
        for path in HERE.glob("test_*_errata.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    assert set(re.findall(r"`(test_\w+)`", PAGE)) == written


def test_the_page_names_the_file_of_every_paper():
    for path in HERE.glob("test_*_errata.py"):
        assert f"`tests/errata/{path.name}`" in PAGE
