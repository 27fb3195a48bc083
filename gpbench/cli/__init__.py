"""The command `gpbench`: one module per verb, and only the verb that is asked for is imported."""

import argparse
import errno
import importlib
import os
import sys
from typing import NoReturn

from gpbench.errors import ConfigError, GpbenchError, Stopped, StorageError, nearest

VERBS = {
    "run": "train and score methods on data sets; sweeps with -m",
    "reproduce": "run what is missing of a paper's table or figure, and make it",
    "table": "tables of recorded results beside the published ones",
    "plot": "a paper's figure from the recorded runs",
    "rank": "average ranks of methods over data sets, as table and diagram",
    "compare": "two methods, protocols, presets or commits, split by split",
    "report": "a static site of all that is recorded",
    "collect": "records of several folders in one Parquet file",
    "ls": "methods, data sets, protocols, experiments, runs",
    "show": "one recorded run",
    "data": "fetch and verify data sets",
    "check": "whether a method keeps what training counts on",
    "cite": "BibTeX of methods, data sets, protocols, runs",
    "doctor": "devices, versions, folders, and what is missing",
}

_STORAGE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line: argparse would print its usage text before them."""

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError with argparse's message and where the help is."""
        raise ConfigError(f"{message}; see {self.prog} --help")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with the longest verb on one line: argparse forgets that verbs are indented twice."""

    def __init__(self, prog: str):
        super().__init__(prog)
        self._action_max_length = 4 + max(map(len, VERBS))


def main(argv: list[str] | None = None) -> int:
    """Run one command line (`sys.argv` by default) and return its exit code.

    A `GpbenchError` and a folder that cannot be written become one line on stderr.  Any other exception is a bug of
    ours and keeps its traceback.
    """
    try:
        return _dispatch(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:  # `gpbench ls | head`: leave quietly, and spare the interpreter its flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return _complain(Stopped("stopped"))
    except GpbenchError as error:
        return _complain(error)
    except OSError as error:
        if error.errno not in _STORAGE:
            raise
        return _complain(StorageError(f"{error.filename or 'cannot write'}: {error.strerror}"))


def _dispatch(argv: list[str]) -> int:
    from gpbench import __version__

    verb = next((word for word in argv if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        raise ConfigError(f"no verb {verb!r}; {nearest(verb, VERBS)}")
    parser = Parser(
        prog="gpbench",
        description="Scalable Gaussian-process methods beside the numbers their papers published.",
        formatter_class=_Help,
        epilog="gpbench VERB --help says more, for example gpbench run --help",
    )
    parser.add_argument("--version", action="version", version=f"gpbench {__version__}")
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB")
    if verb is None:
        for name, text in VERBS.items():
            subparsers.add_parser(name, help=text)
    else:
        importlib.import_module(f"gpbench.cli.{verb}").add_parser(subparsers)
    args, rest = parser.parse_known_args(argv)
    if rest:  # argparse takes only the first of several runs of words, as in `run a=1 -m b=2`
        strange = [word for word in rest if word.startswith("-") or not hasattr(args, "overrides")]
        if strange:
            raise ConfigError(f"unrecognized: {' '.join(strange)}; see gpbench {verb + ' ' if verb else ''}--help")
        args.overrides += rest
    if verb is None:
        parser.print_help()
        return 0
    code = args.func(args)
    sys.stdout.flush()  # a broken pipe shows here, inside the net, and not at exit
    return code


def _complain(error: GpbenchError) -> int:
    print(f"gpbench: {' '.join(str(error).split())}", file=sys.stderr)
    return error.exit_code
