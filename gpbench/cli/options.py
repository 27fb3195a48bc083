"""Options that several verbs have, and the output of a table: to the terminal, to a file, or as JSON."""

import argparse
import errno
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import outputs, paths
from gpbench.analysis import formats, printing
from gpbench.analysis.formats import FORMATS, format_of
from gpbench.analysis.sheets import Sheet
from gpbench.api.selection import FIELDS, Filters
from gpbench.errors import ConfigError
from gpbench.records.collection import SUFFIX
from gpbench.records.unions import SHIPPED

if TYPE_CHECKING:
    from gpbench.api.tables import Table

_PICTURES = (".png", ".pdf", ".svg")
_CRATE = ".zip"


def add_config_dir(parser: Any, contents: str) -> None:
    """Adds --config-dir, a folder with the user's own files of these kinds."""
    parser.add_argument(
        "--config-dir", action="append", default=[], type=Path, metavar="DIR", help=f"a folder with your own {contents}"
    )


def add_results(parser: Any) -> None:
    """Adds --results and --with-shipped: the recorded runs to read (`results`)."""
    text = (
        'a results folder, a file of `gpbench collect`, or "shipped", the runs that ship with gpbench; may be repeated'
    )
    parser.add_argument("--results", action="append", metavar="DIR", help=text)
    text = "also read the runs that ship with gpbench; without this they are read where no own run answers"
    parser.add_argument("--with-shipped", action="store_true", help=text)


def results(args: argparse.Namespace) -> list[str | Path] | None:
    """The results folders that a command line names, for `gpbench.records.open_stores`; None for the default ones."""
    if not args.with_shipped:
        return args.results
    own = paths.results_dir()
    return [*(args.results or ([own] if own.exists() else [])), SHIPPED]


def results_folder(args: argparse.Namespace) -> Path:
    """The results folder, or the collected file, of a command line: the first that --results names, or the default."""
    folders = [Path(name) for name in args.results or () if name != SHIPPED]
    return folders[0] if folders else paths.results_dir()


def output_folder(args: argparse.Namespace) -> Path:
    """The folder for what is made of the runs: the results folder, or that of a collected file."""
    results = results_folder(args)
    return results.parent if results.suffix == SUFFIX else results


def add_results_folder(parser: Any) -> None:
    """Adds --results, the one results folder into which a verb writes."""
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")


def add_json(parser: Any, contents: str = "") -> None:
    """Adds --json, with what is printed."""
    parser.add_argument("--json", action="store_true", help="print JSON" + f": {contents}" * bool(contents))


def add_run(parser: Any) -> None:
    """Adds RUN, --last, --results and --with-shipped, which name one recorded run."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="the id of a run or its first digits (`gpbench ls runs`)")
    parser.add_argument("--last", action="store_true", help="the latest run")
    add_results(parser)


def check_run(args: argparse.Namespace) -> None:
    """Raises ConfigError unless either RUN or --last is given."""
    if bool(args.run) == args.last:
        raise ConfigError("give the id of one run, or --last; `gpbench ls runs` lists the runs")


def add_fields(parser: Any, fields: Iterable[str]) -> None:
    """Adds an option for each of these fields of records."""
    for field in fields:
        parser.add_argument(f"--{field}", metavar="A,B", help=f"only runs with these values of {field}")


def add_filters(parser: Any) -> None:
    """Adds --dataset, --method, --protocol, --preset, --precision, --split and --setting."""
    add_fields(parser, FIELDS)
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="TEXT",
        help="only this setting, such as m=15%%, or '' for none; may be repeated",
    )


def filters(args: argparse.Namespace) -> Filters:
    """The filters of a command line, for the functions of `gpbench.api`."""
    return Filters(**{field: getattr(args, field) for field in (*FIELDS, "setting")})  # type: ignore[typeddict-item]


def add_output(parser: Any, *, picture: bool = True, crate: bool = True, json: str = "") -> None:
    """Adds --format, --out, --json and what `add_results` adds, for verbs that make a table, most of them a picture."""
    add_format(parser)
    text = "write the table to this file"
    text += ", or its picture if FILE ends in .png, .pdf or .svg" * picture
    text += ", or if it ends in .zip an archive to publish: the table, its runs, what they cite (an RO-Crate)" * crate
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help=text)
    add_results(parser)
    add_json(parser, json)


def add_format(parser: Any) -> None:
    """Adds --format and --plain."""
    text = "format of the table; default: that of --out FILE (.md, .tex, .csv, .html, .txt), or terminal"
    parser.add_argument("--format", choices=FORMATS, default=None, help=text)
    parser.add_argument("--plain", action="store_true", help="the bare table, without title, notes and provenance")


def write_table(args: argparse.Namespace, table: "Table") -> None:
    """Writes what --out names: the table, its picture, or an archive; prints the table unless that is written, or JSON.
    Raises ConfigError: --out names a picture of a table that has none, or an archive of one without runs; StorageError:
    the file cannot be written.
    """
    out = args.out
    ending = out.suffix.lower() if out else ""
    is_beside = ending in (*_PICTURES, _CRATE)
    if ending in _PICTURES:
        _write_picture(out, table)
    elif ending == _CRATE:
        table.to_crate(out, config_dir=getattr(args, "config_dir", ()))
    elif out:
        write_sheet(table.sheet, args, out, [*_PICTURES * table.has_figure, *[_CRATE] * bool(table.records)])
    if is_beside:
        _say_saved(out)
    if args.json:
        printing.print_json(table.data)
    elif is_beside or not out:
        write_sheet(table.sheet, args)


def require_place(option: str, file: Path) -> None:
    """Raises ConfigError where a folder has a file's name, or its folder is missing, for verbs that make no folders."""
    if file.is_dir():
        raise ConfigError(f"{option} {file}: is a folder")
    if not file.parent.is_dir():
        raise ConfigError(f"{option} {file}: no such folder {file.parent}")


def check_output(args: argparse.Namespace) -> None:
    """Refuses what `write_table` would refuse of a table with a picture, before the hours that make the table.  Raises
    ConfigError: the ending of --out names no format, or another one than --format; StorageError: no file can be written
    there.
    """
    endings = (*_PICTURES, _CRATE)
    if args.out and args.out.suffix.lower() not in endings:
        format_of(args.out, args.format, endings)
    check_place(args.out)


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


def _write_picture(out: Path, table: "Table") -> None:
    if not table.has_figure:
        raise ConfigError(f"--out {out}: there is no picture of this table; name a file with another ending")
    from gpbench.report.figures import write

    write(table.figure(), out)


def write_sheet(
    sheet: Sheet, args: argparse.Namespace, out: Path | None = None, other_endings: Iterable[str] = ()
) -> None:
    """Prints a sheet, or writes it to a file, in the format that --format or the file's ending names.

    A message names `other_endings` too.  Raises ConfigError: the ending names no format, or another one than --format;
    StorageError: the file cannot be written.
    """
    format = format_of(out, args.format, other_endings)
    text = FORMATS[format](formats.plain(sheet) if args.plain else sheet)
    if out:
        write_text(out, text + "\n")
    else:
        print(text)


def write_text(out: Path, text: str) -> None:
    """Writes a file that --out names, and says where it is.  Raises StorageError where it cannot be written."""
    with outputs.output(out) as file:
        file.write(text.encode())
    _say_saved(out)


def _say_saved(out: Path) -> None:
    """Says where a file is: on stderr, for stdout may have a table or JSON."""
    print(f"gpbench: saved in {out}", file=sys.stderr)
