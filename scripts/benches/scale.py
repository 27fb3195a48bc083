"""Seconds and memory of training on a table on disk, by rows and by inducing points, with exponents beside theory.

Each run is a process of its own on one core: `svi_natural` in float32 with rows streamed from a .npy file that is
written first, 20 inputs of 4 bytes and a target.  Seconds are those of the processor, so that other work on the machine
does not count.  A step's leave out the first quarter of the training, which compiles, and the last one, which reads no
rows ahead.  A run's include start, the scalers' passes over the file and compilation; its memory is the peak (RSS).
More inducing points take fewer steps, by (M / the first M)^-1.5 and no fewer than 8; rows are read 256 steps at a time.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benches._machine import timed
from benches._results import measured
from matplotlib.ticker import LogFormatter, NullLocator
from numpy.lib.format import write_array_header_1_0

from gpbench.records.store import Store
from gpbench.report.figures import style
from gpbench.report.figures.scaling import exponent

INPUTS, TEST_ROWS, BLOCK = 20, 1_000, 2**20


class Point(NamedTuple):
    """A run: its sizes, and what it took."""

    rows: int
    inducing: int
    step_ms: float
    step_mb: float
    run_s: float
    run_mb: float


RUN = "import time; time.perf_counter = time.process_time; from gpbench.cli import main; raise SystemExit(main())"
"""`gpbench`, whose seconds by part are then those of the processor."""
QUANTITIES = {
    "step_ms": "CPU ms a step",
    "step_mb": "MB a step",
    "run_s": "CPU seconds of a run",
    "run_mb": "peak MB of a run",
}
# of the same steps; a run has fewer steps with more inducing points, and its start takes as long with all
THEORY = {
    "rows": {"step_ms": "0", "step_mb": "0", "run_s": "0 to 1", "run_mb": "0 to 1"},
    "inducing": {"step_ms": "2 to 3", "step_mb": "1 to 2", "run_s": "0 to 1.5", "run_mb": "0 to 2"},
}


def write_table(path: Path, rows: int) -> None:
    """Writes the set: uniform inputs, and a smooth function of six of them with noise; rows repeat after a block."""
    rng = np.random.default_rng(0)
    X = rng.random((min(BLOCK, rows), INPUTS), np.float32)
    y = np.sin(2 * np.pi * X[:, :3]).sum(axis=1) + X[:, 3] * X[:, 4] + X[:, 5] ** 2
    table = np.column_stack([X, y + rng.normal(0.0, 0.3, len(X))]).astype("<f4")
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, INPUTS + 1)}
        write_array_header_1_0(file, header)
        for start in range(0, rows, BLOCK):
            file.write(table[: rows - start].data)


def measure(folder: Path, rows: int, inducing: int, steps: int, batch: int) -> Point:
    """Trains once on the table of this many rows, in a process of its own."""
    results = folder / f"results-{rows}-{inducing}"
    words = [
        *("--config-dir", str(folder), f"dataset=scale_{rows}", "method=svi_natural", f"method.inducing={inducing}"),
        *(f"method.steps={steps}", f"method.batch_size={batch}", "method.rates=[]", "method.features=values"),
        *("protocol.precision=float32", "run.stream=true", f"run.results={results}", f"run.trace_every={steps // 4}"),
        "run.cores=1",
    ]
    _, run_s, _ = timed([sys.executable, "-c", RUN, "run", *words])
    store = Store(results)
    record = store.last()
    quarters = np.ravel(store.trace(record.id)["seconds"])
    step = float(quarters[2] - quarters[0]) / (2 * (steps // 4))
    for name, seconds in {"step": step, "run": run_s}.items():
        measured(f"scale {name} n={rows} m={inducing} b={batch}", seconds, "float32")
    return Point(rows, inducing, 1e3 * step, record.step_memory_mb or np.nan, run_s, record.peak_memory_mb or np.nan)


def efficiency(folder: Path, rows: int, inducing: int, counts: list[int]) -> None:
    """Prints CPU ms of a step of `svi` on all rows, sharded across virtual devices, and one device's as a share."""
    common = [*("--config-dir", str(folder), f"dataset=scale_{rows}", "method=svi", f"method.inducing={inducing}")]
    common += ["method.steps=24", "run.stream=false", "run.trace_every=8"]
    steps: dict[int, float] = {}
    for count in counts:
        results = folder / f"devices-{count}"
        timed([sys.executable, "-c", RUN, "run", *common, f"run.devices={count}", f"run.results={results}"])
        store = Store(results)
        seconds = np.ravel(store.trace(store.last().id)["seconds"])
        steps[count] = measured(f"scale devices={count} n={rows} m={inducing}", float(seconds[2] - seconds[0]) / 16)
        share = steps[counts[0]] / steps[count]
        print(f"{count} devices: {1e3 * steps[count]:.1f} CPU ms a step of {rows:,} rows, efficiency {share:.2f}")


def prepare(folder: Path, rows: int) -> None:
    """Writes the table with its card."""
    (folder / "dataset").mkdir(exist_ok=True)
    splits = {"set": "official", "sets": {"official": 1}, "train_rows": rows}
    source = {"kind": "file", "path": f"scale_{rows}.npy", "reader": "mapped"}
    card = {"name": f"scale_{rows}", "task": "regression", "sources": [source], "splits": splits}
    (folder / "dataset" / f"scale_{rows}.yaml").write_text(json.dumps(card))
    write_table(folder / f"scale_{rows}.npy", rows + TEST_ROWS)


def draw(points: dict[str, list[Point]], path: Path) -> None:
    """Draws each quantity against each size, with the exponent of the line through the points and that of theory."""
    with style.context():
        figure = style.figure(6.4, 7.0)
        axes = figure.subplots(len(QUANTITIES), 2, squeeze=False, sharex="col", sharey="row")
        for column, (size, series) in enumerate(points.items()):
            for row, (name, title) in enumerate(QUANTITIES.items()):
                axis, sizes = axes[row, column], np.array([getattr(point, size) for point in series])
                values = np.array([getattr(point, name) for point in series])
                axis.loglog(sizes, values, "o-", markersize=4)
                texts = [f"1e{len(str(n)) - 1}" if str(n).strip("0") == "1" else f"{n:,}" for n in sizes.tolist()]
                axis.set_xticks(sizes, texts)
                axis.xaxis.set_minor_locator(NullLocator())
                axis.yaxis.set_major_formatter(LogFormatter())
                axis.yaxis.set_minor_formatter(LogFormatter())
                text = f"exponent {exponent(sizes, values)}, theory {THEORY[size][name]}"
                axis.set_title(text, loc="left")
                if column == 0:
                    axis.set_ylabel(title)
            other = "inducing" if size == "rows" else "rows"
            names = {"rows": "training rows", "inducing": "inducing points"}
            axes[-1, column].set_xlabel(f"{names[size]} ({getattr(series[0], other):,} {names[other]})")
        figure.savefig(path, dpi=110)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--rows", type=float, nargs="+", default=[1e4, 1e5, 1e6], help="1e8 take 8.4 GB of disk")
    parser.add_argument("--inducing", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--devices", type=int, nargs="+", default=[], help="virtual ones, for the first rows and M")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for the tables")
    parser.add_argument("--out", type=Path, help="picture, as PNG or SVG")


def main(options: argparse.Namespace) -> None:
    sizes = sorted(map(int, options.rows))
    if (needed := 4 * (INPUTS + 1) * sum(sizes)) > (free := shutil.disk_usage(options.folder).free):
        sys.exit(f"the tables take {needed / 1e9:.1f} GB, and {options.folder} has {free / 1e9:.1f} GB free")
    points: dict[str, list[Point]] = {"rows": [], "inducing": []}
    print(f"batch {options.batch}, {options.steps} steps, one core, load {os.getloadavg()[0]:.1f}")
    print("      rows  inducing " + " ".join(f"{title:>17s}" for title in QUANTITIES.values()))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for rows in sizes:
            prepare(folder, rows)
            for inducing in options.inducing if rows == sizes[0] else options.inducing[:1]:
                steps = max(8, int(options.steps * (options.inducing[0] / inducing) ** 1.5))
                point = measure(folder, rows, inducing, steps, options.batch)
                points["rows"] += [point] if inducing == options.inducing[0] else []
                points["inducing"] += [point] if rows == sizes[0] else []
                print(f"{rows:10,d} {inducing:9,d} " + " ".join(f"{value:17,.1f}" for value in point[2:]), flush=True)
            if options.devices and rows == sizes[0]:
                efficiency(folder, rows, options.inducing[0], options.devices)
            (folder / f"scale_{rows}.npy").unlink()
    for size, series in points.items():
        for quantity, title in QUANTITIES.items():
            values = np.array([(getattr(p, size), getattr(p, quantity)) for p in series], float).T
            if len(series) > 1:
                print(f"{title} by {size}: exponent {exponent(*values)}, theory {THEORY[size][quantity]}")
    if options.out:
        draw(points, options.out)
