"""The table of an experiment as a sheet: recorded results beside those that the paper prints, or average ranks."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from gpbench.analysis import tables
from gpbench.analysis.cells import CellRuns, Entry, by_split, entry, summarise
from gpbench.analysis.formats import Grid, Marks, Sheet
from gpbench.analysis.provenance import provenance_footer
from gpbench.analysis.statistics import common_splits
from gpbench.analysis.tables import (
    FEW_SPLITS,
    LEGEND,
    TIED,
    cell_text,
    has_few,
    notes,
    numbered,
    seconds_notes,
    title,
    with_marks,
)
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.metrics import better
from gpbench.papers.published import lookup


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
        from gpbench.analysis import rankings  # which ranks the entries of this module

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
    legend = f"{marks.on('best', 'best')} of its row; {marks.on('tied', 'tied')}: {TIED}"
    if any(has_few([*of.values()]) for block in blocks for of in block.rows.values()):
        legend += f"; {FEW_SPLITS}"
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
        rows=[{**tables.row(entry), "mark": entry.mark or None} for entry in entries],
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


AVERAGE = "(average)"
"""The data set of published averages over data sets (papers.csv)."""

_OVER_OUTPUTS: dict[str, Callable[..., float]] = {"mean": fmean, "std": pstdev}

_Row = Mapping[str, CellRuns]  # by column


@dataclass(frozen=True)
class Block:
    """One metric of one value of the keys `blocks`: marked entries by row and column, under the table's labels."""

    title: str
    rows: Mapping[str, Mapping[str, Entry]]

    @property
    def entries(self) -> Iterator[Entry]:
        """Every entry, row by row."""
        return (entry for row in self.rows.values() for entry in row.values())


def table_blocks(experiment: Experiment, planned: Sequence[Cell]) -> list[Block]:
    """The table of an experiment, a block for each metric and value of the keys `blocks`.

    With `average: METRIC` the blocks of the first metric end with a row of METRIC averaged over data sets; where rows
    are outputs, every block ends with rows of mean and standard deviation over outputs.
    """
    layout = experiment.table
    assert layout is not None
    blocks = []
    for metric, (name, rows) in itertools.product(layout["metrics"], _layout(experiment, planned).items()):
        entries = {row: {column: entry(cell, metric) for column, cell in of.items()} for row, of in rows.items()}
        if metric == layout["metrics"][0] and (averaged := layout.get("average")):
            entries[f"average {averaged}"] = _combined(rows, averaged, fmean, dataset=AVERAGE)
        if layout["rows"] == "output":
            entries |= {key: _combined(rows, metric, over, output=key) for key, over in _OVER_OUTPUTS.items()}
        marked = {row: of if row == "std" else dict(zip(of, with_marks([*of.values()]))) for row, of in entries.items()}
        blocks.append(Block(", ".join(filter(None, [name, title(metric)])), marked))
    return blocks


def by_dataset(
    experiment: Experiment, planned: Sequence[Cell], keys: str | Sequence[str], metric: str
) -> Mapping[str, Mapping[str, Entry]]:
    """The entries of one metric by data set and method, which the labels of these keys name, as in `dgp-2`."""
    layout = {"rows": "dataset", "columns": keys, "metrics": [metric]}
    (block,) = table_blocks(replace(experiment, table=layout), planned)
    return block.rows


def column_labels(experiment: Experiment, planned: Sequence[Cell]) -> list[str]:
    """The labels of the columns of the experiment's table."""
    assert experiment.table is not None
    return list(dict.fromkeys(_column(experiment, cell) for cell in planned))


def _column(experiment: Experiment, cell: Cell) -> str:
    """The column of a cell: the labels of its values of the keys `columns`, as in `dgp-2`."""
    assert experiment.table is not None
    return "-".join(labels(experiment, experiment.table["columns"], cell))


def labels(experiment: Experiment, keys: str | Sequence[str], cell: Cell) -> list[str]:
    """The labels of a cell's values of those of `keys` that its job has, without empty ones."""
    several = [keys] if isinstance(keys, str) else keys
    return [label for key in several if key in cell.job and (label := experiment.label(key, cell.job[key]))]


def _layout(experiment: Experiment, planned: Sequence[Cell]) -> Mapping[str, Mapping[str, _Row]]:
    """The cells by block, row and column.  Raises ConfigError where two are at one place."""
    layout = experiment.table
    assert layout is not None
    row_key, block_keys = layout["rows"], layout.get("blocks", [])
    grouped: dict[str, dict[str, dict[str, CellRuns]]] = {}
    for cell in planned:
        block = ", ".join(labels(experiment, block_keys, cell))
        row = cell.output if row_key == "output" else experiment.label(row_key, cell.job[row_key])
        of, column = grouped.setdefault(block, {}).setdefault(row, {}), _column(experiment, cell)
        if column in of:
            raise ConfigError(
                f"{experiment.id}: {row} {column}: two cells of the table are at one place; put"
                f" {' or '.join(_varying(planned))} into its blocks, columns or label"
            )
        of[column] = _cell_runs(cell, block)
    return grouped


def _varying(planned: Sequence[Cell]) -> list[str]:
    """The keys of the runs that have several values, those of the run itself apart."""
    keys = dict.fromkeys(key for cell in planned for key in cell.job if not key.startswith(("run.", "split")))
    return [key for key in keys if len({cell.job.get(key) for cell in planned}) > 1]


def _cell_runs(cell: Cell, block: str) -> CellRuns:
    """The recorded runs of a planned cell.  Without any, its setting is the label of its block."""
    setting = cell.records[0].setting if cell.records else block
    return CellRuns(
        dataset=cell.dataset,
        output=cell.output,
        method=cell.method,
        setting=setting,
        label=setting,
        preset="+".join(sorted({record.preset or "none" for record in cell.records})),
        held_out=all(record.held_out is not False for record in cell.records),
        records=tuple(cell.records),
    )


def _combined(
    rows: Mapping[str, _Row], metric: str, statistic: Callable[..., float], *, dataset: str = "", output: str = ""
) -> dict[str, Entry]:
    """For each column a statistic over its rows, split by split, from the splits that all rows have.

    `dataset` or `output` is the name under which its value is published.
    """
    entries = {}
    for column in dict.fromkeys(column for row in rows.values() for column in row):
        cells = [row[column] for row in rows.values() if column in row]
        by_row = [by_split(cell, metric) for cell in cells]
        values = {split: statistic([of[split] for of in by_row]) for split in common_splits(by_row)}
        first = next((cell for cell in cells if cell.records), cells[0])
        records = tuple(record for cell in cells for record in cell.records)
        cell = replace(first, dataset=dataset or first.dataset, output=output or first.output, records=records)
        published = lookup(cell.dataset, cell.method, cell.setting, metric, cell.output)
        entries[column] = summarise(cell, metric, values, published)
    return entries
