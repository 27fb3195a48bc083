"""The command `gpbench`: what becomes of errors and of closed streams; `gpbench.cli.verbs` has the verbs."""

import errno
import io
import os
import sys
from typing import Any

from gpbench.cli.verbs import VERBS, call
from gpbench.errors import GpbenchError, Stopped, StorageError, failure, shows_traceback
from gpbench.log import log

__all__ = ["VERBS", "main"]

_NAMES = """ENOSPC EDQUOT EROFS EACCES EPERM EISDIR ENOTDIR EEXIST ENAMETOOLONG ELOOP EFBIG EIO EMFILE ENFILE ENOMEM
ESTALE"""
_STORAGE = {getattr(errno, name) for name in _NAMES.split()}
"""Errors of the operating system that a path which a user names, and the limits of a process, can meet."""

_TRAINING = {("run",), ("reproduce",), ("leaderboard", "add"), ("leaderboard", "verify")}
"""First words of the commands that train."""

_LONGEST = 1500  # characters of a message: a word of the user's in it may be of any length


class _LossyStream(io.FileIO):
    """An output stream whose reader may go: what is then written is lost."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            return len(content)


def main(argv: list[str] | None = None) -> int:
    """Runs one command line (`sys.argv` by default) and returns its exit code; bugs keep their traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as of some daemons
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal lacks is no error
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    if "_ARGCOMPLETE" in os.environ:
        from gpbench.cli.completion import complete

        complete()
    words = sys.argv[1:] if argv is None else argv
    if _TRAINING.intersection((tuple(words[:1]), tuple(words[:2]))):
        _outlive_readers()
    try:
        code = call(words)
        sys.stdout.flush()  # raises BrokenPipeError here rather than at exit
        return code
    except BrokenPipeError:  # `gpbench ls | head`
        _give_up_stdout()
        return 141
    except KeyboardInterrupt:
        return _print_error(Stopped("stopped"))
    except GpbenchError as error:
        return _print_error(error)
    except OSError as error:
        if error.errno not in _STORAGE:
            raise
        _give_up_stdout()
        return _print_error(StorageError(f"{error.filename or 'cannot write'}: {failure(error)}"))


def _outlive_readers() -> None:
    """Lets this process go on where what it prints has nowhere to go."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is getattr(sys, f"__{name}__"):  # and nobody's own
            raw = _LossyStream(stream.fileno(), "w", closefd=False)
            form = {key: getattr(stream, key) for key in ("encoding", "errors", "line_buffering", "write_through")}
            setattr(sys, name, io.TextIOWrapper(raw if stream.write_through else io.BufferedWriter(raw), **form))


def _give_up_stdout() -> None:
    """Discards what stdout cannot take, so that the interpreter does not complain of it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: GpbenchError) -> int:
    text = " ".join((error.printed or str(error)).split())
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
    if shows_traceback():
        import traceback

        traceback.print_exception(error)
    log.error(text)
    return error.exit_code
