"""Bytes of a data file from a folder or an address, checked by sha256 before anything parses them; archive members.

Where only git knows a file its checksum is the one of git, 40 digits: sha1 of "blob", the size and the content.

Nothing is ever extracted to disk, so a member's path can do no harm; what unpacks to more than `LARGEST` is refused.
"""

import gzip
import hashlib
import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

from gpbench.errors import DataError

LARGEST = 2**31  # bytes
# RuntimeError: encrypted, or of a compression that zipfile does not know
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)


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
    """The file `name` at an http(s) address.  It lies in a temporary folder until its checksum is known to be right.

    Raises Absent where the address does not answer, DataError for a wrong checksum or a full disk.
    """
    import pooch
    import requests

    url = urljoin(address, name)
    pooch.get_logger().setLevel("ERROR")
    download = pooch.HTTPDownloader(timeout=30)
    try:
        with tempfile.TemporaryDirectory(prefix="gpbench-") as folder:
            path = pooch.retrieve(url, known_hash=None, fname="part", path=folder, downloader=download)
            content = Path(path).read_bytes()
    except requests.RequestException as error:
        raise Absent(f"{url}: {_reason(error)}") from None
    except OSError as error:
        raise DataError(f"{url} cannot be stored: {error.strerror or error}") from None
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


def member(content: bytes, name: str) -> bytes:
    """One member of a zip or tar archive, by its name.  Raises DataError where it is absent, damaged or too large."""
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as stream:
                return _capped(stream, name)
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            if (extracted := tar.extractfile(name)) is None:  # a folder
                raise KeyError(name)
            return _capped(extracted, name)
    except KeyError:
        raise _no_member(name) from None
    except _DAMAGED as error:
        raise DataError(f"the archive is damaged: {error}") from None


def lines(content: bytes, name: str) -> Iterator[bytes]:
    """The lines of one member of a zip archive, unpacked as they are read.  Raises as `member` does."""
    size = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as packed:
            stream = io.BufferedReader(packed, 2**16)  # type: ignore[type-var]
            while line := stream.readline(LARGEST + 1 - size):
                if (size := size + len(line)) > LARGEST:
                    raise _too_large(name)
                yield line
    except KeyError:
        raise _no_member(name) from None
    except _DAMAGED as error:
        raise DataError(f"the archive is damaged: {error}") from None


def unzipped(content: bytes) -> bytes:
    """The content of a gzip file, or `content` itself where it is none."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return _capped(stream, "the gzip file")
    except _DAMAGED as error:
        raise DataError(f"the gzip file is damaged: {error}") from None


def _capped(stream, name: str) -> bytes:
    # reading one byte more than allowed, since the size an archive states may be wrong
    if len(content := stream.read(LARGEST + 1)) > LARGEST:
        raise _too_large(name)
    return content


def _too_large(name: str) -> DataError:
    return DataError(f"{name} unpacks to more than {LARGEST} bytes")


def _no_member(name: str) -> DataError:
    return DataError(f"the archive has no member {name!r}")
