"""What is said on stderr follows -q, -v, the environment, and the standard library's `logging`."""

import logging

import pytest

from gpbench.cli import main
from gpbench.log import log, set_level, warn
from gpbench.train import progress


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    yield
    monkeypatch.undo()
    set_level()


@pytest.mark.parametrize(
    ("variable", "flag", "count"),
    [("", [], 3), ("warning", [], 2), ("warning", ["-v"], 4), ("debug", ["-q"], 1), ("debug", ["--verbose"], 4)],
)
def test_a_flag_counts_before_the_environment(variable, flag, count, monkeypatch, capsys):
    monkeypatch.setenv("GPBENCH_LOG", variable)
    assert main(["run", "--cfg", *flag]) == 0
    capsys.readouterr()
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        log.log(level, "5 %s\n")
    assert capsys.readouterr().err == count * "gpbench: 5 %s\\n\n"
    assert (type(progress.make()) is progress.Progress) == (count < 3)


def test_a_level_that_there_is_not_is_refused_and_errors_are_said_whatever_the_level(monkeypatch, capsys):
    monkeypatch.setenv("GPBENCH_LOG", "loud")
    assert main(["run", "--cfg"]) == 2
    line = "gpbench: GPBENCH_LOG=loud: no such level; known are debug, error, info, warning\n"
    assert capsys.readouterr().err == line and main(["run", "split=x", "-q"]) == 2
    assert capsys.readouterr().err.startswith("gpbench: split=x: must be ")


def test_a_program_may_send_the_lines_elsewhere(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "handlers", [logging.FileHandler(tmp_path / "log")])
    warn("a doubt")
    assert (tmp_path / "log").read_text() == "warning: a doubt\n" and capsys.readouterr().err == ""
