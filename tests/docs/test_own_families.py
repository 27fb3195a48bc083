"""The kernel and the likelihood of the documentation pass their checks, train, and are what the pages show."""

import json

import pytest
from test_commands import ROOT, blocks
from test_examples import EXAMPLES, gpbench

FAMILIES = [
    ("kernel", "cosine", ("dataset=sinc", "method=gpr")),
    ("likelihood", "cauchit", ("dataset=wdbc", "method=svi")),
]


@pytest.mark.parametrize(("kind", "name", "words"), FAMILIES)
def test_a_family_of_ones_own_passes_the_check_and_trains(tmp_path, kind, name, words):
    assert "broken" not in gpbench(tmp_path, "check", f"{kind}:{name}", "--config-dir", str(EXAMPLES))
    run = ["run", "--config-dir", str(EXAMPLES), "--json", *words, f"method.{kind}={name}", "method.steps=5"]
    (record,) = json.loads(gpbench(tmp_path, *run))["records"]
    assert record["status"] == "done" and f"{kind}={name.capitalize()}" in record["setting"]


@pytest.mark.parametrize(("kind", "name", "words"), FAMILIES)
def test_the_page_shows_the_files_as_they_are(kind, name, words):
    page = ROOT / "docs" / f"add_a_{kind}.md"
    assert blocks(page, "python") == [(EXAMPLES / f"{name}.py").read_text()]
    assert blocks(page, "yaml") == [(EXAMPLES / kind / f"{name}.yaml").read_text()]
