"""Measures how far numbers move between one core and two: results/gpbench/cores.csv.

    python scripts/cores.py [FOLDER]

Trains split 0 of some cells on one core and on two, by the words of their experiments; runs that FOLDER (build/cores by
default) has are not trained again.  The rest is the same: seed, data, program, machine.  XLA takes its number of
threads from the cores that a process may use and adds in another order, and training magnifies the rounding.  `shift`
is the change as a multiple of the standard error of the committed cell over its splits, and `committed shift` that from
the committed record, made by an earlier commit and perhaps on another processor.  Cells of one split have neither.
"""

import argparse
import contextlib
import csv
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from again import ROOT, train_all

from gpbench.analysis.statistics import mean_stderr
from gpbench.records.collection import open_store
from gpbench.records.record import Record

OUT = ROOT / "results/gpbench/cores.csv"
METRICS = ("rmse", "test_ll", "error", "nll")
CELLS = (
    ("sep/table1", "protocol=hl2016 dataset=heart method=sep method.inducing=0.15"),
    ("sep/table1", "protocol=hl2016 dataset=heart method=svi method.inducing=0.15"),
    (
        "svdgp/table5",
        "dataset=mujoco1 protocol=clean dataset.splits.set=random90 run.trace_every=100 output=0 method=ivsgpr"
        " method.inducing=64 method.batch_size=512 method.steps=500 method.trial_steps=50 method.halving=false",
    ),
    ("aep_dgp/table3", "protocol=clean dataset=boston method=dgp method.hidden=[2] method.inducing=50"),
    ("aep_dgp/table3", "protocol=clean dataset=boston method=svi method.inducing=50"),
    (
        "aep_dgp/table3",
        "protocol=clean dataset=boston method=ensemble method.hidden=[50]"
        " method.search={stop_after:[300,1000,3000,10000]}",
    ),
    (
        "gam/regression",
        "protocol=clean dataset=boston run.trace_every=100 method=gam method.posterior=coupled_precision"
        " method.lengthscale_prior=null",
    ),
    ("gpbench/regression", "protocol=clean dataset=boston run.trace_every=100 method=gpr"),
)
"""The experiment of each cell, and its words."""


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build/cores", help="default: build/cores")
    folder = parser.parse_args().folder
    rows = [row for experiment, words in CELLS for row in measure(experiment, words, folder)]
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0


def measure(experiment: str, words: str, folder: Path) -> list[dict[str, str]]:
    """The rows of a cell, one for each of METRICS that it has, after training the runs that the folder lacks."""
    one, two = (_record(words, number, folder / str(number)) for number in (1, 2))
    recorded = open_store(ROOT / "results" / experiment.split("/")[0] / "records.parquet").all()
    cell = [record for record in recorded if record.cell == one.cell]
    facts = {"experiment": experiment, "dataset": one.dataset, "method": one.method, "setting": cell[0].setting}
    return [{**facts, "metric": metric, **shift(one, two, cell, metric)} for metric in METRICS if metric in one.metrics]


def shift(one: Record, two: Record, cell: Sequence[Record], metric: str) -> dict[str, str]:
    """How a metric differs between the records on one core, on two and in the committed cell."""
    before, after = one.metrics[metric], two.metrics[metric]
    committed = {record.split: record.metrics[metric] for record in cell}
    stderr, first = mean_stderr([*committed.values()])[1], committed[one.split]
    return {
        "1 core": f"{before:.8g}",
        "2 cores": f"{after:.8g}",
        "committed": f"{first:.8g}",
        "splits": str(len(committed)),
        "standard error": f"{stderr:.3g}" if stderr else "",
        "shift": f"{abs(after - before) / stderr:.2g}" if stderr else "",
        "committed shift": f"{abs(first - before) / stderr:.2g}" if stderr else "",
    }


def _record(words: str, number: int, folder: Path) -> Record:
    """The record of split 0 of these words on this number of cores."""
    with _cores(number):
        records = train_all([*words.split(), "split=0"], folder)
    if [(record.host or {}).get("cores") for record in records] != [number]:
        sys.exit(f"{folder}: no run of {words} on {number} of the cores")
    return records[0]


@contextlib.contextmanager
def _cores(number: int) -> Iterator[None]:
    """Within it, processes that begin may use the first so many of the cores that this one may use."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    sys.exit(main())
