"""The sections of an experiment's page, one for each preset: its figures and its table, which are also files."""

import io
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis import leaderboard_sheet
from gpbench.analysis.agreement import agreement
from gpbench.analysis.cells import entry_notes
from gpbench.analysis.formats import rows_as_csv
from gpbench.analysis.tables import row, seconds_notes
from gpbench.errors import ConfigError
from gpbench.experiments import plan
from gpbench.experiments.definition import Experiment
from gpbench.experiments.layout import FIGURES
from gpbench.report.site.facts import Facts, PlannedExperiment

if TYPE_CHECKING:
    from gpbench.report.figures.style import Picture

_Section = tuple[dict[str, Any], dict[str, bytes]]


def section(facts: Facts, planned: PlannedExperiment, stem: str, *, with_figures: bool = True) -> _Section:
    """The section of one preset: its values by name, as `experiment.html` has them, and its files by path."""
    experiment, name = planned.experiment, f"{stem}-{planned.preset}"
    missing = [cell for cell in planned.cells if cell.missing]
    values: dict[str, Any] = {
        "planned": planned,
        "preset_lines": plan.preset_lines(planned.cells, planned.preset),
        "figures": [],
        "undrawn": [],
        "boards": [],
        "incomplete": [*zip(plan.all_names(missing, planned.cells), missing)],
        "grids": (),
        "blocks": (),
    }
    files: dict[str, bytes] = {}
    for label, picture in experiment.pictures.items() if planned.n_recorded and with_figures else ():
        try:
            figure, drawn_files = _figure(facts, picture, planned, name, label)
        except ConfigError as error:  # all of its runs diverged, none kept its arrays, or no methods to rank
            values["undrawn"].append(str(error))
            continue
        values["figures"].append({"title": picture.title, **figure})
        files |= drawn_files
    for board in facts.boards if planned.preset == "full" else ():
        if board.division.experiment == experiment.id:
            from gpbench.report.figures.comparisons import draw_board

            values["boards"].append((leaderboard_sheet.sheet(board, whole=True), f"{name}.svg"))
            files[f"{name}.svg"] = drawn(draw_board(board))
    with suppress(ConfigError) if experiment.table.get("kind") == "ranks" else nullcontext():  # no methods to rank
        if planned.n_recorded and experiment.table:
            table, rows = _table(planned)
            values |= {**table, "csv": f"{name}.csv"}
            files[f"{name}.csv"] = (rows_as_csv(rows) + "\n").encode()
    return values, files


def _figure(facts: Facts, picture: Experiment, planned: PlannedExperiment, name: str, label: str) -> _Section:
    """The values of a figure for `experiment.html`, and its file: of runs that ship with gpbench the committed one."""
    source, format = facts.figures.get((picture.id, label)), FIGURES[picture.figure["kind"]].format
    records = (record for cell in planned.cells for record in cell.records)
    shipped = source and all((record.id, record.created) in facts.shipped for record in records)
    with suppress(ConfigError) if source else nullcontext():
        if not shipped:
            from gpbench.report import figures  # takes a third of a second

            figure = figures.draw(picture, planned.preset, planned.cells, facts.trace)
            file = f"{'-'.join(filter(None, [name, label]))}.{format}"
            return {"file": file, "notes": figure.notes, "committed": False}, {file: drawn(figure, format)}
    assert source
    file = f"{name.removesuffix(f'-{planned.preset}')}{label and '-'}{label}.webp"
    return {"file": file, "notes": (), "committed": True}, {file: _smaller(source)}


def _table(planned: PlannedExperiment) -> tuple[dict[str, Any], Sequence[Mapping[str, object]]]:
    """The values of a table for `experiment.html`, and its rows for a file.  Raises ConfigError: no methods to rank."""
    if planned.experiment.table.get("kind") == "ranks":
        sheet = experiment_tables.table(planned.experiment, planned.preset, planned.cells)
        return {"grids": sheet.grids, "feet": sheet.lines}, sheet.rows
    table_blocks = experiment_tables.table_blocks(planned.experiment, planned.cells)
    entries = [entry for block in table_blocks for entry in block.entries]
    made_with = experiment_tables.facts(planned.experiment, planned.preset, planned.cells)
    values = {
        "blocks": experiment_tables.held_out_first(table_blocks),
        "columns": experiment_tables.column_labels(planned.experiment, planned.cells),
        "footnotes": entry_notes(entries),
        "verdict": agreement(entries),
        "provenance": [*seconds_notes(entries), *(f"{name}: {text}" for name, text in made_with.items())],
    }
    return values, [*map(row, entries)]


def _smaller(picture: Path) -> bytes:
    """A committed picture, a third as large."""
    from PIL import Image

    file = io.BytesIO()
    with Image.open(picture) as image:
        image.convert("RGB").save(file, "webp", quality=82, method=2)
    return file.getvalue()


def drawn(figure: "Picture", format: str = "svg") -> bytes:
    """The content of a figure, of which a vector picture follows the page's colours."""
    from gpbench.report.figures import encode, style

    picture = encode(figure, format)
    return style.follow(picture) if format == "svg" else picture
