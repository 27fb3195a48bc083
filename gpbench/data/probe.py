"""Checks that the addresses of cards still answer, without downloading large files."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urljoin

from gpbench.config.cards import reader
from gpbench.data import files
from gpbench.errors import DataError

_THREADS = 8
_SMALL = 2**20  # bytes up to which a file is read and its checksum compared
_NO_HEAD = (403, 405, 501)  # answers of servers that do not know HEAD, but may know GET


@dataclass(frozen=True)
class Address:
    """A file of a card at an address.  `read` says whether gpbench can read it, or only people can."""

    dataset: str
    source: int
    url: str
    checksum: str | None
    read: bool


@dataclass(frozen=True)
class _Answer:
    """The answer of an address."""

    address: Address
    problem: str = ""  # why the file cannot be had there
    size: int | None = None  # its bytes, None where the server does not say
    redirect: str = ""  # the last address that it leads to, "" where it is the first
    compared: bool = False  # whether the checksum was compared


def addresses(card: Mapping) -> list[Address]:
    """Every file that the card has at an http(s) address."""
    return [
        Address(card["name"], k, urljoin(source["at"], name), checksum, reader(source) is not None)
        for k, source in enumerate(card["sources"])
        if source["kind"] in ("official", "copy")
        for name, checksum in source["files"].items()
    ]


def ask(addresses: Sequence[Address], timeout: float = 20.0) -> Iterator[_Answer]:
    """The answer of each address, in order: a few at once, and none waited for longer than some timeouts."""
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(lambda address: _ask(address, timeout), addresses)


def unavailable(answers: Sequence[_Answer]) -> list[str]:
    """The data sets none of whose sources has all of its files; sources that gpbench cannot read do not count."""
    good: dict[str, dict[int, bool]] = {}
    for answer in answers:
        if answer.address.read:
            sources = good.setdefault(answer.address.dataset, {})
            sources[answer.address.source] = sources.get(answer.address.source, True) and not answer.problem
    return [name for name, sources in good.items() if not any(sources.values())]


def _ask(address: Address, timeout: float) -> _Answer:
    import requests

    size, redirect, compared, problem = None, "", False, ""
    try:
        with requests.Session() as session:
            response = files.request(session, "HEAD", address.url, timeout)
            if response.status_code in _NO_HEAD:
                response.close()
                response = files.request(session, "GET", address.url, timeout, Range="bytes=0-0")
            response.close()
            if not response.ok:
                return _Answer(address, f"the server answers {response.status_code}")
            facts = response.headers
            whole = facts.get("Content-Range", "").rpartition("/")[2] or facts.get("Content-Length", "")
            is_plain = facts.get("Content-Encoding", "identity") == "identity"
            size = int(whole) if whole.isdigit() and is_plain else None
            redirect = response.url if response.url != address.url else ""
            compared = bool(address.checksum) and size is not None and size <= _SMALL
            if compared:
                content = files.download(address.url, largest=_SMALL, longest=2 * timeout, silent=timeout)
                files.check(content, address.checksum, address.url)
    except requests.RequestException as error:
        return _Answer(address, f"no answer ({type(error).__name__})")
    except DataError as error:
        problem = str(error).removeprefix(address.url).lstrip(": ")
    return _Answer(address, problem, size, redirect, compared)
