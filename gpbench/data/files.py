"""Data files: bytes from a folder or an http(s) address, checked by sha256 before anything parses them.

A download is limited in size and time, and no redirect takes it from https to http.  Where only git knows a file its
checksum is the one of git, 40 digits: sha1 of "blob", the size and the content.
"""

import hashlib
import io
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from gpbench import limits
from gpbench.errors import DataError, require

if TYPE_CHECKING:
    import requests

LONGEST = 3600.0  # seconds of a download
_SILENT = 30.0  # seconds that a server may be silent
_REDIRECTS = 10
_CHUNK = 2**14


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
    return check(content, sha256, str(folder / name))


def from_address(address: str, name: str, sha256: str | None) -> bytes:
    """The file `name` at an http(s) address.  Raises Absent where the address does not answer, DataError for a wrong
    checksum and beyond the limits of `download`.
    """
    import requests

    url = urljoin(address, name)
    try:
        return check(download(url), sha256, url)
    except requests.RequestException as error:
        reason = f"no answer ({type(error).__name__}): check the network and try again"
        if error.response is not None:
            reason = f"the server answers {error.response.status_code}"
        raise Absent(f"{url}: {reason}") from None


def check(content: bytes, expected: str | None, source: str) -> bytes:
    """The content, if it has this checksum (None: any).  Raises DataError."""
    kind, actual = "sha256", hashlib.sha256(content).hexdigest()
    if expected and len(expected) == 40:
        kind, actual = "git's checksum", hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    right = expected in (None, "", actual)
    require(right, f"{source}: {kind} is {actual}, not {expected}: damaged or another version")
    return content


def download(
    url: str, *, largest: int = limits.DOWNLOAD, longest: float = LONGEST, silent: float = _SILENT, site: str = ""
) -> bytes:
    """Downloads a file.  Raises requests.RequestException: the address does not answer; DataError: the file is larger
    or takes longer, or a redirect leaves https or the site.
    """
    import requests
    import urllib3

    content, end = io.BytesIO(), time.monotonic() + longest
    with requests.Session() as session, closing(request(session, "GET", url, silent, site)) as response:
        response.raise_for_status()
        stated = response.headers.get("Content-Length", "")
        _require_size(url, int(stated) if stated.isdecimal() else 0, largest)
        try:
            # read1 returns the bytes that have arrived, without waiting for more
            while chunk := response.raw.read1(_CHUNK, decode_content=True):
                size = content.tell() + content.write(chunk)
                _require_size(url, size, min(largest, limits.most_unpacked(response.raw.tell())))
                late = f"{url} takes longer than {longest:,.0f} seconds: {size:,} bytes so far"
                require(time.monotonic() <= end, late)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise requests.ConnectionError(error) from error
    return content.getvalue()


def _require_size(url: str, size: int, largest: int) -> None:
    """Raises DataError for more bytes than are read; a server may send few that stand for any number of them."""
    mend = "download it yourself, and name it in a source of the kind `file`"
    require(size <= largest, f"{url} is larger than {largest:,} bytes: {mend}")


def request(
    session: "requests.Session", method: str, url: str, silent: float, site: str = "", **headers: str
) -> "requests.Response":
    """The response of an address, or of the one that it redirects to; its content is not read yet.  Raises
    requests.RequestException, DataError: as for `download`.
    """
    current, headers = url, {"Accept-Encoding": "identity", **headers}  # files are packed already, or sent as they are
    for _ in range(_REDIRECTS):
        host, parent = (str(urlsplit(address).hostname).removeprefix("www.") for address in (current, site))
        is_there = not site or f".{host}".endswith(f".{parent}")
        require(is_there, f"{url} leads to {current}, and no checksum says which file is meant")
        response = session.request(method, current, headers=headers, stream=True, timeout=silent, allow_redirects=False)
        if not response.is_redirect:
            return response
        response.close()
        before, current = current, urljoin(current, response.headers["location"])
        is_open = before.startswith("https:") and not current.startswith("https:")
        require(not is_open, f"{url} leads from https to {current}, which nothing protects on the way")
    raise DataError(f"{url} leads on more than {_REDIRECTS} times")
