"""`gpbench plot`: figures of papers, and of any runs, from what is recorded."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import targets
from gpbench.cli import options
from gpbench.errors import ConfigError
from gpbench.experiments.definition import PRESETS, Experiment
from gpbench.experiments.status import Cell, absent
from gpbench.records import answered
from gpbench.records.arrays import KEPT
from gpbench.records.record import Record
from gpbench.records.several import merged
from gpbench.records.store import Store


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "plot",
        description="Draw a paper's figure from recorded runs, or the traces of runs, as PNG and PDF; of one run that"
        " kept its arrays (run.keep=true) its fit.",
        epilog="examples: gpbench plot sep/fig2 --out pictures; gpbench plot 3f2a 81c0 --metric rmse",
    )
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="id of a figure (`gpbench ls experiments`), or of runs, or their first digits (`gpbench ls runs`)",
    )
    parser.add_argument("--metric", metavar="A,B", help="of runs: a panel for each; default: the objective and three")
    parser.add_argument("--preset", choices=PRESETS, help="default: that of which a larger share is recorded")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help="default: the results folder")
    options.add_config_dir(parser, "experiment/ files")
    options.add_results(parser)
    options.add_json(parser, "the files and the number of missing runs")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError without a figure or records."""
    from gpbench.experiments import definition, plan

    id, *others = args.ids
    args.config_dir = targets.add_folders(args.config_dir)
    if not any("/" in id for id in args.ids):
        return _plot_runs(args)
    if others:
        raise ConfigError(f"one figure at a time, or several runs: {' '.join(args.ids)} is neither")
    experiment = definition.read(id, args.config_dir)
    if not experiment.pictures:  # before its runs are planned, which takes long
        raise ConfigError(f"{id} is a table: gpbench table {id}")

    def planned(stores: list[Store]) -> tuple[Store, str, list[Cell]]:
        store = merged(stores)
        return store, *plan.load_recorded(experiment, args.preset, args.config_dir, store)

    store, preset, cells = answered(options.results(args), planned)
    files = plot(experiment, preset, cells, store, args.out or options.results_folder(args))
    if args.json:
        from gpbench.analysis import printing

        missing = sum(len(cell.missing) for cell in cells)
        printing.print_json({"files": [str(file) for file in files], "missing": missing})
        return 0
    say(files, cells)
    return 0


def _plot_runs(args: argparse.Namespace) -> int:
    """Draws the traces of runs, or of one run what it kept, into files named by the first id."""
    from gpbench.analysis import printing
    from gpbench.report import figures
    from gpbench.report.figures.runs import draw_run, draw_traces

    def find(stores: list[Store]) -> tuple[Store, list[Record]]:
        store = merged(stores)
        return store, [store.find(id) for id in dict.fromkeys(args.ids)]

    store, records = answered(options.results(args), find)
    arrays = [store.trace(record.id) for record in records]
    if len(records) == 1 and not args.metric and any(name.startswith(KEPT) for name in arrays[0]):
        columns = store.config(records[0].id).get("dataset", {}).get("columns") or ()
        figure = draw_run(records[0], arrays[0], columns)
    else:
        figure = draw_traces(records, arrays, args.metric.split(",") if args.metric else ())
    name = records[0].id + f"-and-{len(records) - 1}" * (len(records) > 1)
    files = figures.save(figure, (args.out or options.results_folder(args)) / name)
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0})
    else:
        print(*files, sep="\n")
    return 0


def plot(experiment: Experiment, preset: str, cells: Sequence[Cell], store: Store, out: Path) -> list[Path]:
    """Draws the figures from the records and traces of a store, saves each as PNG and PDF, and returns the files.

    They are named ID, or ID-NAME where a figure has a name.
    """
    from gpbench.report import figures

    files = []
    for name, picture in experiment.pictures.items():
        figure = figures.draw(picture, preset, cells, store.trace)
        files += figures.save(figure, out / "-".join(filter(None, [experiment.id, name])))
    return files


def say(files: Sequence[Path], cells: Sequence[Cell]) -> None:
    """Prints the files, and which runs of these cells are missing."""
    if line := absent(cells):
        print(line)
    print(*files, sep="\n")
