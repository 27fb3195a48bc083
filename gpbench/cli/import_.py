"""`gpbench import`: scores predictions of other programs by our metrics on our splits, and records them as imported."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gpbench import paths
from gpbench.analysis import printing
from gpbench.analysis.grouping import gather
from gpbench.api.selection import check_protocol
from gpbench.cli.output import Answer
from gpbench.errors import ConfigError, require
from gpbench.log import warn


def import_files(
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
    from gpbench.records.collection import open_store
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
