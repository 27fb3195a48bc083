"""Lists of installed packages, NAME==VERSION by name; records have the checksum of one.  No JAX, no NumPy."""

import contextlib
import functools
import hashlib
import re
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

from gpbench import limits
from gpbench.errors import AbsentError, ConfigError, failure, require
from gpbench.log import log
from gpbench.outputs import write_whole
from gpbench.records.record import Record

_CHECKSUM = re.compile(r"[0-9a-f]{16}")
_LINE = re.compile(r"[a-z0-9-]+==[!-~]+")
_FIELD = re.compile(r"^(Name|Version): *(.*?) *$", re.MULTILINE)
_FILES = ("METADATA", "PKG-INFO", "")
"""Files with the name of a package, as `importlib.metadata` looks for them; "" is an egg-info that is a file."""


@functools.cache
def versions() -> dict[str, str]:
    """The versions of all installed packages by normalised name (PEP 503), as this process first found them."""
    texts: dict[str, str] = {}
    for package in metadata.distributions():
        with contextlib.suppress(OSError, ValueError):  # not readable, or no text
            text = next(filter(None, map(package.read_text, _FILES)), "")
            fields = dict(_FIELD.findall(text.partition("\n\n")[0]))
            name = re.sub(r"[-_.]+", "-", fields.get("Name", "")).lower()
            if _LINE.fullmatch(f"{name}=={fields.get('Version', '')}"):
                texts.setdefault(name, fields["Version"])
    return dict(sorted(texts.items()))


def installed() -> str:
    """The list of all installed packages."""
    return "".join(f"{name}=={version}\n" for name, version in versions().items())


def checksum(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of a list."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse(text: str) -> dict[str, str]:
    """The versions in a list, by name.  Raises ValueError: a line is no NAME==VERSION."""
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        require(_LINE.fullmatch(line), f"its line {number} is no NAME==VERSION", ValueError)
    return {name: version for name, _, version in (line.partition("==") for line in lines)}


def file_name(checksum: str) -> str:
    """The name of the file of a list, in a results folder and in an archive."""
    return f"packages/{checksum}.txt"


def read(results: Path, checksum: str) -> str:
    """Reads a list.  Raises AbsentError: there is none; ConfigError: it cannot be read, or is another one."""
    path = results / file_name(checksum)
    try:
        if not _CHECKSUM.fullmatch(checksum):  # a record of others': nothing elsewhere is read
            raise FileNotFoundError
        return verified(limits.read(path, limits.PACKAGES), checksum)
    except FileNotFoundError:
        raise absent(checksum, results) from None
    except (OSError, ValueError) as error:
        reason = failure(error, first="delete it") if isinstance(error, OSError) else f"{error}; delete it"
        raise ConfigError(f"the list of packages {path} cannot be used: {reason}") from None


def verified(content: bytes, expected: str) -> str:
    """The list that a file's content is.  Raises ValueError: it is another list, or none."""
    require(content.isascii(), "it is no plain text", ValueError)
    text = content.decode()
    require(checksum(text) == expected, "it is not what was written (the checksum differs)", ValueError)
    parse(text)
    return text


def write(results: Path, text: str) -> None:
    """Writes a list into a results folder that has no whole one like it.  Raises OSError: it cannot be written."""
    try:
        read(results, checksum(text))
    except ConfigError:
        write_whole(results / file_name(checksum(text)), text.encode())


def texts(records: Iterable[Record], read: Callable[[str], str]) -> dict[str, str]:
    """The lists of these records by checksum.  One that cannot be read is left out, which a line on stderr says."""
    lists = {}
    for name in sorted({record.packages for record in records if record.packages}):
        try:
            lists[name] = read(name)
        except ConfigError as error:
            log.warning(f"without packages of some runs: {error}")
    return lists


def absent(checksum: str, source: object) -> AbsentError:
    """The error where a folder or file has no such list."""
    name = ascii(checksum)[1:-1][:60]
    mend = "copy it from where the run was made"
    return AbsentError(f"{source} has no list of packages with the checksum {name}: {mend}")
