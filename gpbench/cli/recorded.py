"""The verbs of recorded runs: `gpbench show`, `predict` and `rm` of one, `cite` of what they cite, and `import`, which
scores predictions of other programs by our metrics on our splits, and records them as imported."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from gpbench import paths, yamls
from gpbench.analysis import printing
from gpbench.analysis.grouping import gather
from gpbench.api.models import load_run
from gpbench.api.selection import check_protocol
from gpbench.cli.output import Answer, write_text
from gpbench.errors import ConfigError, listed, nearest, printable, require
from gpbench.log import warn
from gpbench.papers import references
from gpbench.records.absences import absence
from gpbench.records.collection import open_existing, open_store
from gpbench.records.record import Record
from gpbench.records.unions import Results, first_answer, open_stores, union

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


def cite(*names: str, config_dir: Sequence[Path] = (), results: Results = None) -> Answer:
    """Print the BibTeX entries that methods, data sets, protocols or recorded runs cite.

    Args:
        names (NAME...): a method, data set or protocol, or the id of a run for all three
        config_dir: a folder with your own files, and references.bib for what they cite

    examples:
      gpbench cite sep pima hl2016 > paper.bib
    """
    if results:
        open_stores(results)  # a folder that is absent is an error, whatever is cited
    known = references.names(config_dir).keys() | references.entries(config_dir).keys()
    keys = [key for name in names for key in ([name] if name in known else _parts(name, results, known, config_dir))]
    works = references.references(keys, config_dir)
    return Answer([asdict(work) for work in works], references.bibtex(works))


def _parts(id: str, results: Results, known: Collection[str], folders: Sequence[Path]) -> list[str]:
    """Method, data set and protocol of a run, and gpbench."""
    try:
        record = first_answer(results, lambda stores: union(stores).find(id))
    except ConfigError as error:
        if id and all(digit in "0123456789abcdef" for digit in id):
            raise  # it looks like the id of a run, and the message of the store is the better one
        raise ConfigError(f"no method, data set, protocol or run {id!r}; {nearest(id, known)}") from error
    files = references.names(folders)
    parts = [name for group in references.GROUPS if (name := getattr(record, group)) in files]
    return [*parts, "gpbench"]


def import_(
    *files: Path,
    protocol: str = "clean",
    precision: Literal["float64", "float32"] = "float64",
    set: str | None = None,
    again: bool = False,
    config_dir: Sequence[Path] = (),
    results: Path | None = None,
) -> Answer:
    """Score predictions of another program by our metrics on our splits, and record them as imported: a Parquet or CSV
    file with the columns dataset, split, method, row, and mean and variance, samples, quantiles, bins or probabilities
    (docs/how-to/import.md), of rows that `gpbench data rows` exports.  Nothing is recorded if a check fails.

    Args:
        files (FILE...): predictions, .parquet or .csv
        protocol (NAME): the protocol beside whose runs they are listed; default: clean
        precision: in which they were computed; default: float64
        set (NAME): the split set (`gpbench data info`); default: the card's
        again: replace what was imported from another file
        config_dir: a folder with your own dataset/ cards
        json: print the records as JSON
    """
    from gpbench import runtime

    runtime.configure(device="cpu")  # before pandas imports NumPy
    from gpbench.imports import scoring
    from gpbench.train.doubts import warnings

    places = [file.resolve() for file in files]
    for k, file in enumerate(files):
        require(places[k] not in places[:k], f"{file} is named twice: leave it out once", ConfigError)
    check_protocol(protocol, (), config_dir)
    importer = scoring.Importer(protocol, precision, set, config_dir)
    runs = [run for file in files for run in importer.score(file)]  # all are checked before any is recorded
    store = open_store(results or paths.results_dir())
    n_new = scoring.write(runs, store, again=again)
    records = [run.record for run in runs]
    for group in gather(((run.dataset, run.method, run.setting), run) for run in records).values():
        for text in warnings(group):
            warn(text)
    metrics = lambda run: ", ".join(f"{name} {printing.number(value)}" for name, value in run.metrics.items())
    rows = [(r.dataset, str(r.output or ""), r.method, r.setting, str(r.split), metrics(r)) for r in records]
    header = ("data set", "output", "method", "setting", "split", "metrics")
    before = f"; {len(records) - n_new} of {len(records)} were there already" if n_new < len(records) else ""
    footer = f"imported {printing.counted(n_new, 'run')} into {store.runs}{before}"
    lines = [*printing.aligned(header, rows, printing.width()), footer]
    return Answer([record.to_json() for record in records], "\n".join(lines))
