"""The table of an experiment, beside the values that the paper prints; and that of its missing runs."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from gpbench.analysis import tables
from gpbench.analysis.agreement import agreement, answer_text, exclusion, outcome
from gpbench.analysis.cells import CellRuns, Entry, by_split, entry, summarise
from gpbench.analysis.printing import counted
from gpbench.analysis.provenance import facts_of, run_facts
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.statistics import common_splits
from gpbench.errors import ConfigError
from gpbench.experiments import plan
from gpbench.experiments.definition import FACTS, Experiment, text
from gpbench.experiments.layout import TABLES
from gpbench.experiments.plan import Cell

_AVERAGE = "(average)"  # name of the data set of published averages over data sets (papers.csv)

_OVER_OUTPUTS: dict[str, Callable[..., float]] = {"mean": fmean, "std": pstdev}

_Row = Mapping[str, CellRuns]  # by column


@dataclass(frozen=True)
class Block:
    """A part of a table: one metric, for one value of the keys `blocks`."""

    name: str  # values of the keys; "" without any
    title: str  # values of the keys, and the metric with its unit
    rows: Mapping[str, Mapping[str, Entry]]  # marked entries by the labels of their row and column

    @property
    def entries(self) -> Iterator[Entry]:
        return (entry for row in self.rows.values() for entry in row.values())


def table(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """The sheet of a table.  Raises ConfigError: two cells are at one place, or there is nothing to rank."""
    return TABLES[experiment.table.get("kind", "values")].function(experiment, preset, planned)


def value_table(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """The sheet of a table of values: a grid for each block, with the best of each row marked."""
    blocks = table_blocks(experiment, planned)
    entries = [entry for block in blocks for entry in block.entries]
    first = held_out_first(blocks)
    placed = {(b.title, name, column): e for b in first for name, row in b.rows.items() for column, e in row.items()}
    key = experiment.table["rows"].rpartition(".")[2]
    return tables.placed_sheet(
        placed,
        ("data set" if key == "dataset" else key, *column_labels(experiment, planned)),
        any(tables.has_few([*row.values()]) for block in blocks for row in block.rows.values()),
        title=experiment.title,
        name=experiment.id,
        answer=answer(experiment, planned, blocks),
        summary=[
            *plan.preset_lines(planned, preset),
            *tables.splits_line(entries),
            *agreement(entries),
            *missing_line(experiment, preset, planned),
        ],
        facts=facts(experiment, preset, planned),
        rows=[*map(tables.row, entries)],
    )


def answer(experiment: Experiment, planned: Sequence[Cell], blocks: Sequence[Block]) -> str:
    """The answer of the experiment's file, of a preset without missing runs."""
    rows = [
        {**tables.row(e), "block": b.name, "row": name, "column": c, "outcome": outcome(e), "excluded": exclusion(e)}
        for b in blocks
        for name, row in b.rows.items()
        for c, e in row.items()
    ]
    return "" if any(cell.missing for cell in planned) else answer_text(experiment, rows)


def facts(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> dict[str, str]:
    """Facts of the runs by name: what the experiment says of its preset, then those of its records."""
    records = [record for cell in planned for record in cell.records]
    known = {**run_facts(records), **experiment.facts.get(preset, {})}
    return {name: known[name] for name in FACTS if name in known} | facts_of(records)


def table_blocks(experiment: Experiment, planned: Sequence[Cell]) -> list[Block]:
    """The blocks of an experiment's table; where rows are outputs, one ends with mean and deviation over them."""
    layout, records = experiment.table, [record for cell in planned for record in cell.records]
    options = layout.get("printed", {}).items()  # the values of some keys that the paper ran
    ran = {key: [*map(text, values if isinstance(values, list) else [values])] for key, values in options}
    is_printed = lambda job: all(job[key] in values for key, values in ran.items() if key in job)
    without_printed = {_block(experiment, cell) for cell in planned if not is_printed(cell.job)}
    blocks = []
    for metric, (name, cells) in itertools.product(layout["metrics"], _layout(experiment, planned).items()):
        rows = {label: {column: entry(cell, metric) for column, cell in row.items()} for label, row in cells.items()}
        if metric == layout["metrics"][0] and (averaged := layout.get("average")):
            rows[f"average {averaged}"] = _combined(cells, averaged, fmean, dataset=_AVERAGE)
        if layout["rows"] == "output":
            rows |= {key: _combined(cells, metric, over, output=key) for key, over in _OVER_OUTPUTS.items()}
        if name in without_printed:
            bare = lambda entry: replace(entry, published=None)
            rows = {label: {column: bare(entry) for column, entry in row.items()} for label, row in rows.items()}
        for label in rows.keys() - {"std"}:
            rows[label] = dict(zip(rows[label], tables.with_marks([*rows[label].values()])))
        blocks.append(Block(name, ", ".join(filter(None, [name, tables.title(metric, records)])), rows))
    return blocks


def held_out_first(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of runs that are held out, those with the most values first, and then the others."""
    return sorted(blocks, key=lambda b: (any(not e.cell.held_out for e in b.entries), -len([*b.entries])))


def by_dataset(
    experiment: Experiment, planned: Sequence[Cell], keys: str | Sequence[str], metric: str
) -> Mapping[str, Mapping[str, Entry]]:
    """The entries of one metric by data set and method; the labels of `keys` name the method, as in `dgp-2`."""
    layout = {"rows": "dataset", "columns": keys, "metrics": [metric]}
    (block,) = table_blocks(replace(experiment, table=layout), planned)
    return block.rows


def column_labels(experiment: Experiment, planned: Sequence[Cell]) -> list[str]:
    """The labels of the columns of an experiment's table."""
    return list(dict.fromkeys(_method(experiment, cell) for cell in planned))


def _block(experiment: Experiment, cell: Cell) -> str:
    """The block of a cell: the labels of its values of the keys `blocks`."""
    return ", ".join(experiment.labels_of(experiment.table.get("blocks", []), cell.job))


def _layout(experiment: Experiment, planned: Sequence[Cell]) -> Mapping[str, Mapping[str, _Row]]:
    row_key = experiment.table["rows"]
    blocks: dict[str, dict[str, dict[str, CellRuns]]] = {}
    for cell in planned:
        block = _block(experiment, cell)
        name = cell.output if row_key == "output" else experiment.label(row_key, cell.job[row_key])
        row, column = blocks.setdefault(block, {}).setdefault(name, {}), _method(experiment, cell)
        if column in row:
            keys = dict.fromkeys(key for cell in planned for key in cell.job if not key.startswith(("run.", "split")))
            varying = [key for key in keys if len({cell.job.get(key) for cell in planned}) > 1]
            mend = f"put {' or '.join(varying)} into its blocks, columns or label"
            raise ConfigError(f"{experiment.id}: {name} {column}: two cells of the table are at one place; {mend}")
        setting = cell.records[0].setting if cell.records else block
        row[column] = CellRuns(
            dataset=cell.dataset,
            output=cell.output,
            method=cell.method,
            setting=setting,
            label=setting,
            preset="+".join(sorted({record.preset or "none" for record in cell.records})),
            held_out=all(record.held_out is not False for record in cell.records),
            records=tuple(cell.records),
        )
    return blocks


def _combined(
    rows: Mapping[str, _Row], metric: str, statistic: Callable[..., float], **published_under: Any
) -> dict[str, Entry]:
    """A statistic of each column over the rows, on the splits that all rows have; none where a row lacks it."""
    entries = {}
    for column in dict.fromkeys(column for row in rows.values() for column in row):
        cells = [row[column] for row in rows.values() if column in row]
        by_row = [by_split(cell, metric) for cell in cells] if len(cells) == len(rows) else []
        values = {split: statistic([row_values[split] for row_values in by_row]) for split in common_splits(by_row)}
        first = next((cell for cell in cells if cell.records), cells[0])
        records = tuple(record for cell in cells for record in cell.records)
        entries[column] = summarise(replace(first, records=records, **published_under), metric, values)
    return entries


def missing_line(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> list[str]:
    """The methods without a run, up to three by name, and the number of missing runs; no line where nothing is."""
    missing, total = sum(len(cell.missing) for cell in planned), sum(len(cell.splits) for cell in planned)
    if not missing:
        return []
    with_runs = {_method(experiment, cell) for cell in planned if cell.records}
    absent = [name for name in dict.fromkeys(_method(experiment, cell) for cell in planned) if name not in with_runs]
    command = f"`gpbench table {experiment.id} --preset {preset} --missing`"
    names = ", ".join(absent) if len(absent) <= 3 else counted(len(absent), "method")
    methods = f"{names} not run; " if absent else ""
    return [f"{methods}{missing:,} of {total:,} runs missing: {command} lists them."]


def missing_runs(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """The sheet of missing runs: a line for each cell of the experiment that lacks some."""
    blocks = experiment.table.get("blocks", [])
    rows = [
        {
            "table": ", ".join(experiment.labels_of(blocks, cell.job)) or None,
            "dataset": cell.dataset,
            "output": cell.output or None,
            "method": _method(experiment, cell),
            "missing": len(cell.missing),
            "planned": len(cell.splits),
            "words": plan.names(cell, planned),
        }
        for cell in planned
        if cell.missing
    ]
    columns = [name for name in ("table", "dataset", "output", "method") if any(row[name] for row in rows)]
    lines = tuple((*(str(row[n] or "") for n in columns), f"{row['missing']} of {row['planned']}") for row in rows)
    n_missing, n_planned = sum(len(cell.missing) for cell in planned), sum(len(cell.splits) for cell in planned)
    return Sheet(
        title=f"Missing runs of {experiment.id}, preset {preset}: {n_missing:,} of {n_planned:,}.",
        summary=[f"`gpbench reproduce {experiment.id} --preset {preset}` runs them."] if rows else [],
        grids=[Grid("missing runs", (*columns, "missing"), lines, prose=True)] if rows else [],
        rows=rows,
        name=experiment.id,
    )


def _method(experiment: Experiment, cell: Cell) -> str:
    """The method of a cell: the labels of its values of the keys `columns` or `label`, as in `dgp-2`."""
    keys = experiment.table.get("columns", experiment.table.get("label", []))
    return "-".join(experiment.labels_of(keys, cell.job))
