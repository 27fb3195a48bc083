"""`gpbench cite`: the BibTeX entries of methods, data sets, protocols and runs."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpbench.analysis import printing
from gpbench.cli import options
from gpbench.errors import ConfigError, nearest
from gpbench.papers import references
from gpbench.records.unions import Results, first_answer, open_stores, union


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "cite",
        description="Print the BibTeX entries that methods, data sets, protocols or recorded runs cite.",
        epilog="example: gpbench cite sep pima hl2016 > paper.bib",
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="a method, data set or protocol, or the id of a run for all three"
    )
    options.add_config_dir(parser, "files, and references.bib for what they cite")
    options.add_results(parser)
    options.add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError for an unknown name."""
    names, folders = [], args.config_dir
    if results := options.results(args):
        open_stores(results)  # a folder that is absent is an error, whatever is cited
    known = references.names(folders).keys() | references.entries(folders).keys()
    for name in args.names:
        if name in known:
            names.append(name)
        else:
            names += _parts(name, results, known, folders)
    works = references.references(names, folders)
    if args.json:
        printing.print_json([asdict(work) for work in works])
    else:
        print(references.bibtex(works))
    return 0


def _parts(id: str, results: Results, known: Collection[str], folders: Sequence[Path]) -> list[str]:
    """Method, data set and protocol of a run, and gpbench."""
    try:
        record = first_answer(results, lambda stores: union(stores).find(id))
    except ConfigError as error:
        if id and all(digit in "0123456789abcdef" for digit in id):
            raise  # it looks like the id of a run, and the message of the store is the better one
        raise ConfigError(f"no method, data set, protocol or run {id!r}; {nearest(id, known)}") from error
    files = references.names(folders)
    parts = [name for group in references.GROUPS if (name := getattr(record, group)) in files]
    return [*parts, "gpbench"]
