"""Bytes of a data file from a folder or an address, checked by sha256 before anything parses them.

Where only git knows a file its checksum is the one of git, 40 digits: sha1 of "blob", the size and the content.
"""

import hashlib
from pathlib import Path
from urllib.parse import urljoin

from gpbench.data.download import download
from gpbench.errors import DataError


class Absent(DataError):
    """The file is not in this place; the next one may have it."""


def from_folder(folder: Path, name: str, sha256: str | None) -> bytes:
    """The file `name` of a folder.  Raises Absent where there is none, DataError for a wrong checksum."""
    try:
        content = (folder / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise Absent(f"no {name} in {folder}") from None
    except OSError as error:
        raise DataError(f"{folder / name} cannot be read: {error.strerror}") from None
    return check(content, sha256, f"{folder / name}")


def from_address(address: str, name: str, sha256: str | None) -> bytes:
    """The file `name` at an http(s) address.

    Raises Absent where the address does not answer, DataError for a wrong checksum and beyond the limits of `download`.
    """
    import requests

    url = urljoin(address, name)
    try:
        content = download(url)
    except requests.RequestException as error:
        raise Absent(f"{url}: {_reason(error)}") from None
    return check(content, sha256, url)


def check(content: bytes, expected: str | None, where: str) -> bytes:
    """The content, if it has this checksum (None: any).  Raises DataError."""
    kind, actual = "sha256", hashlib.sha256(content).hexdigest()
    if expected and len(expected) == 40:
        kind, actual = "git's checksum", hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if expected and actual != expected:
        raise DataError(f"{where}: {kind} is {actual}, not {expected}: damaged or another version")
    return content


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status:
        return f"the server answers {status}"
    return f"no answer ({type(error).__name__}): check the network and try again"
