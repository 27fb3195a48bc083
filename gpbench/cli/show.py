"""`gpbench show`: one recorded run with its configuration."""

import argparse
from collections.abc import Mapping
from typing import Any

from gpbench import yamls
from gpbench.analysis import printing
from gpbench.api.models import RecordedRun, load_run
from gpbench.cli import options
from gpbench.errors import ConfigError, listed, printable
from gpbench.records.absences import absence
from gpbench.records.record import Record


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser("show", description="Show one recorded run.")
    options.add_run(parser)
    parser.add_argument("--packages", action="store_true", help="only the packages that were installed, for pip")
    options.add_json(parser, "the record, `config`, rows of `predictions`; with --packages the version of each")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError where no run matches, or several do."""
    options.check_run(args)
    run = load_run(args.run, results=options.results(args))
    if args.packages:
        _print_packages(run.packages, as_json=args.json)
        return 0
    record, config, predictions = run.record, run.config, run.test_predictions
    rows = len(predictions["row"]) if predictions else None
    if args.json:
        printing.print_json({**record.to_json(), "predictions": rows, "config": config})
        return 0
    values = {name: absence(record, name) or value for name, value in record.metrics.items()}
    texts = {**record.to_json(), "metrics": values, **({"packages": _packages(run)} if record.packages else {})}
    fields = [(name, _line(value)) for name, value in texts.items() if name not in ("id", "undefined")]
    print("\n".join(printing.aligned(("id", record.id), fields, printing.width())))
    if not record.inputs and (line := inputs_line(record, config or {})):  # of a record from before it named them
        print(line)
    print(f"folder  {run.folder}")
    print(f"predictions  {'none' if rows is None else f'of {rows:,} test rows'}")
    if config:
        print("\n" + yamls.dump(config).rstrip())
    return 0


def _print_packages(versions: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        printing.print_json(versions)
    else:
        print("\n".join(f"{name}=={version}" for name, version in versions.items()))


def _packages(run: RecordedRun) -> str:
    """The checksum of a run's list of installed packages, and their number, or what is wrong with the list."""
    try:
        return f"{run.record.packages} ({len(run.packages)} installed: --packages lists them)"
    except ConfigError as error:
        return str(error)


def inputs_line(record: Record, config: Mapping[str, Any]) -> str:
    """A line that names the inputs and the target of a run, "" where neither its record nor its card does."""
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
