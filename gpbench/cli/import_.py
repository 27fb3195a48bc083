"""`gpbench import`: scores predictions of other programs by our metrics on our splits, and records them as imported."""

import argparse
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.analysis import printing
from gpbench.analysis.divisions import DIVISIONS, cpu_budget
from gpbench.analysis.leaderboard import eligible
from gpbench.cli import options
from gpbench.errors import ConfigError, nearest
from gpbench.records.record import Record

_NAME = re.compile(r"\w[\w.-]*")


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "import",
        description="Score predictions of another program by our metrics on our splits, and record them as imported:"
        " a Parquet or CSV file with the columns dataset, split, method, row, and mean and variance or prob_0, prob_1,"
        " ... (or log_prob_0, ...); optional are setting, output, seconds, versions and lost.  Nothing is recorded"
        " if a check fails.",
        epilog="`gpbench data rows` exports the rows of a split; docs/how-to/import.md has an example",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="predictions, .parquet or .csv")
    parser.add_argument(
        "--protocol",
        default="clean",
        metavar="NAME",
        help="the protocol beside whose runs they are listed; default: clean",
    )
    parser.add_argument(
        "--precision",
        choices=("float64", "float32"),
        default="float64",
        help="in which they were computed; default: float64",
    )
    parser.add_argument(
        "--budget",
        type=int,
        metavar="S",
        help="a budget of the leaderboard, in seconds of two cores, within which `seconds` are CPU seconds",
    )
    parser.add_argument("--set", metavar="NAME", help="the split set (`gpbench data info`); default: the card's")
    parser.add_argument("--again", action="store_true", help="replace what was imported from another file")
    options.add_config_dir(parser, "dataset/ cards")
    options.add_results_folder(parser)
    parser.add_argument("--json", action="store_true", help="print the records as JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError and DataError for what is wrong in the file."""
    from gpbench import runtime

    runtime.configure(device="cpu")  # before pandas imports NumPy
    from gpbench.data.store import warn
    from gpbench.imports import scoring, submissions
    from gpbench.records.collection import open_store
    from gpbench.train.doubts import warnings

    args.config_dir = targets.add_folders(args.config_dir)
    budget = None if args.budget is None else cpu_budget(args.budget)
    files = [file.resolve() for file in args.files]
    if twice := [file for k, file in enumerate(args.files) if files[k] in files[:k]]:
        raise ConfigError(f"{twice[0]} is named twice: leave it out once")
    runs = []
    for file in args.files:  # all are checked before any is recorded
        imported = submissions.read(file)
        _check_names(args, file, [submission.method for submission in imported])
        checksum = hashlib.sha256(file.read_bytes()).hexdigest()
        importer = scoring.Importer(args.protocol, args.precision, args.set, checksum, args.config_dir, budget)
        runs += importer.score(imported)
    store = open_store(args.results or paths.results_dir())
    n_new = scoring.write(runs, store, again=args.again)
    records = [run.record for run in runs]
    for key in dict.fromkeys((run.dataset, run.method, run.setting) for run in records):
        for text in warnings([run for run in records if (run.dataset, run.method, run.setting) == key]):
            warn(text)
    _say_absent(records, args.budget)
    if args.json:
        printing.print_json([record.to_json() for record in records])
        return 0
    rows = [
        (
            r.dataset,
            str(r.output or ""),
            r.method,
            r.setting,
            str(r.split),
            ", ".join(f"{name} {printing.number(value)}" for name, value in r.metrics.items()),
        )
        for r in records
    ]
    printing.print_table(("data set", "output", "method", "setting", "split", "metrics"), rows)
    before = f"; {len(records) - n_new} of {len(records)} were there already" if n_new < len(records) else ""
    print(f"imported {printing.counted(n_new, 'run')} into {store.runs}{before}")
    return 0


def _say_absent(records: list[Record], budget: int | None) -> None:
    """Says on stderr how many runs with a budget are on no board."""
    if budget is None:
        return
    on_boards = {run.id for division in DIVISIONS.values() for run in eligible(records, division, budget)}
    if absent := [record for record in records if record.id not in on_boards]:
        names = ", ".join(sorted({f"{r.dataset} split {r.split}, protocol {r.protocol}" for r in absent})[:3])
        text = f"gpbench: {printing.counted(len(absent), 'run')} of no board ({names}{', ...' * (len(absent) > 3)})"
        print(f"{text}: boards have protocol clean, and the data sets and splits of their division", file=sys.stderr)


def _check_names(args: argparse.Namespace, file: Path, methods: list[str]) -> None:
    """Raises ConfigError for an unknown protocol, and for a method that would pass for one of gpbench's."""
    from gpbench.api.listings import descriptions

    protocols = [item["name"] for item in descriptions("protocol", args.config_dir)]
    if args.protocol not in protocols:
        raise ConfigError(f"no protocol {args.protocol!r}; {nearest(args.protocol, protocols)}")
    if bad := [name for name in methods if not _NAME.fullmatch(name)]:
        raise ConfigError(
            f"{file}: method {bad[0]!r}: a name has letters, digits, _, - and . only, and does not begin with - or ."
        )
    ours = {item["name"] for item in descriptions("method", ())}
    if clashes := [name for name in methods if name.lower() in ours]:
        raise ConfigError(f"{file}: method {clashes[0]!r} is one of gpbench's; give yours a name of its own")
