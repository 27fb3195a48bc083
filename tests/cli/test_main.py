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


def test_version_and_help_are_said_and_verbs_are_imported_only_when_used(tmp_path, capsys):
    assert gpbench(tmp_path, "--version")[:2] == (0, f"gpbench {__version__}\n")
    code, out, _ = gpbench(tmp_path, "--help", fake=False)
    assert code == 0 and all(f"\n    {verb} " in out for verb in cli.VERBS)
    assert cli.main([]) == 0
    assert "usage: gpbench" in capsys.readouterr().out
    code, out, _ = gpbench(tmp_path, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert code == 0 and "gpbench.cli.run" not in out


def test_an_error_is_one_line_with_its_exit_code_ctrl_c_a_stop_and_a_bug_alone_keeps_its_traceback(verb, capsys):
    for error, code, line in (
        (DataError("two\n  lines"), DataError.exit_code, "two lines"),
        (OSError(errno.ENOSPC, "why", "/some/file"), 5, "/some/file: why; free some space"),
        (OSError(errno.EACCES, "why", "/some/file"), 5, "/some/file: why"),
        (OSError(errno.EROFS, "why", "/some/file"), 5, "/some/file: why"),
        (KeyboardInterrupt(), 75, "stopped"),
    ):
        verb(_raiser(error))
        assert cli.main(["doctor"]) == code
        assert capsys.readouterr().err == f"gpbench: {line}\n"
    verb(_raiser(KeyError("a bug")))
    with pytest.raises(KeyError, match="a bug"):
        cli.main(["doctor"])
    verb(_raiser(FileNotFoundError(errno.ENOENT, "no such file", "x")))
    with pytest.raises(FileNotFoundError):
        cli.main(["doctor"])


def test_a_closed_pipe_is_quiet(tmp_path):
    process = start(tmp_path, "run", "--cfg")
    process.stdout.close()
    assert process.wait(timeout=30) in (0, 141, 2)
    assert "Traceback" not in process.stderr.read() and "Broken" not in process.stderr.read()
