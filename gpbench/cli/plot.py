"""`gpbench plot`: figures of papers, and of any runs, from what is recorded."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gpbench.cli.output import Answer, Named, output_folder
from gpbench.errors import AbsentError, ConfigError, StorageError, require
from gpbench.experiments.definition import Experiment
from gpbench.experiments.layout import FIGURES
from gpbench.experiments.plan import Cell, absent
from gpbench.log import is_quiet
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import first_answer, union

_PRINTED = "printed"  # id of the figure of all recorded numbers against the printed ones


def plot(
    *ids: str,
    last: bool = False,
    kind: str | None = None,
    metric: str | None = None,
    all_settings: bool = False,
    preset: Literal["quick", "full"] | None = None,
    out: Path | None = None,
    config_dir: Sequence[Path] = (),
    results: Named = None,
) -> Answer:
    """Draw a paper's figure from recorded runs, the traces of runs beside each other, or of one run its predictions,
    calibration, residuals, relevance of inputs and learning curve, as PNG and PDF.

    Args:
        ids (ID): id of a figure (`gpbench ls experiments`), or of runs, or their first digits (`gpbench ls runs`); or
            `printed`: our numbers against printed ones
        kind (A,B): of one run: pictures of these kinds, or all that suit it; default: the first, and what others need
        metric (A,B): of runs: a panel for each; default: the objective and three
        all_settings: of ranks and dots: every setting of a method; default: one
        preset: default: that of which a larger share is recorded
        out (DIR): default: the results folder
        config_dir: a folder with your own experiment/ files
        json: print JSON: the files and the number of missing runs

    examples:
      gpbench plot sep/fig2 --out pictures
      gpbench plot --last --kind calibration,learning
      gpbench plot 3f2a 81c0 --metric rmse
    """
    fault = "give the id of a figure, or of runs, or --last; `gpbench ls runs` lists the runs"
    require(bool(ids) != last, fault, ConfigError)
    of_runs = all(re.fullmatch("[0-9a-f]+", id) for id in ids)
    subject = _PRINTED if ids == (_PRINTED,) else "runs" if of_runs else "figures"
    subjects = {"kind": "runs", "metric": "runs", "preset": "figures", "all-settings": "figures"}
    for (name, other), value in zip(subjects.items(), (kind, metric, preset, all_settings)):
        is_fit = not value or other == subject
        require(is_fit, f"--{name} is for {other}, and not for {subject}: leave it out", ConfigError)
    require(not (out and out.is_file()), f"--out {out} is a file: pictures go into a folder", StorageError)
    folder = out or output_folder(results)
    cells: list[Cell] = []
    lacks: dict[str, str] = {}
    if subject == _PRINTED:
        from gpbench.analysis.reproduction import load_reproductions
        from gpbench.report import figures
        from gpbench.report.figures.printed import draw_printed

        load = lambda stores: load_reproductions(latest(recorded(stores)), config_dir)
        files = figures.save(draw_printed(first_answer(results, load, lambda answer: not answer)), folder / _PRINTED)
    elif subject == "runs":
        files, lacks = _draw_runs(ids, kind, metric, folder, results)
    else:
        files, cells = _draw_figures(ids, preset, all_settings, config_dir, folder, results)
    data = {"files": [str(file) for file in files], "missing": sum(len(cell.missing) for cell in cells)}
    return Answer(data | ({"kinds": lacks} if subject == "runs" else {}), summary(files, cells))


def _draw_figures(
    ids: Sequence[str], preset: str | None, all_settings: bool, folders: Sequence[Path], folder: Path, results: Named
) -> tuple[list[Path], list[Cell]]:
    from gpbench.experiments import definition, plan

    require(len(ids) == 1, f"one figure at a time, or several runs: {' '.join(ids)} is neither", ConfigError)
    experiment = definition.read(ids[0], folders)
    # before its runs are planned, which takes long
    require(experiment.pictures, f"{ids[0]} is a table: gpbench table {ids[0]}", ConfigError)

    def planned(stores: list[Store]) -> tuple[Store, str, list[Cell]]:
        store = union(stores)
        return store, *plan.load_recorded(experiment, preset, folders, store)

    store, preset, cells = first_answer(results, planned)
    return save_figures(experiment, preset, cells, store, folder, all_settings=all_settings), cells


def _draw_runs(
    ids: Sequence[str], kind: str | None, metric: str | None, folder: Path, results: Named
) -> tuple[list[Path], dict[str, str]]:
    """Draws the traces of runs, or pictures of one run, by default the latest, into files named by the first id."""
    from gpbench.report import figures
    from gpbench.report.figures.runs import draw_traces

    def find(stores: list[Store]) -> tuple[Store, list[Record]]:
        store = union(stores)
        return store, [store.find(id) for id in dict.fromkeys(ids)] or [store.last()]

    try:
        store, records = first_answer(results, find)
    except AbsentError as error:
        if not ids:
            raise
        raise AbsentError(f"{error}; of figures, `gpbench ls experiments`") from error
    if len(records) == 1 and not metric:
        files, lacks = plot_run(store, records[0], kind, folder)
        if not kind and not is_quiet():
            suits = ",".join(name for name, lack in lacks.items() if not lack)
            lines = [f"  {name} needs {lack}" for name, lack in lacks.items() if lack]
            print(f"suits this run: --kind {suits}, or all", *lines, sep="\n", file=sys.stderr)
        return files, lacks
    require(not kind, "--kind is for one run without --metric; several runs have their traces drawn", ConfigError)
    figure = draw_traces(records, [store.trace(record.id) for record in records], metric.split(",") if metric else ())
    others = f"-and-{len(records) - 1}" if len(records) > 1 else ""
    return figures.save(figure, folder / f"{records[0].id}{others}"), {}


def plot_run(store: Store, record: Record, kind: str | None, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Draws pictures of a run into a folder.  Returns the files, and what each kind needs that the run lacks."""
    from gpbench.report import figures
    from gpbench.report.figures import offers

    content = offers.RunContent.read(store, record)
    lacks = offers.kinds(content)
    if kind is None:
        return figures.save(offers.draw_kind(content, offers.default(content)), folder / record.id), lacks
    names = offers.suitable_kinds(content) if kind == "all" else kind.split(",")
    drawn = {name: offers.draw_kind(content, name) for name in names}  # all of them, before any is saved
    pictures = [figures.save(figure, folder / f"{record.id}-{name}") for name, figure in drawn.items()]
    return [file for files in pictures for file in files], lacks


def save_figures(
    experiment: Experiment, preset: str, cells: Sequence[Cell], store: Store, out: Path, *, all_settings: bool = False
) -> list[Path]:
    """Draws the figures of an experiment into a folder: PNG, PDF, and Markdown where notes stand beside one."""
    from gpbench.report import figures

    files = []
    for name, picture in experiment.pictures.items():
        if all_settings and "settings" in FIGURES[picture.figure["kind"]].optional:
            picture = replace(picture, figure={**picture.figure, "settings": "all"})
        figure = figures.draw(picture, preset, cells, store.trace)
        files += figures.save(figure, out / "-".join(filter(None, [experiment.id, name])))
    return files


def summary(files: Sequence[Path], cells: Sequence[Cell]) -> str:
    """The files, after a line on which runs of these cells are missing."""
    return "\n".join(filter(None, [absent(cells), *map(str, files)]))
