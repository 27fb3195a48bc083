"""Errors that a user can mend: a line with cause and remedy, and an exit code.  Any other exception is a bug."""

import contextlib
import difflib
import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_MOST = 30  # largest number of names in one line


class GpbenchError(Exception):
    """A mistake or a circumstance the user can mend.  `str(error)` is the whole message, in one line."""

    exit_code = 1
    printed = ""
    """The line that the command prints, where the Python interface words it in another way."""


class ConfigError(GpbenchError):
    """A wrong name, key or value in the configuration."""

    exit_code = 2


class AbsentError(ConfigError):
    """No recorded run is one of those asked for."""


class SoleMethodError(AbsentError):
    """The recorded runs are of one method alone, where several are compared."""


class DataError(GpbenchError):
    """Data that is missing, damaged or unfit (checksum, NaN, one class only, ...)."""

    exit_code = 3


class MemoryShortage(ConfigError):
    """Work that needs more memory than is free."""


class DivergedError(GpbenchError):
    """A run that stopped being finite, or was lost to its limits; its record says so and is never averaged.

    Attributes:
        runs: the `Runs` of the call, from `gpbench.run`; else empty.
    """

    exit_code = 4
    runs: Any = ()


class StorageError(GpbenchError):
    """A folder that cannot be written: full disk, no permission."""

    exit_code = 5


class SweepError(GpbenchError):
    """Some jobs of a sweep failed; the others are done and recorded."""

    exit_code = 6


class PeerError(GpbenchError):
    """Another process of the same run is gone; run the same command to resume from the last checkpoint."""

    exit_code = 7


class ContractError(GpbenchError):
    """A method that breaks the contract of the training loop (`gpbench check`)."""

    exit_code = 8


class ClaimedError(GpbenchError):
    """Another process is training this run; the same command finds its record when that has ended."""

    exit_code = 9


class Stopped(GpbenchError):
    """Stopped at a checkpoint by SIGTERM, SIGINT, SIGHUP or `run.time_limit`; run the same command to resume."""

    exit_code = 75  # EX_TEMPFAIL of sysexits: "try again later", which job schedulers understand


def require(is_right: object, message: str, error: type[Exception] = DataError) -> None:
    """Raises an error with this message unless something is right."""
    if not is_right:
        raise error(message)


def refuse(subject: object, *faults: tuple[object, str]) -> None:
    """Raises a ConfigError, which begins with the subject, for the first of these faults whose condition holds."""
    for fault in (text for is_so, text in faults if is_so):
        raise ConfigError(f"{subject}{fault}")


@contextlib.contextmanager
def located(subject: object) -> Iterator[None]:
    """A context in which the line of every error begins with the subject."""
    try:
        yield
    except GpbenchError as error:
        raise type(error)(f"{subject}: {error}") from error


def exit_error(error: SystemExit) -> ConfigError:
    """The error for a module of the user's that tries to end the program."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    code = "" if error.code is None else " ".join(str(error.code).split())[:200]
    return ConfigError(f"line {frame.lineno} of {frame.filename} calls sys.exit({code}): raise an error there instead")


def shows_traceback() -> bool:
    """Whether GPBENCH_TRACEBACK asks for whole tracebacks."""
    return bool(os.environ.get("GPBENCH_TRACEBACK"))


def cause(error: Exception) -> Exception | None:
    """The error for `raise ... from`: itself with whole tracebacks, otherwise None."""
    return error if shows_traceback() else None


def failure(error: OSError, other: str = "", first: str = "") -> str:
    """Why a file cannot be written, and what helps: `first`, or what the reason calls for, or the `other` place."""
    reason, remedy = error.strerror or str(error), _REMEDIES.get(error.errno or 0, first)
    if isinstance(error, FileExistsError | NotADirectoryError) and (path := error.filename):
        paths = (Path(path), *Path(path).parents)
        if file := next((each for each in paths if each.exists() and not each.is_dir()), None):
            reason, remedy = f"{file} is a file, and a folder is needed there", "move the file"
    if isinstance(error, IsADirectoryError):
        reason = "it is a folder, and a file is needed there"
    return "; ".join(filter(None, [reason, ", or ".join(filter(None, [remedy, other]))]))


_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.ENAMETOOLONG: "shorten the name",
}


def nearest(name: str, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    """Hint for an unknown name: the nearest known names, as `spell` writes them, or up to 30 known ones."""
    known = sorted(known)
    folders = (f"{name}/", name.rpartition("/")[0] + "/")
    folder = next((each for each in folders if any(k.startswith(each) for k in known)), "")
    known = [k for k in known if k.startswith(folder)]
    if folder != f"{name}/":
        same = [k for k in known if k.endswith(f"/{name}") or _plain(k) == _plain(name)]  # table3: sep/table3
        begins = [k for k in known if len(name) > 2 and _plain(k).startswith(_plain(name))]  # mnist: mnist_odd_even
        if close := same or (begins if len(begins) < 4 else []) or difflib.get_close_matches(name, known, n=3):
            return f"did you mean {either(map(spell, close))}?"
    if not known:
        return "there are none"
    more = [f"and {len(known) - _MOST} more"] if len(known) > _MOST else []
    return f"known are {', '.join([*map(spell, known[:_MOST]), *more])}"


def require_known(name: str, known: Iterable[str], fault: str, error: type[Exception] = ConfigError) -> None:
    """Raises an error with the fault, which may end with a colon, and the nearest names, unless the name is known."""
    if name not in (known := [*known]):
        raise error(f"{fault}{'' if fault.endswith(':') else ';'} {nearest(name, known)}")


def _plain(name: str) -> str:
    """The name in small letters, its numbers without zeros before them: C1 and c01 are one."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.lower())


def either(names: Iterable[str], conjunction: str = "or") -> str:
    """Joins one or more names as a choice: "a", "a or b", "a, b or c"; by "and", all of them."""
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def listed(names: Iterable[str], most: int = 8) -> str:
    """Joins names, of which there may be thousands; at most so many are written."""
    names = [*names]
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[: most - 1])}, ... {names[-1]} ({len(names)})"


def as_word(value: Any) -> str:
    """Formats a value as on a command line: true, null, 0.15, nan, [0, 1], {a: 1}; texts stay as they are."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_word(entry)}" for key, entry in value.items()) + "}"
    return str(value) if isinstance(value, str | float) else json.dumps(value, default=str)


UNPRINTABLE = re.compile(  # line ends, controls of terminals and of direction, and characters without a width
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    r"""Escapes line ends, terminal controls and invisible characters of names, which must not move a cursor."""
    if text.isascii() and text.isprintable():  # as nearly all texts are
        return text
    return UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
