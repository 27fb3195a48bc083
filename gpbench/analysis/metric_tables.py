"""The inputs of a ranking: a metric of cells by data set and by the name of the method."""

from collections.abc import Mapping, Sequence

from gpbench.analysis.cells import CellRuns, by_split

Table = Mapping[str, Mapping[str, Mapping[int, float]]]
"""A metric by data set, method and split."""


def metric_table(cells: Sequence[CellRuns], metric: str) -> tuple[Table, dict[tuple[str, str], int]]:
    """A metric of cells by the names of their data sets and methods.

    Args:
        cells: Cells of `gpbench.analysis.cells.group_runs`.
        metric: Name of the metric.

    Returns:
        The metric, without cells that lack it; and the numbers of diverged runs, where there are any.
    """
    table: dict[str, dict[str, Mapping[int, float]]] = {}
    diverged: dict[tuple[str, str], int] = {}
    for cell, row, name in zip(cells, _rows(cells), labels(cells)):
        if values := by_split(cell, metric):
            table.setdefault(row, {})[name] = values
        if n := sum(record.diverged for record in cell.records):
            diverged[row, name] = n
    return table, diverged


def labels(cells: Sequence[CellRuns]) -> list[str]:
    """A name for the method of each cell: method, setting or both, as needed to distinguish them."""
    pairs = [method_of(cell) for cell in cells]
    methods = {method for method, _ in pairs}
    if len(methods) == len(set(pairs)):
        return [method for method, _ in pairs]
    single = len(methods) == 1
    return [label if single and label else f"{method} {label}".rstrip() for method, label in pairs]


def method_of(cell: CellRuns) -> tuple[str, str]:
    """The method of a cell and its label, without the split set, which belongs to the data."""
    return cell.method, ", ".join(text for text in cell.label.split(", ") if text != f"set={cell.split_set}")


def _rows(cells: Sequence[CellRuns]) -> list[str]:
    """The row of each cell in a ranking: data set, split set where the data set has several, output."""
    sets: dict[str, set[str]] = {}
    for cell in cells:
        sets.setdefault(cell.dataset, set()).add(cell.split_set)
    names = [(cell.dataset, cell.split_set if len(sets[cell.dataset]) > 1 else "", cell.output) for cell in cells]
    return [" ".join(filter(None, name)) for name in names]
