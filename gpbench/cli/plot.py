"""`gpbench plot`: figures of papers, and of single runs, from recorded runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.cli import selection
from gpbench.errors import ConfigError
from gpbench.experiments.definition import PRESETS, Experiment
from gpbench.experiments.status import Cell, absent


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "plot",
        help="figures of papers from recorded runs, or of one run",
        description="Draw a paper's figure from recorded runs, or what one run kept (run.keep=true), as PNG and PDF.",
        epilog="examples: gpbench plot sep/fig2 --out pictures; gpbench plot 3f2a",
    )
    parser.add_argument("id", metavar="ID", help="id of a figure (`gpbench ls experiments`) or of a run, or its first"
                        " digits (`gpbench ls runs`)")  # fmt: skip
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="default: quick")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help="default: the results folder")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own experiment/ files")  # fmt: skip
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON: the files and the number of missing runs")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError without a figure or records."""
    from gpbench.experiments import definition, plan

    if "/" not in args.id:
        return _plot_run(args)
    if not definition.read(args.id, args.config_dir).pictures:  # before its runs are planned, which takes long
        raise ConfigError(f"{args.id} is a table: gpbench table {args.id}")
    experiment, cells = plan.load(args.id, args.preset, args.config_dir, selection.open_one(args.results))
    files = plot(experiment, args.preset, cells, args.results or paths.results_dir(), args.out)
    if args.json:
        from gpbench.report import text

        missing = sum(len(cell.missing) for cell in cells)
        text.print_json({"files": [str(file) for file in files], "missing": missing})
        return 0
    say(files, cells)
    return 0


def _plot_run(args: argparse.Namespace) -> int:
    """Draws what one run kept, into files named by its id."""
    from gpbench.report import figures, text
    from gpbench.report.figures import run as of_run

    store = selection.open_one(args.results)
    record = store.find(args.id)
    columns = store.config(record["id"]).get("dataset", {}).get("columns") or ()
    figure = of_run.draw(record, store.trace(record["id"]), columns)
    files = figures.save(figure, (args.out or args.results or paths.results_dir()) / record["id"])
    if args.json:
        text.print_json({"files": [str(file) for file in files], "missing": 0})
    else:
        print(*files, sep="\n")
    return 0


def plot(experiment: Experiment, preset: str, cells: Sequence[Cell], results: Path, out: Path | None) -> list[Path]:
    """Draws the figures and saves each as PNG and PDF in `out`, by default the results folder; returns the files.

    They are named ID, or ID-NAME where a figure has a name.
    """
    from gpbench.records.collected import open_store
    from gpbench.report import figures

    arrays = open_store(results).trace
    files = []
    for name, picture in experiment.pictures.items():
        figure = figures.draw(picture, preset, cells, arrays)
        files += figures.save(figure, (out or results) / "-".join(filter(None, [experiment.id, name])))
    return files


def say(files: Sequence[Path], cells: Sequence[Cell]) -> None:
    """Prints the files, and which runs of these cells are missing."""
    if line := absent(cells):
        print(line)
    print(*files, sep="\n")
