"""The table of an experiment as a sheet: recorded results beside those that the paper prints."""

from collections.abc import Sequence

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.metrics import better
from gpbench.papers.published import Published
from gpbench.report import marks as significance
from gpbench.report.blocks import column_labels, table_blocks
from gpbench.report.cells import CellRuns, Entry
from gpbench.report.formats import Grid, Marks, Sheet
from gpbench.report.provenance import provenance_footer
from gpbench.report.tables import LEGEND, cell_text, notes, numbered, row, seconds_notes


def table(experiment: Experiment, preset: str, planned: Sequence[Cell], marks: Marks) -> Sheet:
    """The table of an experiment, a grid for each block, with the best of each row marked.

    Args:
        experiment: one that has a table.
        preset: the preset of the planned cells.
        planned: its cells with their records (`gpbench.experiments.status.find`).
        marks: how the format marks the best of a row, and what is not significantly different from it.
    """
    assert experiment.table is not None
    blocks, columns = table_blocks(experiment, planned), column_labels(experiment, planned)
    header = (experiment.table["rows"].rpartition(".")[2], *columns)
    entries = [entry for block in blocks for entry in block.entries]
    footnotes = notes(entries)

    def text(entry: Entry) -> str:
        return cell_text(entry, footnotes, lambda number: marks.on(number, entry.mark))

    grids = [
        Grid(block.title, header, tuple(
            (name, *(text(of[column]) if column in of else "" for column in columns))
            for name, of in block.rows.items()))
        for block in blocks
    ]  # fmt: skip
    records = [record for cell in planned for record in cell.records]
    legend = f"{marks.on('best', 'best')} of its row; {marks.on('tied', 'tied')}: {significance.LEGEND}"
    heads = [experiment.title, preset_line(planned, preset, experiment.presets.get(preset, "")), absent(planned)]
    return Sheet(
        heads=[*filter(None, heads), *verdict(entries)],
        grids=grids,
        feet=[
            LEGEND,
            *([legend] if any(entry.mark for entry in entries) else []),
            *numbered(footnotes),
            *seconds_notes(entries),
            *provenance_footer(records),
        ],
        rows=[{**row(entry), "mark": entry.mark or None} for entry in entries],
    )


def _is_target(published: Published, cell: CellRuns) -> bool:
    return not published.note if published.held_out else not cell.held_out


def verdict(entries: Sequence[Entry]) -> list[str]:
    """A line on how many cells are within two joint standard errors of the paper, or better; none without targets.

    Values that are no targets are left out.  Those that are not held out are compared with runs that are not either.
    """
    compared = [e for e in entries if e.delta_se is not None and e.published and _is_target(e.published, e.cell)]
    if not compared:
        return []
    worse = [e for e in compared if (e.delta_se or 0.0) * (1 if better(e.metric) == "lower" else -1) > 2]
    names = "; ".join(f"{e.cell.dataset} {e.cell.method} {e.cell.label} {e.delta_se:+.1f}" for e in worse)
    line = f"within 2 standard errors of the paper, or better: {len(compared) - len(worse)} of {len(compared)} cells"
    return [line + (f"; not: {names}" if worse else "")]
