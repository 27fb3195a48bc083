"""`gpbench rm`: deletes recorded runs."""

import argparse
from typing import Any

from gpbench import paths
from gpbench.cli import options
from gpbench.records import open_existing, open_store


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "rm",
        description="Delete the folders of recorded runs from the results folder, damaged ones too.",
        epilog="examples: gpbench rm 3f2a 81c0; gpbench rm 3f2a --dry-run",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="ids of runs, or their first digits (`gpbench ls runs`)")
    parser.add_argument("--dry-run", action="store_true", help="name what would be deleted, and delete nothing")
    options.add_results_folder(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.

    Raises ConfigError where any word is not the id of one run, before anything is deleted; StorageError.
    """
    store = open_existing(args.results) if args.results else open_store(paths.results_dir())
    for id in dict.fromkeys(store.id_of(word) for word in args.runs):
        record = store.get(id)
        about = record.label if record else "a damaged record"
        if not args.dry_run:
            store.delete(id)
        print(f"{'would delete' if args.dry_run else 'deleted'} {id}  {about}")
    return 0
