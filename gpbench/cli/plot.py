"""`gpbench plot`: figures of papers, and of any runs, from what is recorded."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpbench import targets
from gpbench.cli import options
from gpbench.errors import AbsentError, ConfigError, StorageError
from gpbench.experiments.definition import PRESETS, Experiment
from gpbench.experiments.kinds import FIGURES
from gpbench.experiments.status import Cell, absent
from gpbench.records import first_answer
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import union

_PRINTED = "printed"
"""Id of the figure of all recorded numbers against the printed ones."""
_SUBJECTS = {"kind": "runs", "metric": "runs", "preset": "figures", "all_settings": "figures"}
"""What each option is for."""


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
    parser.add_argument("--preset", choices=PRESETS, help="default: that of which a larger share is recorded")
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
    has_ids = all(re.fullmatch("[0-9a-f]+", id) for id in args.ids)
    subject = _PRINTED if args.ids == [_PRINTED] else "runs" if has_ids else "figures"
    _check_options(args, subject)
    if args.out and args.out.is_file():
        raise StorageError(f"--out {args.out} is a file: pictures go into a folder")
    if subject == _PRINTED:
        return _plot_printed(args)
    if subject == "runs":
        return _plot_runs(args)
    id, *others = args.ids
    if others:
        raise ConfigError(f"one figure at a time, or several runs: {' '.join(args.ids)} is neither")
    experiment = definition.read(id, args.config_dir)
    if not experiment.pictures:  # before its runs are planned, which takes long
        raise ConfigError(f"{id} is a table: gpbench table {id}")

    def planned(stores: list[Store]) -> tuple[Store, str, list[Cell]]:
        store = union(stores)
        return store, *plan.load_recorded(experiment, args.preset, args.config_dir, store)

    store, preset, cells = first_answer(options.results(args), planned)
    folder = args.out or options.output_folder(args)
    files = plot(experiment, preset, cells, store, folder, all_settings=args.all_settings)
    if args.json:
        from gpbench.analysis import printing

        missing = sum(len(cell.missing) for cell in cells)
        printing.print_json({"files": [str(file) for file in files], "missing": missing})
        return 0
    say(files, cells)
    return 0


def _check_options(args: argparse.Namespace, subject: str) -> None:
    """Raises ConfigError for an option that is for another subject."""
    if unread := [name for name, other in _SUBJECTS.items() if other != subject and getattr(args, name)]:
        option = unread[0].replace("_", "-")
        raise ConfigError(f"--{option} is for {_SUBJECTS[unread[0]]}, and not for {subject}: leave it out")


def _plot_printed(args: argparse.Namespace) -> int:
    """Draws recorded numbers against printed ones."""
    from gpbench.analysis import printing, reproduction
    from gpbench.report import figures
    from gpbench.report.figures.printed import draw_printed

    def compared(stores: list[Store]) -> list[reproduction.Comparison]:
        return reproduction.load_comparisons(latest(recorded(stores)), args.config_dir)

    figure = draw_printed(first_answer(options.results(args), compared, lambda answer: not answer))
    files = figures.save(figure, (args.out or options.output_folder(args)) / _PRINTED)
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0})
    else:
        print(*files, sep="\n")
    return 0


def _plot_runs(args: argparse.Namespace) -> int:
    """Draws the traces of runs, or pictures of one run, into files named by the first id."""
    from gpbench.analysis import printing
    from gpbench.report import figures
    from gpbench.report.figures.runs import draw_traces

    def find(stores: list[Store]) -> tuple[Store, list[Record]]:
        store = union(stores)
        return store, [store.last()] if args.last else [store.find(id) for id in dict.fromkeys(args.ids)]

    try:
        store, records = first_answer(options.results(args), find)
    except AbsentError as error:
        if args.last:
            raise
        raise AbsentError(f"{error}; of figures, `gpbench ls experiments`") from error
    folder = args.out or options.output_folder(args)
    lacks: dict[str, str] = {}
    if len(records) == 1 and not args.metric:
        files, lacks = plot_run(store, records[0], args.kind, folder)
    elif args.kind:
        raise ConfigError("--kind is for one run without --metric; several runs have their traces drawn")
    else:
        arrays = [store.trace(record.id) for record in records]
        figure = draw_traces(records, arrays, args.metric.split(",") if args.metric else ())
        files = figures.save(figure, folder / (records[0].id + f"-and-{len(records) - 1}" * (len(records) > 1)))
    if args.json:
        printing.print_json({"files": [str(file) for file in files], "missing": 0, "kinds": lacks})
        return 0
    print(*files, sep="\n")
    if lacks and not args.kind:
        suits = ",".join(name for name, lack in lacks.items() if not lack)
        lines = [f"suits this run: --kind {suits}, or all"]
        lines += [f"  {name} needs {lack}" for name, lack in lacks.items() if lack]
        print(*lines, sep="\n", file=sys.stderr)
    return 0


def check_kinds(kinds: str) -> None:
    """Raises ConfigError for kinds of pictures, with commas between them, of which there is not one; "all" is one."""
    from gpbench.report.figures import offers

    for kind in kinds.split(",") if kinds != "all" else ():
        offers.check_kind(kind)


def plot_run(store: Store, record: Record, kind: str | None, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Draws pictures of a run and saves them in a folder.  Returns the files, and what each kind needs that the run
    lacks ("" for those that suit it).
    """
    from gpbench.report import figures
    from gpbench.report.figures import offers

    content = offers.RunContent.read(store, record)
    lacks = offers.kinds(content)
    if kind is None:
        return figures.save(offers.draw_kind(content, offers.default(content)), folder / record.id), lacks
    names = offers.suitable_kinds(content) if kind == "all" else kind.split(",")
    drawn = {name: offers.draw_kind(content, name) for name in names}
    return [
        file for name, figure in drawn.items() for file in figures.save(figure, folder / f"{record.id}-{name}")
    ], lacks


def plot(
    experiment: Experiment, preset: str, cells: Sequence[Cell], store: Store, out: Path, *, all_settings: bool = False
) -> list[Path]:
    """Draws the figures from the records and traces of a store, and saves each in `out`.  Returns the files: PNG, PDF,
    and Markdown where notes stand beside the figure.
    """
    from gpbench.report import figures

    files = []
    for name, picture in experiment.pictures.items():
        if all_settings and "settings" in FIGURES[picture.figure["kind"]].optional:
            picture = replace(picture, figure={**picture.figure, "settings": "all"})
        figure = figures.draw(picture, preset, cells, store.trace)
        files += figures.save(figure, out / "-".join(filter(None, [experiment.id, name])))
    return files


def say(files: Sequence[Path], cells: Sequence[Cell]) -> None:
    """Prints the files, and which runs of these cells are missing."""
    if line := absent(cells):
        print(line)
    print(*files, sep="\n")
