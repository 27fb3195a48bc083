"""The verbs of one recorded run: `gpbench show`, `predict` and `rm`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.analysis import printing
from gpbench.api.models import load_run
from gpbench.cli.output import Answer, write_text
from gpbench.errors import ConfigError, listed, printable, require
from gpbench.records.absences import absence
from gpbench.records.collection import open_existing, open_store
from gpbench.records.record import Record
from gpbench.records.unions import Results

_ONE_RUN = "give the id of one run, or --last; `gpbench ls runs` lists the runs"


def show(run: str | None = None, *, last: bool = False, packages: bool = False, results: Results = None) -> Answer:
    """Show one recorded run.

    Args:
        packages: only the packages that were installed, for pip
        json: print JSON: the record, `config`, rows of `predictions`; with --packages the version of each
    """
    require(bool(run) != last, _ONE_RUN, ConfigError)
    content = load_run(run, results=results)
    if packages:
        versions = content.packages
        return Answer(versions, "\n".join(f"{name}=={version}" for name, version in versions.items()))
    record, config, predictions = content.record, content.config, content.test_predictions
    rows = len(predictions["row"]) if predictions else None
    texts = record.to_json()
    texts["metrics"] = {name: absence(record, name) or value for name, value in record.metrics.items()}
    if record.packages:
        try:
            texts["packages"] += f" ({len(content.packages)} installed: --packages lists them)"
        except ConfigError as error:
            texts["packages"] = str(error)
    fields = [(name, _line(value)) for name, value in texts.items() if name not in ("id", "undefined")]
    lines = [*printing.aligned(("id", record.id), fields, printing.width())]
    if not record.inputs and (line := inputs_line(record, config or {})):  # of a record from before it named them
        lines.append(line)
    lines += [f"folder  {content.folder}", f"predictions  {'none' if rows is None else f'of {rows:,} test rows'}"]
    lines += ["", yamls.dump(config).rstrip()] if config else []
    return Answer({**record.to_json(), "predictions": rows, "config": config}, "\n".join(lines))


def inputs_line(record: Record, config: Mapping[str, Any]) -> str:
    """A line that names the inputs and the target of a run, "" where neither its record nor its card does."""
    card = config.get("dataset") or {}
    inputs = record.inputs or printable(listed(map(str, card.get("columns") or [])))
    target = record.target or printable(str(card.get("target") or ""))
    return "; target ".join(filter(None, [f"inputs {inputs}", target])) if inputs else ""


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_line(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)


def predict(
    run: str | None = None,
    *,
    last: bool = False,
    data: Path,
    no_header: bool = False,
    out: Path | None = None,
    config_dir: Sequence[Path] = (),
    results: Results = None,
) -> None:
    """Predict the rows of a table with a run that was trained with run.save=true: mean, variance and 95 % interval in
    original units, or the probability of each class, as csv.

    Args:
        data (FILE): csv, Parquet or Excel: columns with the names of the data set's inputs, in any order
        no_header: FILE has no header, and the inputs in their order
        out (FILE): default: standard output
        config_dir: a folder with your own data sets and methods, where the run has some

    examples:
      gpbench run dataset=heart run.save=true
      gpbench predict --last --data patients.csv
    """
    require(bool(run) != last, _ONE_RUN, ConfigError)
    if out:
        is_csv = out.suffix.lower() in ("", ".csv", ".txt")
        require(is_csv, f"--out {out}: predictions are csv: choose a file that ends in .csv", ConfigError)
        is_data = out.exists() and data.exists() and out.samefile(data)
        require(not is_data, f"--out {out}: that is the table of --data: name another file", ConfigError)
    frame = load_run(run, results=results, config_dir=config_dir).predict_frame(data, header=not no_header)
    text = frame.to_csv(index=False, lineterminator="\n")
    if out:
        write_text(out, text)
    else:
        sys.stdout.write(text)


def rm(*runs: str, dry_run: bool = False, results: Path | None = None) -> None:
    """Delete the folders of recorded runs from the results folder, damaged ones too.

    Args:
        runs (RUN...): ids of runs, or their first digits (`gpbench ls runs`)
        dry_run: name what would be deleted, and delete nothing

    examples:
      gpbench rm 3f2a 81c0
      gpbench rm 3f2a --dry-run
    """
    store = open_existing(results) if results else open_store(paths.results_dir())
    for id in dict.fromkeys(store.id_of(word) for word in runs):
        record = store.get(id)
        about = record.label if record else "a damaged record"
        if not dry_run:
            store.delete(id)
        print(f"{'would delete' if dry_run else 'deleted'} {id}  {about}")
