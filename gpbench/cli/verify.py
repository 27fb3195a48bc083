"""`gpbench verify`: whether recorded runs support what the papers assert."""

import argparse
from pathlib import Path
from typing import Any

from gpbench.analysis.formats import FORMATS
from gpbench.cli import output, selection


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "verify",
        help="whether recorded runs support what the papers assert",
        description="A verdict on every claim of a paper: supported, contradicted, undecided, or not run.  Exit code 1"
        " where one is contradicted.",
        epilog="examples: gpbench verify sep; gpbench verify sep/c01 --json; gpbench verify sep/table1; gpbench verify"
        " mine --config-dir DIR",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="all",
        metavar="NAME",
        help="a paper, an experiment, a claim (sep/c01), or a file of yours; default: all",
    )
    parser.add_argument("--preset", choices=("quick", "full"), help="default: that of which more is recorded")
    parser.add_argument("--protocol", metavar="NAME", help="only runs under this protocol")
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="a folder with your own claims/ files",
    )
    output.add_output(parser, FORMATS, picture=False)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError for an unknown name, and for a wrong claim."""
    from gpbench.claims import report, verdicts
    from gpbench.claims import selection as claims
    from gpbench.experiments import plan
    from gpbench.records.stores import latest

    records = latest(record for store in selection.open_stores(args.results) for record in store.all())
    by_id = {record.id: record for record in records}
    folders = [folder.expanduser().resolve() for folder in args.config_dir]
    judged = [
        verdict
        for of_paper in claims.select_claims(args.name, folders)
        for verdict in verdicts.judge(
            of_paper.claims,  # all of them, over which verdicts are corrected
            records,
            lambda id, preset: plan.load(id, preset, folders, by_id)[1],
            preset=args.preset,
            protocol=args.protocol,
        )
        if of_paper.has(verdict.claim)
    ]
    output.write_output(args, report.sheet(judged), [report.as_dict(verdict) for verdict in judged])
    return int(any(verdict.verdict == "contradicted" for verdict in judged))
