"""`gpbench plot`: figures of papers, and of any runs, from what is recorded."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.api.selection import open_stores
from gpbench.cli import options
from gpbench.errors import ConfigError
from gpbench.experiments.definition import PRESETS, Experiment
from gpbench.experiments.kinds import FIGURES
from gpbench.experiments.status import Cell, absent
from gpbench.records.arrays import KEPT


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
    parser.add_argument(
        "--all-settings", action="store_true", help="of ranks and dots: every setting of a method; default: one"
    )
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="default: quick")
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
    if not definition.read(id, args.config_dir).pictures:  # before its runs are planned, which takes long
        raise ConfigError(f"{id} is a table: gpbench table {id}")
    experiment, cells = plan.load(id, args.preset, args.config_dir, open_stores(args.results)[0])
    settings = "all" if args.all_settings else None
    files = plot(experiment, args.preset, cells, args.results or paths.results_dir(), args.out, settings)
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

    store = open_stores(args.results)[0]
    records = [store.find(id) for id in dict.fromkeys(args.ids)]
    arrays = [store.trace(record.id) for record in records]
    if len(records) == 1 and not args.metric and any(name.startswith(KEPT) for name in arrays[0]):
        columns = store.config(records[0].id).get("dataset", {}).get("columns") or ()
        figure = draw_run(records[0], arrays[0], columns)
    else:
        figure = draw_traces(records, arrays, args.metric.split(",") if args.metric else ())
    name = records[0].id + f"-and-{len(records) - 1}" * (len(records) > 1)
    files = figures.save(figure, (args.out or args.results or paths.results_dir()) / name)
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0})
    else:
        print(*files, sep="\n")
    return 0


def plot(
    experiment: Experiment,
    preset: str,
    cells: Sequence[Cell],
    results: Path,
    out: Path | None,
    settings: str | None = None,
) -> list[Path]:
    """Draws the figures and saves each in `out`, by default the results folder.

    Args:
        experiment, preset, cells: As for `figures.draw`.
        results: Results folder or collection with the arrays of the runs.
        out: Folder of the files, which are named ID, or ID-NAME where a figure has a name.
        settings: "all" for every setting of a method in ranks and dots; None is as the figure says.

    Returns:
        The files: PNG, PDF, and Markdown where notes stand beside the figure.
    """
    from gpbench.records.collection import open_store
    from gpbench.report import figures

    arrays = open_store(results).trace
    files = []
    for name, picture in experiment.pictures.items():
        if settings and "settings" in FIGURES[picture.figure["kind"]].optional:
            picture = replace(picture, figure={**picture.figure, "settings": settings})
        figure = figures.draw(picture, preset, cells, arrays)
        files += figures.save(figure, (out or results) / "-".join(filter(None, [experiment.id, name])))
    return files


def say(files: Sequence[Path], cells: Sequence[Cell]) -> None:
    """Prints the files, and which runs of these cells are missing."""
    if line := absent(cells):
        print(line)
    print(*files, sep="\n")
