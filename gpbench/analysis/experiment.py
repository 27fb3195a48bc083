"""The table of an experiment: blocks of entries by row and column, beside the values that the paper prints."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from gpbench.analysis import tables
from gpbench.analysis.cells import CellRuns, Entry, by_split, entry, summarise
from gpbench.analysis.formats import Grid, Sheet, marked
from gpbench.analysis.notes import provenance_footer
from gpbench.analysis.statistics import common_splits
from gpbench.analysis.tables import FEW_SPLITS, LEGEND, TIED, has_few, with_marks
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.kinds import TABLES
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.papers.published import lookup

_AVERAGE = "(average)"
"""Name of the data set of published averages over data sets (papers.csv)."""

_OVER_OUTPUTS: dict[str, Callable[..., float]] = {"mean": fmean, "std": pstdev}

_Row = Mapping[str, CellRuns]  # by column


@dataclass(frozen=True)
class Block:
    """A part of a table: one metric, for one value of the keys `blocks`.

    Args:
        title: Values of the keys, and the metric with its unit.
        rows: Marked entries by the labels of their row and column.
    """

    title: str
    rows: Mapping[str, Mapping[str, Entry]]

    @property
    def entries(self) -> Iterator[Entry]:
        """All entries, row by row."""
        return (entry for row in self.rows.values() for entry in row.values())


def table(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """Makes the sheet of an experiment's table, of the kind that the experiment names.

    Args:
        experiment: Experiment that has a table.
        preset: Preset of the planned cells.
        planned: Its cells with their records (`gpbench.experiments.plan.load`).

    Raises:
        ConfigError: Two cells are in the same row and column, or methods to rank have no data sets in common.
    """
    return TABLES[experiment.table.get("kind", "values")].function(experiment, preset, planned)


def value_table(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """Makes the sheet of a table of values: a grid for each block, with the best of each row marked.

    The options of the table are

    - `rows`: Key whose values have rows, or `output` for the outputs of the data set.
    - `columns`: Key or keys whose values have columns.
    - `metrics`: Metrics, a block for each.
    - `blocks`: Key or keys whose values have blocks of their own; optional.
    - `average`: Metric whose average over data sets is the last row of the first block; optional.
    """
    blocks, columns = table_blocks(experiment, planned), column_labels(experiment, planned)
    entries = [entry for block in blocks for entry in block.entries]
    footnotes = tables.notes(entries)
    header = (experiment.table["rows"].rpartition(".")[2], *columns)
    grids = [
        Grid(
            block.title,
            header,
            tuple(
                (name, *(tables.cell_text(row[column], footnotes) if column in row else "" for column in columns))
                for name, row in block.rows.items()
            ),
        )
        for block in blocks
    ]
    legend = f"{marked('best', 'best')} of its row; {marked('tied', 'tied')}: {TIED}"
    if any(has_few([*row.values()]) for block in blocks for row in block.rows.values()):
        legend += f"; {FEW_SPLITS}"
    return Sheet(
        heads=[*headlines(experiment, preset, planned), *agreement(entries)],
        grids=grids,
        feet=[
            LEGEND,
            *([legend] if any(entry.mark for entry in entries) else []),
            *tables.numbered(footnotes),
            *tables.seconds_notes(entries),
            *provenance_footer([record for cell in planned for record in cell.records]),
        ],
        rows=[{**tables.row(entry), "mark": entry.mark or None} for entry in entries],
    )


def headlines(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> list[str]:
    """The title of an experiment, a line on its preset, and one on runs that are missing."""
    words = experiment.presets.get(preset, "")
    return [*filter(None, [experiment.title, preset_line(planned, preset, words), absent(planned)])]


def agreement(entries: Sequence[Entry]) -> list[str]:
    """Lines on how many cells agree with the paper; none without targets.

    Published values that are no targets are left out.  Those that are not held out are compared with runs that are not
    either; a lower error is no merit there, so a difference in either direction disagrees.
    """
    known = [(e, e.delta_se, e.published) for e in entries if e.delta_se is not None and e.published]
    targets = [(e, delta) for e, delta, published in known if published.is_target]
    leaked = [(e, delta) for e, delta, published in known if not (published.held_out or e.cell.held_out)]
    worse = [(e, delta) for e, delta in targets if delta * (1 if e.better == "lower" else -1) > 2]
    different = [(e, delta) for e, delta in leaked if abs(delta) > 2]
    return [
        *_agreement_line("within 2 standard errors of the paper, or better", targets, worse),
        *_agreement_line("not held out, within 2 standard errors of the paper", leaked, different),
    ]


def _agreement_line(
    text: str, compared: Sequence[tuple[Entry, float]], others: Sequence[tuple[Entry, float]]
) -> Iterator[str]:
    """A line on those cells that agree, and the names of the others."""
    if compared:
        names = "; ".join(f"{e.cell.dataset} {e.cell.method} {e.cell.label} {delta:+.1f}" for e, delta in others)
        line = f"{text}: {len(compared) - len(others)} of {len(compared)} cells"
        yield line + (f"; not: {names}" if others else "")


def table_blocks(experiment: Experiment, planned: Sequence[Cell]) -> list[Block]:
    """The blocks of an experiment's table, one for each metric and value of the keys `blocks`.

    With `average: METRIC` the blocks of the first metric end with a row of METRIC averaged over data sets.  Where rows
    are outputs, every block ends with rows of mean and standard deviation over outputs.

    Raises:
        ConfigError: Two cells are in the same row and column.
    """
    layout = experiment.table
    blocks = []
    for metric, (name, cells) in itertools.product(layout["metrics"], _layout(experiment, planned).items()):
        rows = {label: {column: entry(cell, metric) for column, cell in row.items()} for label, row in cells.items()}
        if metric == layout["metrics"][0] and (averaged := layout.get("average")):
            rows[f"average {averaged}"] = _combined(cells, averaged, fmean, dataset=_AVERAGE)
        if layout["rows"] == "output":
            rows |= {key: _combined(cells, metric, over, output=key) for key, over in _OVER_OUTPUTS.items()}
        for label in rows.keys() - {"std"}:
            rows[label] = dict(zip(rows[label], with_marks([*rows[label].values()])))
        blocks.append(
            Block(
                ", ".join(filter(None, [name, tables.title(metric, [r for cell in planned for r in cell.records])])),
                rows,
            )
        )
    return blocks


def by_dataset(
    experiment: Experiment, planned: Sequence[Cell], keys: str | Sequence[str], metric: str
) -> Mapping[str, Mapping[str, Entry]]:
    """The entries of one metric by data set and method; the labels of `keys` name the method, as in `dgp-2`."""
    layout = {"rows": "dataset", "columns": keys, "metrics": [metric]}
    (block,) = table_blocks(replace(experiment, table=layout), planned)
    return block.rows


def column_labels(experiment: Experiment, planned: Sequence[Cell]) -> list[str]:
    """The labels of the columns of an experiment's table."""
    return list(dict.fromkeys(_column(experiment, cell) for cell in planned))


def labels(experiment: Experiment, keys: str | Sequence[str], cell: Cell) -> list[str]:
    """The labels of a cell's values of those of `keys` that its job has, without empty ones."""
    names = [keys] if isinstance(keys, str) else keys
    return [label for key in names if key in cell.job and (label := experiment.label(key, cell.job[key]))]


def _column(experiment: Experiment, cell: Cell) -> str:
    """The column of a cell: the labels of its values of the keys `columns`, as in `dgp-2`."""
    return "-".join(labels(experiment, experiment.table["columns"], cell))


def _layout(experiment: Experiment, planned: Sequence[Cell]) -> Mapping[str, Mapping[str, _Row]]:
    """The cells by block, row and column."""
    layout = experiment.table
    row_key, block_keys = layout["rows"], layout.get("blocks", [])
    blocks: dict[str, dict[str, dict[str, CellRuns]]] = {}
    for cell in planned:
        block = ", ".join(labels(experiment, block_keys, cell))
        name = cell.output if row_key == "output" else experiment.label(row_key, cell.job[row_key])
        row, column = blocks.setdefault(block, {}).setdefault(name, {}), _column(experiment, cell)
        if column in row:
            raise ConfigError(
                f"{experiment.id}: {name} {column}: two cells of the table are at one place; put"
                f" {' or '.join(_varying(planned))} into its blocks, columns or label"
            )
        row[column] = _cell_runs(cell, block)
    return blocks


def _varying(planned: Sequence[Cell]) -> list[str]:
    """The keys of the runs that have several values, without those of the run itself."""
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
    """A statistic of each column over its rows, split by split, on the splits that all rows have.

    `dataset` or `output` is the name under which its value is published.
    """
    entries = {}
    for column in dict.fromkeys(column for row in rows.values() for column in row):
        cells = [row[column] for row in rows.values() if column in row]
        by_row = [by_split(cell, metric) for cell in cells]
        values = {split: statistic([row_values[split] for row_values in by_row]) for split in common_splits(by_row)}
        first = next((cell for cell in cells if cell.records), cells[0])
        records = tuple(record for cell in cells for record in cell.records)
        cell = replace(first, dataset=dataset or first.dataset, output=output or first.output, records=records)
        published = lookup(cell.dataset, cell.method, cell.setting, metric, cell.output)
        entries[column] = summarise(cell, metric, values, published)
    return entries
