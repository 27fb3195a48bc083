"""What to cite for a method, a data set or a protocol: BibTeX entries from references.bib.  No JAX, no NumPy.

A configuration file says what it stands on in a line `cite: Yeh (1998); Hernández-Lobato & Adams (2015) for the
splits`, a comment in methods and protocols, whose keys are settings.  The first word and the year of each part are the
key of an entry, `yeh1998`.  `references.bib` in a folder named by `--config-dir` adds entries.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpbench import paths, plugins
from gpbench.errors import ConfigError, nearest

GROUPS = ("method", "dataset", "protocol")


@dataclass(frozen=True)
class Reference:
    """One work: `text` as the configuration file names it, `bibtex` its entry, "" where there is none.  `cited_by` are
    the names it was asked for."""

    key: str
    text: str
    bibtex: str
    cited_by: tuple[str, ...]


def names(config_dirs: Sequence[Path] = ()) -> dict[str, list[Path]]:
    """Every method, data set and protocol with its file; ours win over namesakes, and a name in two groups has two."""
    found: dict[tuple[str, str], Path] = {}
    for folder in (paths.conf_dir(), *config_dirs, *plugins.folders()):
        for group in GROUPS:
            for path in sorted((Path(folder) / group).glob("*.yaml")):
                found.setdefault((group, path.stem), path)
    files: dict[str, list[Path]] = {}
    for (_, name), path in found.items():
        files.setdefault(name, []).append(path)
    return files


def references(asked: Sequence[str], config_dirs: Sequence[Path] = ()) -> list[Reference]:
    """The works behind these names, each once, in order; the key of a work stands for itself.

    Raises ConfigError for a name that is none.
    """
    files, known = names(config_dirs), entries(config_dirs)
    texts: dict[str, str] = {}
    cited_by: dict[str, list[str]] = {}
    for name in dict.fromkeys(asked):
        if name not in files and name not in known:
            raise ConfigError(f"no method, data set or protocol {name!r}; {nearest(name, files)}")
        for text in [text for path in files.get(name, ()) for text in cited(path)] or [name] * (name in known):
            texts.setdefault(key_of(text), text)
            cited_by.setdefault(key_of(text), []).append(name)
    return [Reference(key, text, known.get(key, ""), tuple(cited_by[key])) for key, text in texts.items()]


def cited(path: Path) -> list[str]:
    """The works that a configuration file names; none where it names none."""
    line = re.search(r"^(?:# )?cite: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    parts = (part.strip() for part in line[1].split(";")) if line else ()
    return [part for part in parts if part and part != "none"]


def key_of(text: str) -> str:
    """The key of a work: `Rätsch, Onoda & Müller (2001)` is ratsch2001."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    first, year = re.match(r"[\w-]*", plain), re.search(r"\((\d{4})\)", plain)
    return (first[0] if first else "") + (year[1] if year else "")


def entries(config_dirs: Sequence[Path]) -> dict[str, str]:
    """Key -> BibTeX; each entry ends with a brace at the start of a line."""
    found: dict[str, str] = {}
    for file in (
        Path(__file__).with_suffix(".bib"),
        *(Path(folder) / "references.bib" for folder in (*config_dirs, *plugins.folders())),
    ):
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        for entry in re.finditer(r"^@\w+\{([^,\s]+),.*?^\}", text, re.MULTILINE | re.DOTALL):
            found.setdefault(entry[1], entry[0])
    return found
