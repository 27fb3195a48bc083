"""`gpbench import`: scores predictions of other programs by our metrics on our splits, and records them as imported."""

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gpbench import paths
from gpbench.analysis import printing
from gpbench.analysis.leaderboard import DIVISIONS, cpu_budget, eligible
from gpbench.cli.output import Answer
from gpbench.errors import ConfigError, require, require_known
from gpbench.records.record import Record

_NAME = re.compile(r"\w[\w.-]*")


def import_files(
    *files: Path,
    protocol: str = "clean",
    precision: Literal["float64", "float32"] = "float64",
    budget: int | None = None,
    set: str | None = None,
    again: bool = False,
    config_dir: Sequence[Path] = (),
    results: Path | None = None,
) -> Answer:
    """Score predictions of another program by our metrics on our splits, and record them as imported: a Parquet or CSV
    file with the columns dataset, split, method, row, and mean and variance or prob_0, prob_1, ... (or log_prob_0,
    ...); optional are setting, output, seconds, versions and lost.  Nothing is recorded if a check fails.

    `gpbench data rows` exports the rows of a split; docs/how-to/import.md has an example.

    Args:
        files (FILE...): predictions, .parquet or .csv
        protocol (NAME): the protocol beside whose runs they are listed; default: clean
        precision: in which they were computed; default: float64
        budget (S): a budget of the leaderboard, in seconds of two cores, within which `seconds` are CPU seconds
        set (NAME): the split set (`gpbench data info`); default: the card's
        again: replace what was imported from another file
        config_dir: a folder with your own dataset/ cards
        json: print the records as JSON
    """
    from gpbench import runtime

    runtime.configure(device="cpu")  # before pandas imports NumPy
    from gpbench.api.listings import descriptions
    from gpbench.data.store import warn
    from gpbench.imports import scoring, submissions
    from gpbench.records.collection import open_store
    from gpbench.train.doubts import warnings

    seconds = None if budget is None else cpu_budget(budget)
    paths_ = [file.resolve() for file in files]
    for k, file in enumerate(files):
        require(paths_[k] not in paths_[:k], f"{file} is named twice: leave it out once", ConfigError)
    protocols = [item["name"] for item in descriptions("protocol", config_dir)]
    ours = {item["name"] for item in descriptions("method", ())}
    runs = []
    for file in files:  # all are checked before any is recorded
        imported = submissions.read(file)
        require_known(protocol, protocols, f"no protocol {protocol!r}")
        for name in (submission.method for submission in imported):
            fault = "a name has letters, digits, _, - and . only, and does not begin with - or ."
            require(_NAME.fullmatch(name), f"{file}: method {name!r}: {fault}", ConfigError)
            fault = f"{file}: method {name!r} is one of gpbench's; give yours a name of its own"
            require(name.lower() not in ours, fault, ConfigError)
        checksum = hashlib.sha256(file.read_bytes()).hexdigest()
        importer = scoring.Importer(protocol, precision, set, checksum, config_dir, seconds)
        runs += importer.score(imported)
    store = open_store(results or paths.results_dir())
    n_new = scoring.write(runs, store, again=again)
    records = [run.record for run in runs]
    for key in dict.fromkeys((run.dataset, run.method, run.setting) for run in records):
        for text in warnings([run for run in records if (run.dataset, run.method, run.setting) == key]):
            warn(text)
    if budget is not None:
        on_boards = {run.id for division in DIVISIONS.values() for run in eligible(records, division, budget)}
        if absent := [record for record in records if record.id not in on_boards]:
            _say_absent(absent)
    metrics = lambda run: ", ".join(f"{name} {printing.number(value)}" for name, value in run.metrics.items())
    rows = [(r.dataset, str(r.output or ""), r.method, r.setting, str(r.split), metrics(r)) for r in records]
    lines = printing.aligned(("data set", "output", "method", "setting", "split", "metrics"), rows, printing.width())
    before = f"; {len(records) - n_new} of {len(records)} were there already" if n_new < len(records) else ""
    lines.append(f"imported {printing.counted(n_new, 'run')} into {store.runs}{before}")
    return Answer([record.to_json() for record in records], "\n".join(lines))


def _say_absent(absent: list[Record]) -> None:
    """Says on stderr which runs with a budget are on no board."""
    names = sorted({f"{r.dataset} split {r.split}, protocol {r.protocol}" for r in absent})
    some = ", ".join([*names[:3], *(["..."] if len(absent) > 3 else [])])
    text = f"gpbench: {printing.counted(len(absent), 'run')} of no board ({some})"
    print(f"{text}: boards have protocol clean, and the data sets and splits of their division", file=sys.stderr)
