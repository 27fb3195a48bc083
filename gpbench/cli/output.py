"""Output of verbs: an answer to the terminal, to a file or as JSON, and the places of files that a user names."""

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpbench import outputs, paths
from gpbench.analysis import printing
from gpbench.errors import ConfigError, require
from gpbench.log import log
from gpbench.records.collection import SUFFIX
from gpbench.records.unions import SHIPPED

if TYPE_CHECKING:
    from gpbench.analysis.sheets import Sheet


class Answer(NamedTuple):
    """Answer of a verb without a table: data for --json, a text, and the exit code."""

    data: Any
    text: str
    exit_code: int = 0

    def lines(self) -> Iterator[str]:
        """The lines that are printed."""
        return filter(None, [self.text])


Named = Sequence[str | Path] | None
"""The results folders and files that a command line names."""

_PICTURES = (".png", ".pdf", ".svg")
_CRATE = ".zip"
_BESIDE = (*_PICTURES, _CRATE)  # endings of files beside which the table is printed


def results_folder(results: Named) -> Path:
    """The results folder, or the collected file, of a command line: the first that --results names, or the default."""
    return next((Path(name) for name in results or () if name != SHIPPED), None) or paths.results_dir()


def output_folder(results: Named) -> Path:
    """The folder for what is made of the runs: the results folder, or that of a collected file."""
    folder = results_folder(results)
    return folder.parent if folder.suffix == SUFFIX else folder


def write(
    answer: Any,
    *,
    config_dir: Sequence[str | Path] = (),
    format: str | None = None,
    plain: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Writes what --out names of a `Table`: itself, its picture, or an archive; prints an answer, or JSON."""
    ending = out.suffix.lower() if out else ""
    is_beside = ending in _BESIDE
    if out and ending in _PICTURES:
        fault = f"--out {out}: there is no picture of this table; name a file with another ending"
        require(answer.has_figure, fault, ConfigError)
        from gpbench.report import figures

        figures.write(answer.figure(), out)
    elif out and is_beside:
        answer.to_crate(out, config_dir=config_dir)
    elif out:
        others = [*(_PICTURES if answer.has_figure else ()), *([_CRATE] if answer.records else ())]
        write_sheet(answer.sheet, format, plain, out, others)
    if is_beside:
        log.info(f"saved in {out}")  # on stderr, for stdout may have a table or JSON
    if json:
        printing.print_json(answer.data)
    elif not out or is_beside:
        if format or plain:
            write_sheet(answer.sheet, format, plain)
        else:
            for line in answer.lines():
                print(line)


def check_output(out: Path | None, format: str | None) -> None:
    """Refuses what `write` would refuse of a table with a picture, before it is made."""
    from gpbench.analysis.formats import format_of

    if out and out.suffix.lower() not in _BESIDE:
        format_of(out, format, _BESIDE)
    check_place(out)


def check_place(out: Path | None) -> None:
    """Raises StorageError where --out names a file that cannot be written: a folder, or below a file."""
    if out is None or (out.exists() and not out.is_file() and not out.is_dir()):  # a device or a pipe
        return
    try:
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        existing = next(folder for folder in out.absolute().parents if folder.exists())
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise outputs.unwritable(out, error) from error


def write_sheet(
    sheet: "Sheet", format: str | None, plain: bool, out: Path | None = None, other_endings: Iterable[str] = ()
) -> None:
    """Prints a sheet, or writes it to a file, in the format that is chosen or that the file's ending names."""
    from gpbench.analysis import formats

    text = formats.FORMATS[formats.format_of(out, format, other_endings)](formats.plain(sheet) if plain else sheet)
    if out:
        write_text(out, text + "\n")
    else:
        print(text)


def write_text(out: Path, text: str) -> None:
    """Writes a file that --out names, and says where it is.  Raises StorageError where it cannot be written."""
    with outputs.output(out) as file:
        file.write(text.encode())
    log.info(f"saved in {out}")
