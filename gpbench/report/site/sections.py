"""The sections of an experiment's page, one for each preset: its figures and its table, which are also files."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis.agreement import agreement
from gpbench.analysis.notes import provenance_footer
from gpbench.analysis.sheets import Sheet
from gpbench.analysis.tables import notes, seconds_notes
from gpbench.analysis.writers import as_csv
from gpbench.errors import ConfigError
from gpbench.experiments import status
from gpbench.experiments.definition import Experiment
from gpbench.experiments.kinds import FIGURES
from gpbench.report import figures
from gpbench.report.figures import style
from gpbench.report.site import views
from gpbench.report.site.facts import Facts, PlannedExperiment


def section(
    facts: Facts, planned: PlannedExperiment, stem: str, *, drawn: bool = True
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Makes the section of one preset.

    Args:
        facts: The content of the site.
        planned: The experiment under this preset, with its cells.
        stem: Path of the experiment's page from the root of the site, without its ending.
        drawn: Whether to draw its figures.

    Returns:
        The values of the section by name, as `experiment.html` has them; and its files by path.
    """
    experiment = planned.experiment
    name = f"{stem}-{planned.preset}"
    pictures: dict[str, tuple[str, Sequence[str]]] = {}
    undrawn: list[str] = []
    committed: dict[str, str] = {}
    files: dict[str, bytes] = {}
    table: dict[str, Any] = {"grids": (), "blocks": ()}
    for label, picture in experiment.pictures.items() if planned.n_recorded and drawn else ():
        format = FIGURES[picture.figure["kind"]].format
        try:
            content, notes = _picture(facts, picture, planned, format)
        except ConfigError as error:  # all of its runs diverged, none kept its arrays, or no methods to rank
            file = f"{stem}{label and '-'}{label}.webp"
            if source := facts.figures.get((experiment.id, label)):
                committed[file] = picture.title
                files[file] = _smaller(source)
            else:
                undrawn.append(str(error))
            continue
        file = f"{'-'.join(filter(None, [name, label]))}.{format}"
        pictures[file] = (picture.title, notes)
        files[file] = content
    if planned.n_recorded and experiment.table and (sheet := _sheet(planned)):
        if experiment.table.get("kind") == "ranks":
            table |= {"grids": sheet.grids, "feet": sheet.lines}
        else:
            table |= _table(facts, planned)
        table["csv"] = f"{name}.csv"
        files[table["csv"]] = (as_csv(sheet) + "\n").encode()
    words = experiment.presets.get(planned.preset, "")
    incomplete = [(status.names(cell, planned.cells), cell) for cell in planned.cells if cell.missing]
    return {
        "planned": planned,
        "preset_line": status.preset_line(planned.cells, planned.preset, words),
        "pictures": pictures,
        "committed": committed,
        "undrawn": undrawn,
        "incomplete": incomplete,
        **table,
    }, files


def _table(facts: Facts, planned: PlannedExperiment) -> dict[str, Any]:
    table_blocks = experiment_tables.table_blocks(planned.experiment, planned.cells)
    entries = [entry for block in table_blocks for entry in block.entries]
    footnotes = notes(entries)

    def rows(block: experiment_tables.Block) -> dict[str, dict[str, views.View]]:
        return {
            name: {column: views.view(entry, facts.page_of, footnotes) for column, entry in row.items()}
            for name, row in block.rows.items()
        }

    records = [record for cell in planned.cells for record in cell.records]
    return {
        "blocks": [(block.title, rows(block)) for block in table_blocks],
        "columns": experiment_tables.column_labels(planned.experiment, planned.cells),
        "footnotes": footnotes,
        "verdict": agreement(entries),
        "provenance": [*seconds_notes(entries), *provenance_footer(records)],
    }


def _sheet(planned: PlannedExperiment) -> Sheet | None:
    try:
        return experiment_tables.table(planned.experiment, planned.preset, planned.cells)
    except ConfigError:  # no methods to rank
        return None


def _smaller(picture: Path) -> bytes:
    """A committed picture, a third as large."""
    file = io.BytesIO()
    with Image.open(picture) as image:
        image.convert("RGB").save(file, "webp", quality=82, method=2)
    return file.getvalue()


def _picture(facts: Facts, picture: Experiment, planned: PlannedExperiment, format: str) -> tuple[bytes, Sequence[str]]:
    """The content of a picture's file, and the notes that stand beside it."""
    figure = figures.draw(picture, planned.preset, planned.cells, facts.trace)
    file = io.BytesIO()
    figures.write(figure, file, format)
    return style.follow(file.getvalue()) if format == "svg" else file.getvalue(), figure.notes
