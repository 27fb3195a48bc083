"""Data files from a folder or an http(s) address, within limits, checked by sha256 or git's sha1 before parsing."""

import hashlib
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from gpbench import limits
from gpbench.config.cards import reader
from gpbench.data import archives
from gpbench.errors import DataError, require

if TYPE_CHECKING:
    import requests

LONGEST = 3600.0  # seconds of a download
_SILENT = 30.0  # seconds that a server may be silent
_REDIRECTS, _CHUNK, _THREADS = 10, 2**14, 8
_LARGEST, _SPLIT = 5 * limits.DATA // 2, "split it, or save it for `reader: mapped`"
"""Bytes of a file that is read whole, of which text takes six times the memory, and what to do with a larger one."""
_SMALL = 2**20  # bytes up to which a file that is asked for is read and its checksum compared
_NO_HEAD = (403, 405, 501)  # answers of servers that do not know HEAD, but may know GET


class Absent(DataError):
    """The file is not in this place; the next one may have it."""


def from_folder(folder: Path, name: str, sha256: str | None) -> bytes:
    """The file `name` of a folder.  Raises Absent where there is none, DataError for a wrong checksum."""
    path = folder / name
    try:
        limits.check(path.stat().st_size, _LARGEST, f"{path} has", mend=_SPLIT, error=DataError)
        archives.require_free(path.stat().st_size, str(path))
        return check(path.read_bytes(), sha256, str(path))
    except (FileNotFoundError, NotADirectoryError):
        raise Absent(f"no {name} in {folder}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def from_address(address: str, name: str, sha256: str | None) -> bytes:
    """The file `name` at an http(s) address.  Raises Absent where it does not answer, and DataError as `download`."""
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
    kind, digest = "sha256", hashlib.sha256(content)
    if expected and len(expected) == 40:
        kind, digest = "git's checksum", hashlib.sha1(b"blob %d\0" % len(content) + content)
    wrong = f"{source}: {kind} is {digest.hexdigest()}, not {expected}: damaged or another version"
    require(not expected or expected == digest.hexdigest(), wrong)
    return content


def download(
    url: str, *, largest: int = limits.DOWNLOAD, longest: float = LONGEST, silent: float = _SILENT, site: str = ""
) -> bytes:
    """Downloads a file.  Raises DataError: it is too large or slow, or a redirect leaves https or the site."""
    import requests
    import urllib3

    content, end = io.BytesIO(), time.monotonic() + longest
    mend = "download it yourself, and name it in a source of the kind `file`"
    check_size = lambda size, most: require(size <= most, f"{url} is larger than {most:,} bytes: {mend}")
    with requests.Session() as session, closing(request(session, "GET", url, silent, site)) as response:
        response.raise_for_status()
        stated = response.headers.get("Content-Length", "")
        check_size(int(stated) if stated.isdecimal() else 0, largest)
        try:
            # read1 returns the bytes that have arrived, without waiting for more
            while chunk := response.raw.read1(_CHUNK, decode_content=True):
                size = content.tell() + content.write(chunk)
                # a server may send few bytes that stand for any number of them
                check_size(size, min(largest, limits.most_unpacked(response.raw.tell())))
                late = f"{url} takes longer than {longest:,.0f} seconds: {size:,} bytes so far"
                require(time.monotonic() <= end, late)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise requests.ConnectionError(error) from error
    return content.getvalue()


def request(
    session: "requests.Session", method: str, url: str, silent: float, site: str = "", **headers: str
) -> "requests.Response":
    """The response, not read yet, of an address or of the one that it redirects to.  Raises as `download`."""
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


class _Address(NamedTuple):
    """A file of a card at an address, and the answer of its server."""

    source: int
    checksum: str | None
    read: bool  # by gpbench, and not by people alone
    name: str  # of the data set
    url: str
    problem: str | None = None  # why the file cannot be had there
    bytes: int | None = None  # None where the server does not say
    redirect: str | None = None  # the last address that it leads to, where that is another one
    checksum_compared: bool = False

    def to_json(self) -> dict[str, Any]:
        """The address and the answer as plain data."""
        return {key: value for key, value in self._asdict().items() if key not in ("source", "checksum", "read")}

    def __str__(self) -> str:
        words = [
            self.problem or "answers",
            "" if self.bytes is None else f"{self.bytes:,} bytes",
            "checksum right" if self.checksum_compared and not self.problem else "",
            f"redirects to {self.redirect}" if self.redirect else "",
            "" if self.read else "not read by gpbench",
        ]
        return f"{self.name:<16} {self.url}: {', '.join(filter(None, words))}"


def addresses(card: Mapping) -> list[_Address]:
    """Every file that the card has at an http(s) address."""
    return [
        _Address(k, checksum, reader(source) is not None, card["name"], urljoin(source["at"], name))
        for k, source in enumerate(card["sources"])
        if source["kind"] in ("official", "copy")
        for name, checksum in source["files"].items()
    ]


def ask(addresses: Sequence[_Address]) -> Iterator[_Address]:
    """The addresses with their answers, in order: a few at once, and none waited for longer than some timeouts."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(_answered, addresses)


def unavailable(answers: Sequence[_Address]) -> list[str]:
    """The data sets none of whose sources has all of its files; sources that gpbench cannot read do not count."""
    sources = {(answer.name, answer.source) for answer in answers if answer.read}
    good = {name for name, _ in sources - {(answer.name, answer.source) for answer in answers if answer.problem}}
    return [name for name in dict.fromkeys(answer.name for answer in answers if answer.read) if name not in good]


def _answered(address: _Address, timeout: float = 20.0) -> _Address:
    """The address with its answer.  Large files are not downloaded."""
    import requests

    answer, url = address, address.url
    try:
        with requests.Session() as session:
            response = request(session, "HEAD", url, timeout)
            if response.status_code in _NO_HEAD:
                response.close()
                response = request(session, "GET", url, timeout, Range="bytes=0-0")
            response.close()
        if not response.ok:
            return address._replace(problem=f"the server answers {response.status_code}")
        facts = response.headers
        whole = facts.get("Content-Range", "").rpartition("/")[2] or facts.get("Content-Length", "")
        size = int(whole) if whole.isdigit() and facts.get("Content-Encoding", "identity") == "identity" else None
        compared = bool(address.checksum) and size is not None and size <= _SMALL
        redirect = response.url if response.url != url else None
        answer = address._replace(bytes=size, redirect=redirect, checksum_compared=compared)
        if compared:
            check(download(url, largest=_SMALL, longest=2 * timeout, silent=timeout), address.checksum, url)
    except requests.RequestException as error:
        return address._replace(problem=f"no answer ({type(error).__name__})")
    except DataError as error:
        return answer._replace(problem=str(error).removeprefix(url).lstrip(": "))
    return answer
