"""The tutorial: its files are those of docs/examples, and its commands run in their order."""

import shlex

from test_commands import ROOT, blocks
from test_examples import EXAMPLES, gpbench

PAGE = ROOT / "docs" / "tutorial" / "README.md"
OWN = {"quadratic.py": "python", "method/quadratic.yaml": "yaml"}


def test_the_tutorial_shows_the_files_as_they_are():
    for name, language in OWN.items():
        assert blocks(PAGE, language) == [(EXAMPLES / name).read_text()]


def test_the_users_class_of_the_tutorial_breaks_no_rule(tmp_path):
    assert "broken" not in gpbench(tmp_path, "check", "quadratic", "--config-dir", str(EXAMPLES))


def test_every_command_of_the_tutorial_runs_in_its_order(tmp_path):
    for name, language in OWN.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(blocks(PAGE, language)[0])
    lines = [line.partition(" #")[0] for block in blocks(PAGE) for line in block.splitlines()]
    printed = [gpbench(tmp_path, *shlex.split(line)[1:]) for line in lines if line.startswith("gpbench ")]
    assert len(printed) > 10
    (shown,) = blocks(PAGE, "text")
    ranks = [line.split() for line in printed[-2].splitlines()]
    assert all(line.split() in ranks for line in shown.splitlines())
