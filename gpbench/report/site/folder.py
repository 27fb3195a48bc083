"""Puts a site in place, file by file, and never touches what is not of the site."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from gpbench.errors import ConfigError, StorageError

_LIST = ".gpbench-site.json"
"""Which files of the folder are the site's: the mark by which a site of ours is known."""


def check(out: Path) -> None:
    """Raises ConfigError if `out` is neither absent, nor empty, nor a site of ours."""
    if out.is_dir() and ((out / _LIST).is_file() or not any(out.iterdir())):
        return
    if out.exists():
        what = "holds other things than a report" if out.is_dir() else "is a file"
        raise ConfigError(f"{out} {what} and is left as it is; name another folder with --out DIR")


def put(out: Path, files: Iterable[tuple[str, bytes]]) -> list[Path]:
    """Writes the files, each beside and renamed into place, and deletes those of an earlier report that are no more.

    A file with the same bytes is left alone.  Raises ConfigError as `check` does, and StorageError where a file cannot
    be written.
    """
    check(out)
    made = dict(files)
    try:
        out.mkdir(parents=True, exist_ok=True)
        before = _listed(out)
        # listed before they are there, so that a report which was interrupted is known again
        _write(out / _LIST, _list({*before, *made}))
        for name, content in made.items():
            _write(out / name, content)
        for name in set(before) - set(made):
            (out / name).unlink(missing_ok=True)
        _write(out / _LIST, _list(made))
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}; name another folder with --out DIR") from error
    return [out / name for name in made]


def _list(names: Iterable[str]) -> bytes:
    return json.dumps(sorted(names), indent=0).encode()


def _write(file: Path, content: bytes) -> None:
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    beside.write_bytes(content)
    beside.replace(file)


def _listed(out: Path) -> list[str]:
    """The files of an earlier report that lie in the folder, and nowhere else."""
    try:
        names = json.loads((out / _LIST).read_bytes())
    except (OSError, ValueError):
        return []
    inside = out.resolve()
    return [name for name in names if isinstance(name, str) and (out / name).resolve().is_relative_to(inside)]
