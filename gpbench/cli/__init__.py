"""The command `gpbench`: one module for each verb, imported only when the verb is used."""

import argparse
import errno
import importlib
import io
import keyword
import os
import sys
from typing import Any, NoReturn

from gpbench.errors import (
    ConfigError,
    GpbenchError,
    Stopped,
    StorageError,
    exit_error,
    failure,
    nearest,
    printable,
    shows_traceback,
)

__all__ = ["VERBS", "main", "module_of"]

VERBS = {
    "run": "train and score methods on data sets; sweeps with -m",
    "reproduce": "run the missing jobs of a paper's table or figure, and make it",
    "table": "tables of recorded results beside the published values",
    "plot": "figures of papers from recorded runs",
    "rank": "average ranks of methods over data sets, as table and diagram",
    "leaderboard": "scores of methods within a budget of seconds; the place of your own",
    "best": "which methods win at data of some task and size, and how sure that is",
    "compare": "two methods, protocols, presets or commits, split by split",
    "power": "which difference recorded splits can show, and how many they need",
    "verify": "whether recorded runs support what the papers assert",
    "report": "a static site of all recorded runs",
    "import": "score and record predictions of other programs",
    "collect": "merge the records of several folders into one Parquet file",
    "ls": "methods, data sets, protocols, experiments, runs",
    "show": "one recorded run",
    "rm": "delete recorded runs",
    "predict": "predict new rows with a recorded run",
    "data": "fetch and verify data sets",
    "check": "whether a method, a kernel, a likelihood or a metric does what is required of it",
    "cite": "BibTeX of methods, data sets, protocols, runs",
    "doctor": "devices, versions, folders, and missing data sets",
}

_STORAGE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ESTALE,
}
"""Errors of the operating system that a path which a user names, and the limits of a process, can meet."""

_TRAINING = {("run",), ("reproduce",), ("leaderboard", "add")}
"""First words of the commands that train."""

_LONGEST = 1500
"""Characters of a message: a word of the user's in it may be of any length."""


class _Store(argparse.Action):
    """Stores the value of an option; of a repeated one all values where these are a list, as A,B.  Raises ConfigError:
    another option is repeated.
    """

    _values: Any = None

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if option_string and self._values is not None:
            if self.metavar != "A,B":
                raise ConfigError(f"{option_string} is given twice: leave one out")
            values = f"{self._values},{values}"
        self._values = values
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """An argument parser that knows no abbreviations, and whose errors are one line, without argparse's usage text."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        for name in (None, "store"):
            self.register("action", name, _Store)

    def error(self, message: str) -> NoReturn:
        """Raises ConfigError with argparse's message and a reference to --help."""
        raise ConfigError(f"{message}; see {self.prog} --help")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with the longest verb on one line: argparse ignores that verbs are indented twice."""

    def __init__(self, prog: str):
        super().__init__(prog)
        self._action_max_length = 4 + max(map(len, VERBS))


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
    """Runs one command line (`sys.argv` by default) and returns its exit code.

    A `GpbenchError` and a folder that is not writable become one line on stderr.  Any other exception is a bug and
    keeps its traceback.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as of some daemons
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal lacks is no error
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    words = sys.argv[1:] if argv is None else argv
    if _TRAINING.intersection((tuple(words[:1]), tuple(words[:2]))):
        _outlive_readers()
    try:
        return _dispatch(words)
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


def module_of(verb: str) -> Any:
    """The module of a verb, imported: `gpbench.cli.VERB`, with an underscore where VERB is a keyword of Python."""
    return importlib.import_module(f"gpbench.cli.{verb}{'_' * keyword.iskeyword(verb)}")


def _dispatch(argv: list[str]) -> int:
    from gpbench import __version__

    if argv[:1] == ["help"]:  # git and others have it, so people type it
        argv = [*argv[1:], "--help"]
    verb = next((word for word in argv if not word.startswith("-")), None)
    if argv[:1] in (["-h"], ["--help"]):
        verb = None
    if verb is not None and verb not in VERBS:
        raise ConfigError(f"no verb {verb!r}; {nearest(verb, VERBS)}")
    parser = _Parser(
        prog="gpbench",
        description="Scalable Gaussian-process methods beside the numbers their papers published.",
        formatter_class=_Help,
        epilog="gpbench VERB --help describes a verb, for example gpbench run --help",
    )
    parser.add_argument("--version", action="version", version=f"gpbench {__version__}")
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB")
    if verb is None:
        for name, text in VERBS.items():
            subparsers.add_parser(name, help=text)
    else:
        module_of(verb).add_parser(subparsers)
    try:
        args, rest = parser.parse_known_args(argv)
    except SystemExit:  # --help and --version have printed
        sys.stdout.flush()
        raise
    if rest:  # argparse parses only the first of several groups of words, as in `run a=1 -m b=2`
        words: Any = getattr(args, "overrides", getattr(args, "names", None))
        unknown = [word for word in rest if word.startswith("-") or words is None]
        if unknown:
            hint = "settings are words, as in dataset=heart run.jobs=2; " if hasattr(args, "overrides") else ""
            if hasattr(args, "method") and not unknown[0].startswith("-"):
                hint = "names of methods and data sets are --method A,B and --dataset A,B; "
            raise ConfigError(
                f"unrecognized: {' '.join(unknown)}; {hint}see gpbench {verb + ' ' if verb else ''}--help"
            )
        words.extend(rest)
    if verb is None:
        parser.print_help()
        return 0
    try:
        code = args.func(args)
    except SystemExit as error:  # of a module of the user's: ours return their codes
        raise exit_error(error) from error
    sys.stdout.flush()  # raises BrokenPipeError here rather than at exit
    return code


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
    print(f"gpbench: {printable(text)}", file=sys.stderr)
    return error.exit_code
