"""Entries, rankings and experiments as the pages of the site show them; those of an experiment are also files."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis import leaderboard_sheet
from gpbench.analysis.agreement import agreement
from gpbench.analysis.cells import CellRuns, Entry, by_split, entry_notes, group_runs
from gpbench.analysis.comparison import Comparison, labels, method_of, with_metric
from gpbench.analysis.formats import rows_as_csv
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import number
from gpbench.analysis.provenance import imported_note
from gpbench.analysis.rankings import rank_table, ranking_notes
from gpbench.analysis.tables import row, seconds_notes, with_marks
from gpbench.claims.grades import Judged
from gpbench.errors import ConfigError
from gpbench.experiments import plan
from gpbench.experiments.definition import Experiment
from gpbench.experiments.layout import FIGURES
from gpbench.metrics import METRICS
from gpbench.papers.published import UNRANKED
from gpbench.records.record import Record
from gpbench.report.site.facts import Facts, PlannedExperiment

if TYPE_CHECKING:
    from gpbench.report.figures.style import Picture


def by_cell(entries: Sequence[Entry], page_of: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tables of these entries with a row for each cell, one table for all cells with the same first metric."""
    by_page = gather((entry.cell.records[0].id, entry) for entry in entries)
    tables = []
    for cells in gather((ours[0].metric, ours) for ours in by_page.values()).values():
        every = [entry for ours in cells for entry in ours]
        footnotes = entry_notes(every)
        rows = [
            {
                "cell": ours[0].cell,
                "views": {entry.metric: view(entry, page_of, footnotes) for entry in ours},
                "splits": max(entry.n_splits for entry in ours),
                "badges": badges(ours[0].cell, ours),
            }
            for ours in cells
        ]
        table = {
            "metrics": [*dict.fromkeys(entry.metric for entry in every)],
            "rows": rows,
            "footnotes": footnotes,
            "remarks": seconds_notes(every),
            "outputs": any(ours[0].cell.output for ours in cells),
            "remarked": any(row["badges"] for row in rows),
        }
        tables.append(table)
    return tables


def view(entry: Entry, page_of: Mapping[str, str], footnotes: Sequence[str]) -> dict[str, Any]:
    """An entry as texts, "" where absent; `page_of` maps ids of records to pages, notes are numbers of footnotes."""
    ours = number(entry.mean, entry.stderr) if entry.n_splits else ""
    return {
        "entry": entry,
        "page": page_of.get(entry.cell.records[0].id, "") if entry.cell.records else "",
        "ours": ours,
        "value": ours or (f"all {entry.no_value}" if entry.no_value else "none yet"),
        "published": entry.published.text if entry.published else "",
        "delta": "" if entry.delta_se is None else f"{entry.delta_se:+.1f}",
        "badges": badges(entry.cell, [entry]),
        "notes": tuple(footnotes.index(note) + 1 for note in entry.notes),
    }


def badges(cell: CellRuns, entries: Sequence[Entry] = ()) -> list[tuple[str, str]]:
    """Warnings beside values, as pairs of kind and text, with the number of runs that a part of them has."""
    whole = len(cell.records)
    quick = sum(record.preset == "quick" for record in cell.records)
    imported, dirty = (sum(bool(getattr(r, name)) for r in cell.records) for name in ("imported", "dirty"))
    some = lambda text, n: text if n == whole else f"{text} ({n} of {whole})"
    undefined = [(f"{e.metric} {words} ({n})", n) for e in entries for words, n in e.undefined.items()]
    warnings = [
        ("dirty", "not held out", not cell.held_out),
        ("quick", some("quick", quick), quick),
        ("imported", some("imported", imported), imported),
        ("diverged", f"{cell.diverged} diverged", cell.diverged),
        *(("undefined", text, n) for text, n in undefined),
        ("dirty", some("uncommitted changes", dirty), dirty),
    ]
    return [(kind, text) for kind, text, n in warnings if n]


def mark_datasets(entries: Sequence[Entry]) -> list[Entry]:
    """Marks the best on the rows of each data set by each metric, among the entries with the most splits."""
    key = lambda entry: (entry.cell.dataset, entry.cell.output, entry.cell.data_key, entry.metric)
    groups = gather((key(entry), k) for k, entry in enumerate(entries))
    marked = list(entries)
    for group in groups.values():
        most = max(entries[k].n_splits for k in group)
        compared = [k for k in group if entries[k].n_splits == most]
        for k, entry in zip(compared, with_marks([replace(entries[k], mark="") for k in compared])):
            marked[k] = entry
    return marked


def rank_sections(records: Sequence[Record], tasks: Mapping[str, str]) -> list[dict[str, Any]]:
    """A section for each protocol, precision and metric that can rank methods; `tasks` are those of data sets."""
    groups = gather(((record.protocol, record.precision or ""), record) for record in records)
    sections: list[dict[str, Any]] = []
    for (protocol, precision), group in groups.items():
        cells = group_runs(group)
        recorded = {name: None for record in group for name in record.metrics}
        runs = f"protocol {protocol}, {precision}".removesuffix(", ")
        metrics = [*(name for name in METRICS if name in recorded), *(name for name in recorded if name not in METRICS)]
        for metric in metrics:
            with suppress(ConfigError):  # nothing to rank
                sections.append({"metric": metric, "runs": runs, **_rank_section(cells, metric, tasks)})
    return [{**section, "file": f"ranks/{k}.svg"} for k, section in enumerate(sections)]


def _rank_section(cells: Sequence[CellRuns], metric: str, tasks: Mapping[str, str]) -> dict[str, Any]:
    """The methods with the most data sets under one protocol and precision, ranked by one metric.  Raises ConfigError:
    they cannot be ranked."""
    cells = [cell for cell in with_metric(cells, metric) if cell.dataset not in UNRANKED]
    n_datasets = Counter(method_of(cell) for cell in cells if by_split(cell, metric))
    cells = [cell for cell in cells if n_datasets[method_of(cell)] > 1]  # one data set ranks nothing
    compared = Comparison.of_settings(cells, metric)
    count = Counter(name for row in compared.values.values() for name in row)
    most = {name for name in count if count[name] == max(count.values())}
    values = {dataset: {name: row[name] for name in row if name in most} for dataset, row in compared.values.items()}
    ranking = rank_table(replace(compared, values=values))
    ranked = [(name, cell, *method_of(cell)) for name, cell in zip(labels(cells), cells) if name in most]
    records = [record for cell in cells for record in cell.records]
    return {
        "task": ", ".join(sorted({tasks.get(name.partition(" ")[0], "others") for name in ranking.datasets})),
        "quick": any("quick" in cell.preset for _, cell, *_ in ranked),
        "ranking": ranking,
        "notes": [*ranking_notes(ranking), *filter(None, [imported_note(records)])],
        "settings": sorted({f"{name} {label}" for name, _, method, label in ranked if name == method and label}),
    }


def links(judged: Judged, page_of: Mapping[str, str]) -> dict[str, str]:
    """Names of the cells that the numbers come from, by page."""
    return {
        page_of[cell.records[0].id]: f"{cell.method} {cell.label} on {cell.dataset} {cell.output}".rstrip()
        for number in judged.numbers
        for cell in number.cells
        if cell.records[0].id in page_of
    }


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
