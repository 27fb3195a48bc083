"""`gpbench plot`: figures of papers, and of any runs, from what is recorded."""

import argparse
import sys
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
from gpbench.records.store import latest, recorded

_PRINTED = "printed"
"""Id of the figure of all recorded numbers against the printed ones."""


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "plot",
        description="Draw a paper's figure from recorded runs, the traces of runs beside each other, or of one run its"
        " predictions, calibration, residuals, relevance of inputs and learning curve, as PNG and PDF.",
        epilog="examples: gpbench plot sep/fig2 --out pictures; gpbench plot --last --kind calibration,learning;"
        " gpbench plot 3f2a 81c0 --metric rmse",
    )
    parser.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="id of a figure (`gpbench ls experiments`), or of runs, or their first digits (`gpbench ls runs`); or"
        " `printed`: our numbers against printed ones",
    )
    parser.add_argument("--last", action="store_true", help="the latest run")
    parser.add_argument(
        "--kind",
        metavar="A,B",
        help="of one run: pictures of these kinds, or all that suit it; default: the first, and what others need",
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

    if bool(args.ids) == args.last:
        raise ConfigError("give the id of a figure, or of runs, or --last; `gpbench ls runs` lists the runs")
    args.config_dir = targets.add_folders(args.config_dir)
    if args.ids == [_PRINTED]:
        return _plot_printed(args)
    if not any("/" in id for id in args.ids):
        return _plot_runs(args)
    id, *others = args.ids
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


def _plot_printed(args: argparse.Namespace) -> int:
    """Draws recorded numbers against printed ones."""
    from gpbench.analysis import printing, reproduction
    from gpbench.report import figures
    from gpbench.report.figures.printed import draw_printed

    records = latest(recorded(open_stores(args.results)))
    figure = draw_printed(reproduction.load_comparisons(records, args.config_dir))
    files = figures.save(figure, (args.out or args.results or paths.results_dir()) / _PRINTED)
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0})
    else:
        print(*files, sep="\n")
    return 0


def _plot_runs(args: argparse.Namespace) -> int:
    """Draws the traces of runs, or pictures of one run, into files named by the first id."""
    from gpbench.analysis import printing
    from gpbench.report import figures
    from gpbench.report.figures import offers, runs

    store = open_stores(args.results)[0]
    records = [store.last()] if args.last else [store.find(id) for id in dict.fromkeys(args.ids)]
    folder, lacks = args.out or args.results or paths.results_dir(), {}
    if len(records) > 1 or args.metric:
        if args.kind:
            raise ConfigError("--kind is for one run without --metric; several runs have their traces drawn")
        arrays = [store.trace(record.id) for record in records]
        figure = runs.draw_traces(records, arrays, args.metric.split(",") if args.metric else ())
        files = figures.save(figure, folder / (records[0].id + f"-and-{len(records) - 1}" * (len(records) > 1)))
    else:
        content, files = offers.RunContent.read(store, records[0]), []
        lacks = offers.kinds(content)
        suits = [name for name, lack in lacks.items() if not lack]
        for kind in suits if args.kind == "all" else args.kind.split(",") if args.kind else [offers.default(content)]:
            name = f"{records[0].id}-{kind}" if args.kind else records[0].id
            files += figures.save(offers.draw_kind(content, kind), folder / name)
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0, "kinds": lacks})
        return 0
    print(*files, sep="\n")
    if lacks and not args.kind:
        print(f"suits this run: --kind {','.join(suits)}, or all", file=sys.stderr)
        for name, lack in lacks.items():
            if lack:
                print(f"  {name} needs {lack}", file=sys.stderr)
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
