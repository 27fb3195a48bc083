"""The table of an experiment as a sheet: recorded results beside those that the paper prints, or average ranks."""

from collections.abc import Iterator, Sequence

from gpbench.analysis import marks as significance
from gpbench.analysis import rankings
from gpbench.analysis.blocks import column_labels, table_blocks
from gpbench.analysis.cells import Entry
from gpbench.analysis.formats import Grid, Marks, Sheet
from gpbench.analysis.provenance import provenance_footer
from gpbench.analysis.tables import LEGEND, cell_text, notes, numbered, row, seconds_notes
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.metrics import better


def table(experiment: Experiment, preset: str, planned: Sequence[Cell], marks: Marks) -> Sheet:
    """The table of an experiment, a grid for each block, with the best of each row marked; or of kind `ranks`.

    Args:
        experiment: one that has a table.
        preset: the preset of the planned cells.
        planned: its cells with their records (`gpbench.experiments.status.find`).
        marks: how the format marks the best of a row, and what is not significantly different from it.

    Raises ConfigError where two cells are at one place, and for ranks of methods without common data sets.
    """
    assert experiment.table is not None
    if is_of_ranks(experiment):
        return rankings.table(experiment, preset, planned, marks)
    blocks, columns = table_blocks(experiment, planned), column_labels(experiment, planned)
    header = (experiment.table["rows"].rpartition(".")[2], *columns)
    entries = [entry for block in blocks for entry in block.entries]
    footnotes = notes(entries)

    def text(entry: Entry) -> str:
        return cell_text(entry, footnotes, lambda number: marks.on(number, entry.mark))

    grids = [
        Grid(
            block.title,
            header,
            tuple(
                (name, *(text(of[column]) if column in of else "" for column in columns))
                for name, of in block.rows.items()
            ),
        )
        for block in blocks
    ]
    records = [record for cell in planned for record in cell.records]
    legend = f"{marks.on('best', 'best')} of its row; {marks.on('tied', 'tied')}: {significance.LEGEND}"
    if any(significance.has_few([*of.values()]) for block in blocks for of in block.rows.values()):
        legend += f"; {significance.FEW}"
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


def is_of_ranks(experiment: Experiment) -> bool:
    """Whether the experiment's table is one of average ranks."""
    return (experiment.table or {}).get("kind") == "ranks"


def verdict(entries: Sequence[Entry]) -> list[str]:
    """Lines on how many cells agree with the paper; none without targets.

    Values that are no targets are left out.  Those that are not held out are compared with runs that are not either,
    where a lower error is no merit.
    """
    known = [(e, e.delta_se, e.published) for e in entries if e.delta_se is not None and e.published]
    compared = [(e, delta) for e, delta, published in known if published.is_target]
    leaked = [(e, delta) for e, delta, published in known if not (published.held_out or e.cell.held_out)]
    worse = [(e, delta) for e, delta in compared if delta * (1 if better(e.metric) == "lower" else -1) > 2]
    apart = [(e, delta) for e, delta in leaked if abs(delta) > 2]
    return [
        *_agreement("within 2 standard errors of the paper, or better", compared, worse),
        *_agreement("not held out, within 2 standard errors of the paper", leaked, apart),
    ]


def _agreement(
    text: str, compared: Sequence[tuple[Entry, float]], others: Sequence[tuple[Entry, float]]
) -> Iterator[str]:
    """A line on those cells that agree, and the names of the others."""
    if compared:
        names = "; ".join(f"{e.cell.dataset} {e.cell.method} {e.cell.label} {delta:+.1f}" for e, delta in others)
        line = f"{text}: {len(compared) - len(others)} of {len(compared)} cells"
        yield line + (f"; not: {names}" if others else "")
