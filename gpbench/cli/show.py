"""`gpbench show`: one recorded run with its configuration."""

import argparse
from typing import Any

from gpbench.analysis import printing
from gpbench.api.models import load_run
from gpbench.cli import options
from gpbench.records.absences import absence


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser("show", description="Show one recorded run.")
    options.add_run(parser)
    options.add_json(parser, "the record, `config`, rows of `predictions`")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError where no run matches, or several do."""
    options.check_run(args)
    run = load_run(args.run, results=options.results(args))
    record, config, predictions = run.record, run.config, run.test_predictions
    rows = len(predictions["row"]) if predictions else None
    if args.json:
        printing.print_json({**record.to_json(), "predictions": rows, "config": config})
        return 0
    import yaml

    values = {name: absence(record, name) or value for name, value in record.metrics.items()}
    fields = {**record.to_json(), "metrics": values}
    rows_ = [(name, _line(value)) for name, value in fields.items() if name not in ("id", "undefined")]
    print("\n".join(printing.aligned(("id", record.id), rows_)))
    print(f"folder  {run.folder}")
    print(f"predictions  {'none' if rows is None else f'of {rows:,} test rows'}")
    if config:
        print("\n" + yaml.safe_dump(config, sort_keys=False).rstrip())
    return 0


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_line(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
