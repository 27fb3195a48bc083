"""RO-Crates of tables: zip files of a table, its picture, its runs, what they cite, and a description of all these.

`gpbench.report.crate_metadata` makes the description.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpbench.analysis.formats import FORMATS
from gpbench.analysis.sheets import Sheet
from gpbench.errors import ConfigError
from gpbench.outputs import output
from gpbench.papers import references
from gpbench.records import collection, packages
from gpbench.records.record import Record
from gpbench.report.crate_metadata import METADATA, RECORDS, metadata

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEXTS = {"table.md": "md", "table.csv": "csv", "table.tex": "latex"}


def write(
    path: Path,
    sheet: Sheet,
    records: Iterable[Record],
    figure: "Figure | None" = None,
    package_lists: Mapping[str, str] | None = None,
    config_dirs: Sequence[Path] = (),
) -> None:
    """Writes the crate of a table; equal runs give equal bytes.  Raises ConfigError: there are no records, or the card
    of their data is wrong; StorageError: the file cannot be written.
    """
    groups = _groups(records)
    runs = [record for group in groups for record in group]
    if not runs:
        raise ConfigError(f"{path}: no run stands in this table, and an archive is of runs; name a .md or .csv file")
    files = {name: (FORMATS[format](sheet) + "\n").encode() for name, format in _TEXTS.items()}
    if figure is not None:
        files["figure.png"] = _png(figure)
    for number, group in enumerate(groups, 1):
        name = f"{RECORDS}{'' if number == 1 else number}{collection.SUFFIX}"
        rows = [(record, "") for record in group]  # configurations name a machine's folders
        files[name] = collection.content(rows, package_lists=package_lists)
    files |= {packages.file_name(name): text.encode() for name, text in (package_lists or {}).items()}
    files["references.bib"] = _references(runs, config_dirs).encode()
    description = metadata(sheet, runs, dict(sorted(files.items())), config_dirs)
    files[METADATA] = json.dumps(description, indent=1).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # with the first date of the format
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # as on Unix, wherever it is written
            zipped.writestr(entry, content, zipfile.ZIP_DEFLATED)
    with output(path) as file:
        file.write(archive.getvalue())


def _groups(records: Iterable[Record]) -> list[list[Record]]:
    """The records by file, oldest first: a file has each run once, and a comparison of commits has it twice."""
    groups: list[dict[str, Record]] = []
    for record in sorted(records, key=lambda record: record.age):
        if not any(group.setdefault(record.id, record) == record for group in groups):
            groups.append({record.id: record})
    return [[*group.values()] for group in groups]


def _png(figure: "Figure") -> bytes:
    from gpbench.report.figures import write

    picture = io.BytesIO()
    write(figure, picture, "png")
    return picture.getvalue()


def _references(records: Sequence[Record], config_dirs: Sequence[Path]) -> str:
    """The BibTeX entries of the methods, data sets and protocols that have files, and of gpbench."""
    files = references.names(config_dirs)
    names = [name for group in references.GROUPS for name in sorted({getattr(record, group) for record in records})]
    return references.bibtex(references.references([*(n for n in names if n in files), "gpbench"], config_dirs)) + "\n"
