"""`gpbench plot`: a paper's figure, from the records that are there."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError
from gpbench.experiments.definition import PRESETS
from gpbench.experiments.status import Cell, absent


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "plot",
        help="a paper's figure from the recorded runs",
        description="Draw a paper's figure as PNG and PDF, from the records that are there.",
        epilog="example: gpbench plot sep/fig2 --out pictures",
    )
    parser.add_argument("experiment", metavar="ID", help="which figure: `gpbench ls experiments` lists them")
    parser.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="default: quick")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR", help="where to; default: the results folder")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own experiment/ files")  # fmt: skip
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON: the files, and how many runs are missing")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError where the experiment has no figure, or nothing is recorded."""
    from gpbench.experiments import plan

    experiment, found = plan.load(args.experiment, args.preset, args.config_dir, args.results)
    if not experiment.figure:
        raise ConfigError(f"{experiment.id} is a table: gpbench table {experiment.id}")
    files = plot(experiment, args.preset, found, args.results or paths.results_dir(), args.out)
    if args.json:
        from gpbench.report import text

        missing = sum(len(cell.missing) for cell in found)
        text.as_json({"files": [str(file) for file in files], "missing": missing})
        return 0
    say(files, found)
    return 0


def plot(experiment: Any, preset: str, found: Sequence[Cell], results: Path, out: Path | None) -> list[Path]:
    """Draws and saves the figure: `out` (or the results folder)/ID.png and .pdf."""
    from gpbench.records.collected import open_store
    from gpbench.report import figures

    figure = figures.draw(experiment, preset, found, open_store(results).trace)
    return figures.save(figure, (out or results) / experiment.id)


def say(files: Sequence[Path], found: Sequence[Cell]) -> None:
    """Print the files, and what is missing from them."""
    if line := absent(found):
        print(line)
    print(*files, sep="\n")
