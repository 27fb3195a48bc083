"""`gpbench predict`: predictions of new rows by a recorded run."""

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

from gpbench import runtime
from gpbench.cli import selection
from gpbench.errors import StorageError


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "predict",
        help="predict new rows with a recorded run",
        description="Predict the rows of a table with a run that was trained with run.save=true: mean and variance in"
        " original units, or the probability of each class, as csv.",
        epilog="example: gpbench run dataset=heart run.save=true; gpbench predict --last --data patients.csv",
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help="the id of a run or its first digits (`gpbench ls runs`)")
    parser.add_argument("--last", action="store_true", help="the latest run")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FILE",
        help="csv, Parquet or Excel: the inputs, by the names of the data set's columns, or in their order",
    )
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="default: standard output")
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises what `gpbench.train.predictor.predict` raises; StorageError."""
    store = selection.open_one(args.results)
    record = selection.one_run(store, args)
    cfg = store.config(record.id)
    sys.path[:0] = cfg.get("config_dirs") or []
    runtime.configure(device=(cfg.get("run") or {}).get("device"))

    from gpbench.train.predictor import predict

    columns = predict(store, record, args.data)
    rows = zip(*(values.tolist() for values in columns.values()))
    if args.out is None:
        _write(sys.stdout, columns, rows)
        return 0
    try:
        with open(args.out, "w", newline="") as file:
            _write(file, columns, rows)
    except OSError as error:
        raise StorageError(f"{args.out} cannot be written: {error.strerror}; choose another --out") from None
    return 0


def _write(file: Any, columns: Any, rows: Any) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
