"""`gpbench show`: one recorded run with its configuration."""

from collections.abc import Mapping
from typing import Any

from gpbench import yamls
from gpbench.analysis import printing
from gpbench.api.models import RecordedRun, load_run
from gpbench.cli.output import require_run
from gpbench.errors import ConfigError, listed, printable
from gpbench.records.absences import absence
from gpbench.records.record import Record
from gpbench.records.unions import Results


def show(
    run: str | None = None, *, last: bool = False, packages: bool = False, results: Results = None, json: bool = False
) -> None:
    """Show one recorded run.

    Args:
        packages: only the packages that were installed, for pip
        json: print JSON: the record, `config`, rows of `predictions`; with --packages the version of each
    """
    require_run(run, last)
    content = load_run(run, results=results)
    if packages:
        versions = content.packages
        if json:
            printing.print_json(versions)
        else:
            print("\n".join(f"{name}=={version}" for name, version in versions.items()))
        return
    record, config, predictions = content.record, content.config, content.test_predictions
    rows = len(predictions["row"]) if predictions else None
    if json:
        printing.print_json({**record.to_json(), "predictions": rows, "config": config})
        return
    values = {name: absence(record, name) or value for name, value in record.metrics.items()}
    texts = {**record.to_json(), "metrics": values, **({"packages": _packages(content)} if record.packages else {})}
    fields = [(name, _line(value)) for name, value in texts.items() if name not in ("id", "undefined")]
    print("\n".join(printing.aligned(("id", record.id), fields, printing.width())))
    if not record.inputs and (line := inputs_line(record, config or {})):  # of a record from before it named them
        print(line)
    print(f"folder  {content.folder}")
    print(f"predictions  {'none' if rows is None else f'of {rows:,} test rows'}")
    if config:
        print("\n" + yamls.dump(config).rstrip())


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
