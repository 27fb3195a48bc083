"""Makes random committed records again and compares: results/*/records.parquet against the code of today.

    python scripts/again.py --records 20 --seconds 120 --seed 0
    python scripts/again.py --records 30 --experiments gpbench/leaderboard_regression gpbench/leaderboard_classification

takes 20 records that took at most 120 seconds, trains each by the words of its experiment, and prints its two main
metrics, committed and now.  A difference is in standard deviations over the splits of the record's table cell, or in
standard errors over the test rows of a lone split: rounding differs between processors, and training magnifies it.  The
exit code is 1 if there is no run of the same id and status, or a metric differs by more than 1.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import stdev

from gpbench.experiments import definition
from gpbench.experiments.plan import plans
from gpbench.records.collection import open_store
from gpbench.records.plan import Run
from gpbench.records.record import Record

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("rmse", "error", "test_ll", "nll")


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--seconds", type=float, default=120, help="most seconds a record took (default: 120)")
    parser.add_argument("--seed", type=int, default=0, help="which records (default: 0)")
    parser.add_argument("--experiments", nargs="+", default=definition.names(), help="of which (default: all)")
    args = parser.parse_args()
    stores = [open_store(path) for path in sorted(ROOT.glob("results/*/records.parquet"))]
    words = commands(args.experiments)
    candidates = [
        (store, record)
        for store in stores
        for record in store.all()
        if record.id in words and sum(record.seconds.values()) <= args.seconds
    ]
    worst = 0.0
    for store, old in random.Random(args.seed).sample(candidates, min(args.records, len(candidates))):
        print("gpbench run " + " ".join(words[old.id]), flush=True)
        cell = [record for record in store.all() if record.cell == old.cell]
        worst = max(worst, difference(old, train(words[old.id]), cell))
    print(f"largest difference: {worst:.2g}")
    return int(worst > 1)


def commands(names: Sequence[str]) -> dict[str, list[str]]:
    """For each id of the runs of these experiments: its words.  Without runs that are made for their seconds."""
    experiments = [(definition.read(name), preset) for name in names for preset in definition.PRESETS]
    jobs = [definition.overrides(job) for experiment, preset in experiments for job in experiment.jobs(preset)]
    return {
        run.id: [*_without(job, "split", "output"), f"split={run.split}", *_output(run)]
        for job, plan in zip(jobs, plans(jobs), strict=True)
        if not plan.cfg["run"]["timing"]
        for run in plan.runs
    }


def _without(job: Sequence[str], *keys: str) -> list[str]:
    return [word for word in job if word.partition("=")[0] not in keys]


def _output(run: Run) -> list[str]:
    return [] if run.output is None else [f"output={run.output}"]


def train(words: Sequence[str]) -> Record | None:
    """The record of a run of these words; None where it makes none."""
    with tempfile.TemporaryDirectory() as folder:
        return next(iter(train_all(words, Path(folder))), None)


def train_all(words: Sequence[str], folder: Path) -> list[Record]:
    """The records of these words in a results folder, after training those that it lacks."""
    command = [sys.executable, "-m", "gpbench", "run", *words, f"run.results={folder}", "run.progress=false"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    store = open_store(folder)
    records = [record for plan in plans([words]) for run in plan.runs if (record := store.get(run.id))]
    if not records:
        print(f"  exit code {ended.returncode}: {ended.stderr.strip()[-300:]}")
    return records


def difference(old: Record, new: Record | None, cell: Sequence[Record]) -> float:
    """Prints how metrics differ; the largest, infinite without such a run."""
    if new is None or (new.id, new.status) != (old.id, old.status):
        print(f"  {old.id} {old.status}; now {new and (new.id, new.status)}")
        return float("inf")
    if old.status != "done":
        print(f"  {old.status}: {old.message}; now: {new.message}")
    worst = 0.0
    for name in METRICS:
        before, now = old.metrics.get(name), new.metrics.get(name)
        if (before is None) != (now is None):
            print(f"  {name}: {before}, now {now}")
            return float("inf")
        if before is not None:
            values = [value for record in cell if (value := record.metrics[name]) is not None]
            spread = stdev(values) if len(values) > 1 else (old.row_stderr or {}).get(name)
            change = abs(now - before)
            share = change / spread if spread else 2.0 * (change > 1e-6 * abs(before))
            print(f"  {name}: {before:.6g}, now {now:.6g}: {share:.2g}")
            worst = max(worst, share)
    return worst


if __name__ == "__main__":
    sys.exit(main())
