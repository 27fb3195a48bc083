"""References of methods, data sets and protocols: BibTeX entries from references.bib.  A file names its references in a
line `cite: Yeh (1998); Adams (2015) for the splits`; the first word and the year are the key, as yeh1998."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpbench import paths, plugins
from gpbench.errors import ConfigError, nearest

GROUPS = ("method", "dataset", "protocol")


@dataclass(frozen=True)
class _Reference:
    """A work."""

    key: str  # key of its BibTeX entry
    text: str  # text by which the configuration file names it
    bibtex: str  # its BibTeX entry; "" without one
    cited_by: tuple[str, ...]  # requested names that cite it


def names(config_dirs: Sequence[Path] = ()) -> dict[str, list[Path]]:
    """The files of every method, data set and protocol, by name; a name may be in several groups."""
    files: dict[str, list[Path]] = {}
    for group in GROUPS:
        for name, path in paths.yaml_files(group, plugins.folders(config_dirs)).items():
            files.setdefault(name, []).append(path)
    return files


def references(requests: Sequence[str], config_dirs: Sequence[Path] = ()) -> list[_Reference]:
    """The works that names cite, each once, in order.  Raises ConfigError: A name is unknown."""
    files, known = names(config_dirs), entries(config_dirs)
    cited_by: dict[str, tuple[str, list[str]]] = {}
    for name in dict.fromkeys(requests):
        if name not in files and name not in known:
            raise ConfigError(f"no method, data set or protocol {name!r}; {nearest(name, files)}")
        works = [text for path in files.get(name, ()) for text in _citations(path)] or [name] * (name in known)
        for text in works:
            key = key if (key := _key_of(text)) in known else text  # keys of others may be alike
            cited_by.setdefault(key, (text, []))[1].append(name)
    return [_Reference(key, text, known.get(key, ""), tuple(by)) for key, (text, by) in cited_by.items()]


def bibtex(works: Sequence[_Reference]) -> str:
    """The entries of works, with a comment in the place of those that references.bib lacks."""
    lines = (work.bibtex or f"% no entry in references.bib for {work.text} ({_key_of(work.text)})" for work in works)
    return "\n\n".join(lines)


def _citations(path: Path) -> list[str]:
    """The works that a configuration file cites."""
    line = re.search(r"^(?:# )?cite: *(.*)$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    works = (work.strip() for work in line[1].split(";")) if line else ()
    return [work for work in works if work and work != "none"]


def _key_of(text: str) -> str:
    """The key of a work: `Rätsch, Onoda & Müller (2001)` is ratsch2001."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    first, year = re.match(r"[\w-]*", plain), re.search(r"\((\d{4}[a-z]?)\)", plain)
    return (first[0] if first else "") + (year[1] if year else "")


def entries(config_dirs: Sequence[Path]) -> dict[str, str]:
    """BibTeX entries by key; each entry ends with a brace at the start of a line."""
    bibtex: dict[str, str] = {}
    folders = plugins.folders(config_dirs)
    for file in (Path(__file__).with_suffix(".bib"), *(Path(folder) / "references.bib" for folder in folders)):
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        for entry in re.finditer(r"^@\w+\{([^,\s]+),.*?^\}", text, re.MULTILINE | re.DOTALL):
            bibtex.setdefault(entry[1], entry[0])
    return bibtex
