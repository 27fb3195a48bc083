"""`gpbench predict`: predictions of new rows by a recorded run."""

import argparse
import sys
from pathlib import Path
from typing import Any

from gpbench.api.models import load_run
from gpbench.cli import options
from gpbench.errors import ConfigError


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "predict",
        help="predict new rows with a recorded run",
        description="Predict the rows of a table with a run that was trained with run.save=true: mean and variance in"
        " original units, or the probability of each class, as csv.",
        epilog="example: gpbench run dataset=heart run.save=true; gpbench predict --last --data patients.csv",
    )
    options.add_run(parser)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FILE",
        help="csv, Parquet or Excel: columns with the names of the data set's inputs, in any order",
    )
    parser.add_argument("--no-header", action="store_true", help="FILE has no header, and the inputs in their order")
    options.add_config_dir(parser, "data sets and methods, where the run has some")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="default: standard output")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises what `RecordedRun.predict` raises; ConfigError, StorageError."""
    options.check_run(args)
    if args.out and args.out.suffix.lower() not in ("", ".csv", ".txt"):
        raise ConfigError(f"--out {args.out}: predictions are csv: choose a file that ends in .csv")
    if args.out and args.out.exists() and args.data.exists() and args.out.samefile(args.data):
        raise ConfigError(f"--out {args.out}: that is the table of --data: name another file")
    frame = load_run(args.run, results=options.results(args), config_dir=args.config_dir).predict_frame(
        args.data, header=not args.no_header
    )
    text = frame.to_csv(index=False, lineterminator="\n")
    if args.out:
        options.write_text(args.out, text)
    else:
        sys.stdout.write(text)
    return 0
