"""The command itself: help, version, and one line for every user error."""

import errno
import sys
import types

import pytest
from commands import gpbench, start

from gpbench import __version__, cli
from gpbench.errors import DataError


@pytest.fixture
def verb(monkeypatch):
    """Replaces the function of `gpbench doctor`."""

    def install(func):
        monkeypatch.setitem(sys.modules, "gpbench.cli.doctor", types.SimpleNamespace(doctor=func))

    return install


def _raiser(error):
    def func():
        raise error

    return func


def test_version_is_the_packages(tmp_path):
    assert gpbench(tmp_path, "--version")[:2] == (0, f"gpbench {__version__}\n")


def test_help_names_every_verb(tmp_path):
    code, out, _ = gpbench(tmp_path, "--help", fake=False)
    assert code == 0 and all(f"\n    {verb} " in out for verb in cli.VERBS)


def test_without_a_verb_the_help_is_shown(capsys):
    assert cli.main([]) == 0
    assert "usage: gpbench" in capsys.readouterr().out


def test_verbs_are_imported_only_when_used(tmp_path):
    code, out, _ = gpbench(tmp_path, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert code == 0 and "gpbench.cli.run" not in out


def test_a_gpbench_error_is_one_line_with_its_exit_code(verb, capsys):
    verb(_raiser(DataError("two\n  lines")))
    assert cli.main(["doctor"]) == DataError.exit_code
    assert capsys.readouterr().err == "gpbench: two lines\n"


@pytest.mark.parametrize(
    ("number", "mend"), [(errno.ENOSPC, "; free some space"), (errno.EACCES, ""), (errno.EROFS, "")]
)
def test_a_folder_that_cannot_be_written_is_one_line(verb, capsys, number, mend):
    verb(_raiser(OSError(number, "why", "/some/file")))
    assert cli.main(["doctor"]) == 5
    assert capsys.readouterr().err == f"gpbench: /some/file: why{mend}\n"


def test_a_bug_keeps_its_traceback(verb):
    verb(_raiser(KeyError("a bug")))
    with pytest.raises(KeyError, match="a bug"):
        cli.main(["doctor"])
    verb(_raiser(FileNotFoundError(errno.ENOENT, "no such file", "x")))
    with pytest.raises(FileNotFoundError):
        cli.main(["doctor"])


def test_ctrl_c_is_a_stop_and_not_a_traceback(verb, capsys):
    verb(_raiser(KeyboardInterrupt()))
    assert cli.main(["doctor"]) == 75
    assert capsys.readouterr().err == "gpbench: stopped\n"


def test_a_closed_pipe_is_quiet(tmp_path):
    process = start(tmp_path, "run", "--cfg")
    process.stdout.close()
    assert process.wait(timeout=30) in (0, 141, 2)
    assert "Traceback" not in process.stderr.read() and "Broken" not in process.stderr.read()
