"""The sections of an experiment's page, one for each preset: its figures and its table, which are also files."""

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis import rankings
from gpbench.analysis.agreement import agreement
from gpbench.analysis.cells import entry_notes
from gpbench.analysis.formats import rows_as_csv
from gpbench.analysis.provenance import provenance_footer
from gpbench.analysis.tables import seconds_notes
from gpbench.errors import ConfigError
from gpbench.experiments import status
from gpbench.experiments.definition import Experiment
from gpbench.experiments.kinds import FIGURES
from gpbench.report import dots
from gpbench.report.site import charts, views
from gpbench.report.site.facts import Facts, PlannedExperiment, page

_Rows = Sequence[Mapping[str, object]]
"""Numbers of a table, for a file."""


def section(
    facts: Facts, planned: PlannedExperiment, stem: str, *, drawn: bool = True
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Makes the section of one preset.  Returns the values of the section by name, as `experiment.html` has them; and
    its files by path.
    """
    experiment = planned.experiment
    name = f"{stem}-{planned.preset}"
    pictures: list[Mapping[str, Any]] = []
    undrawn: list[str] = []
    files: dict[str, bytes] = {}
    table: dict[str, Any] = {"grids": (), "blocks": ()}
    for label, picture in experiment.pictures.items() if planned.n_recorded and drawn else ():
        try:
            values, more = _figure(facts, picture, planned, name, label)
        except ConfigError as error:  # all of its runs diverged, none kept its arrays, or no methods to rank
            undrawn.append(str(error))
            continue
        pictures.append({"title": picture.title, **values})
        files |= more
    if planned.n_recorded and experiment.table:
        values, rows = (_ranks_table if experiment.table.get("kind") == "ranks" else _table)(facts, planned)
        if values:
            table |= values | {"csv": f"{name}.csv"}
            files[table["csv"]] = (rows_as_csv(rows) + "\n").encode()
    words = experiment.presets.get(planned.preset, "")
    missing = [cell for cell in planned.cells if cell.missing]
    incomplete = [*zip(status.all_names(missing, planned.cells), missing)]
    return {
        "planned": planned,
        "preset_line": status.preset_line(planned.cells, planned.preset, words),
        "figures": pictures,
        "undrawn": undrawn,
        "incomplete": incomplete,
        **table,
    }, files


def _figure(
    facts: Facts, picture: Experiment, planned: PlannedExperiment, name: str, label: str
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The values of a figure for `experiment.html`, and its files.

    Dots and ranks are drawn by the page, and of runs that ship with gpbench the committed figures are shown; only what
    is left needs Matplotlib.
    """
    kind = picture.figure["kind"]
    if charted := _CHARTS.get(kind):
        options = {"settings": rankings.MAIN, **picture.figure}
        status.require_recorded(picture.id, planned.preset, planned.cells)
        charts_, notes_ = charted(facts, picture, planned, options)
        return {"kind": kind, "charts": charts_, "notes": notes_}, {}
    source, format = facts.figures.get((picture.id, label)), FIGURES[kind].format
    shipped = source and facts.are_shipped(record for cell in planned.cells for record in cell.records)
    try:
        content, lines = (b"", ()) if shipped else _drawn(facts, picture, planned, format)
    except ConfigError:
        if not source:
            raise
        content = b""
    if content or not source:
        file = f"{'-'.join(filter(None, [name, label]))}.{format}"
        return {"kind": "drawn", "file": file, "notes": lines}, {file: content}
    file = f"{name.removesuffix(f'-{planned.preset}')}{label and '-'}{label}.webp"
    return {"kind": "committed", "file": file, "notes": ()}, {file: _smaller(source)}


def _dots(
    facts: Facts, picture: Experiment, planned: PlannedExperiment, options: Mapping[str, Any]
) -> tuple[dict[str, charts.Dots], list[str]]:
    """The dots of each data set, and the notes beside them."""
    metric = options["metric"]
    rows = rankings.selected_rows(picture, planned.cells, options, metric)
    pages = defaultdict(lambda: page("experiment", picture.id), facts.page_of)  # runs within a budget have none
    drawn = {dataset: charts.dots(row, pages, targets=True) for dataset, row in rows.items()}
    lines = [*dots.notes(rows, metric), *rankings.settings_notes(options)]
    return {dataset: chart for dataset, chart in drawn.items() if chart}, lines[1:]


def _ranks(
    facts: Facts, picture: Experiment, planned: PlannedExperiment, options: Mapping[str, Any]
) -> tuple[list[rankings.SetRanking], list[str]]:
    """The rankings, and the notes beside their diagrams."""
    results = rankings.rankings(picture, planned.cells, options)
    return results, [*rankings.shared_notes(results), *rankings.settings_notes(options)]


_CHARTS = {"dots": _dots, "ranks": _ranks}
"""Functions of the kinds of figures that the page itself draws."""


def _table(facts: Facts, planned: PlannedExperiment) -> tuple[dict[str, Any], _Rows]:
    """The values of a table for `experiment.html`, and its rows for a file."""
    table_blocks = experiment_tables.table_blocks(planned.experiment, planned.cells)
    entries = [entry for block in table_blocks for entry in block.entries]
    footnotes = entry_notes(entries)

    def rows(block: experiment_tables.Block) -> dict[str, dict[str, views.View]]:
        return {
            name: {column: views.view(entry, facts.page_of, footnotes) for column, entry in row.items()}
            for name, row in block.rows.items()
        }

    records = [record for cell in planned.cells for record in cell.records]
    values = {
        "blocks": [(block.title, rows(block)) for block in table_blocks],
        "columns": experiment_tables.column_labels(planned.experiment, planned.cells),
        "footnotes": footnotes,
        "verdict": agreement(entries),
        "provenance": [*seconds_notes(entries), *provenance_footer(records)],
    }
    return values, experiment_tables.rows(table_blocks)


def _ranks_table(facts: Facts, planned: PlannedExperiment) -> tuple[dict[str, Any], _Rows]:
    try:
        sheet = experiment_tables.table(planned.experiment, planned.preset, planned.cells)
    except ConfigError:  # no methods to rank
        return {}, ()
    return {"grids": sheet.grids, "feet": sheet.lines}, sheet.rows


def _smaller(picture: Path) -> bytes:
    """A committed picture, a third as large."""
    from PIL import Image

    file = io.BytesIO()
    with Image.open(picture) as image:
        image.convert("RGB").save(file, "webp", quality=82, method=2)
    return file.getvalue()


def _drawn(facts: Facts, picture: Experiment, planned: PlannedExperiment, format: str) -> tuple[bytes, Sequence[str]]:
    """The content of a figure by Matplotlib, and the notes that stand beside it."""
    from gpbench.report import figures  # takes a third of a second
    from gpbench.report.figures import style

    figure = figures.draw(picture, planned.preset, planned.cells, facts.trace)
    file = io.BytesIO()
    figures.write(figure, file, format)
    return style.follow(file.getvalue()) if format == "svg" else file.getvalue(), figure.notes
