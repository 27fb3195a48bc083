"""`gpbench show`: one recorded run with its configuration."""

import argparse
from collections.abc import Mapping
from typing import Any

from gpbench.analysis import printing
from gpbench.api.models import load_run
from gpbench.cli import options
from gpbench.errors import listed, printable
from gpbench.records.absences import absence
from gpbench.records.record import Record


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
    texts = {**record.to_json(), "metrics": values}
    fields = [(name, _line(value)) for name, value in texts.items() if name not in ("id", "undefined")]
    print("\n".join(printing.aligned(("id", record.id), fields, printing.width())))
    if not record.inputs and (line := inputs_line(record, config or {})):  # of a record from before it named them
        print(line)
    print(f"folder  {run.folder}")
    print(f"predictions  {'none' if rows is None else f'of {rows:,} test rows'}")
    if config:
        print("\n" + yaml.safe_dump(config, sort_keys=False).rstrip())
    return 0


def inputs_line(record: Record, config: Mapping[str, Any]) -> str:
    """A line that names the inputs and the target of a run, "" where neither its record nor its card does.

    Args:
        record: The record.
        config: Its configuration, which has the data card; may be empty.
    """
    card = config.get("dataset") or {}
    inputs = record.inputs or printable(listed(map(str, card.get("columns") or [])))
    target = record.target or printable(str(card.get("target") or ""))
    return f"inputs {inputs}" + f"; target {target}" * bool(target) if inputs else ""


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_line(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
