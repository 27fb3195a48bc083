"""The kernel, the likelihood and the metric of the documentation pass their checks, and the pages show them."""

import json

import pytest
from test_commands import ROOT, blocks
from test_examples import EXAMPLES, call, gpbench

FAMILIES = [
    ("kernel", "cosine", ("dataset=sinc", "method=gpr")),
    ("likelihood", "cauchit", ("dataset=wdbc", "method=svi")),
]


@pytest.mark.parametrize(("kind", "name", "words"), FAMILIES)
def test_a_family_of_ones_own_passes_the_check_and_trains(tmp_path, kind, name, words):
    assert "broken" not in call(tmp_path, "check", f"{kind}:{name}", "--config-dir", str(EXAMPLES))
    run = ["run", "--config-dir", str(EXAMPLES), "--json", *words, f"method.{kind}={name}", "method.steps=5"]
    (record,) = json.loads(call(tmp_path, *run))["records"]
    assert record["status"] == "done" and f"{kind}={name.capitalize()}" in record["setting"]


def test_the_page_shows_the_files_as_they_are():
    for kind, name in [*(family[:2] for family in FAMILIES), ("metric", "pinball")]:
        page = ROOT / "docs" / "how-to" / f"own_{kind}.md"
        assert blocks(page, "python") == [(EXAMPLES / f"{name}.py").read_text()]
        assert blocks(page, "yaml") == [(EXAMPLES / kind / f"{name}.yaml").read_text()]


def test_a_metric_of_ones_own_passes_the_check_and_stands_in_tables_without_its_folder(tmp_path):
    folder = ("--config-dir", str(EXAMPLES))
    assert call(tmp_path, "check", "metric:pinball", *folder).count("kept") == 3
    (ours,) = json.loads(call(tmp_path, "run", *folder, "--json", "dataset=coffee", "method=linear"))["records"]
    assert ours["own_metrics"]["pinball"]["better"] == "lower" and ours["metrics"]["pinball"] > 0
    assert "pinball (pinball loss at 90 %; original units; lower is better)" in gpbench(
        tmp_path, "table", "--metric", "pinball"
    )
