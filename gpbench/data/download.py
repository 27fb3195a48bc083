"""Files at http(s) addresses, of limited size and time, that no redirect takes from https to http."""

import time
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from gpbench.errors import DataError

if TYPE_CHECKING:
    import requests

LARGEST = 2**31
"""Bytes of a download."""
LONGEST = 3600.0
"""Seconds of a download."""
SILENT = 30.0
"""Seconds that a server may be silent."""
_REDIRECTS = 10
_PART = 2**16


def download(url: str, *, largest: int = LARGEST, longest: float = LONGEST, silent: float = SILENT) -> bytes:
    """The file at an address.  Raises requests.RequestException without an answer, DataError beyond a limit."""
    import requests
    import urllib3

    with requests.Session() as session:
        content, end = bytearray(), time.monotonic() + longest
        with closing(answer(session, "GET", url, silent)) as response:
            response.raise_for_status()
            try:
                while part := response.raw.read1(_PART, decode_content=True):  # what is there, without waiting for more
                    content += part
                    if len(content) > largest:
                        raise DataError(f"{url} is larger than {largest:,} bytes")
                    if time.monotonic() > end:
                        raise DataError(
                            f"{url} takes longer than {longest:,.0f} seconds: {len(content):,} bytes so far"
                        )
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise requests.ConnectionError(error) from error
    return bytes(content)


def answer(session: "requests.Session", method: str, url: str, silent: float, **headers: str) -> "requests.Response":
    """The answer of an address or where it leads; its content is not read yet.  Raises as `download` does."""
    at = url
    for _ in range(_REDIRECTS):
        response = session.request(method, at, headers=headers, stream=True, timeout=silent, allow_redirects=False)
        if not response.is_redirect:
            return response
        response.close()
        before, at = at, urljoin(at, response.headers["location"])
        if before.startswith("https:") and not at.startswith("https:"):
            raise DataError(f"{url} leads from https to {at}, which nothing protects on the way")
    raise DataError(f"{url} leads on more than {_REDIRECTS} times")
