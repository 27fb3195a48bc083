"""The static site: a page for each paper, experiment, data set, method and cell, from records alone.

`facts` holds the input, `views` formats entries for tables, and `pages` renders the templates, which escape texts."""

import json
from collections.abc import Iterable
from pathlib import Path

from gpbench.errors import ConfigError, StorageError, failure, require
from gpbench.outputs import write_whole
from gpbench.report.site.facts import Facts, PlannedExperiment
from gpbench.report.site.pages import render_pages

__all__ = ["Facts", "PlannedExperiment", "check_folder", "render_pages", "write_site"]

_LIST = ".gpbench-site.json"  # lists the files of the site; a folder with this file is a site


def check_folder(out: Path) -> None:
    """Raises ConfigError unless `out` is absent, empty or an earlier site."""
    is_free = not out.exists() or (out.is_dir() and ((out / _LIST).is_file() or not any(out.iterdir())))
    problem = "has files that are not part of a report" if out.is_dir() else "is a file"
    require(is_free, f"{out} {problem}; name another folder with --out DIR", ConfigError)


def write_site(out: Path, files: Iterable[tuple[str, bytes]]) -> list[Path]:
    """Writes the files, by path and content, that differ from those there; deletes an earlier site's others."""
    check_folder(out)
    contents = dict(files)
    try:
        out.mkdir(parents=True, exist_ok=True)
        before = _listed(out)
        # The list is written before the files, so that an interrupted report is recognised.
        _write(out / _LIST, {*before, *contents})
        for name, content in contents.items():
            if not (out / name).is_file() or (out / name).read_bytes() != content:
                write_whole(out / name, content)
        for name in set(before) - set(contents):
            (out / name).unlink(missing_ok=True)
        _write(out / _LIST, contents)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {failure(error, 'name another folder with --out DIR')}") from error
    return [out / name for name in contents]


def _write(file: Path, names: Iterable[str]) -> None:
    write_whole(file, json.dumps(sorted(names), indent=0).encode())


def _listed(out: Path) -> list[str]:
    """The files of an earlier site, without paths that lead out of the folder."""
    try:
        names = json.loads((out / _LIST).read_bytes())
    except (OSError, ValueError):
        return []
    inside = out.resolve()
    return [name for name in names if isinstance(name, str) and (out / name).resolve().is_relative_to(inside)]
