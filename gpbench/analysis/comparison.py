"""Methods side by side on data sets: the values that ranks, tests and the best methods are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.cells import CellRuns, by_split
from gpbench.analysis.method_settings import labels, row_names, with_metric
from gpbench.analysis.statistics import TTest, largest_ratio, paired_t_test
from gpbench.records.absences import absences
from gpbench.records.record import Record


@dataclass(frozen=True)
class Comparison:
    """Methods on data sets, compared by one metric on the splits that they share."""

    metric: str
    values: Mapping[str, Mapping[str, Mapping[int, float]]]  # by data set, method and split, where there are any
    cells: Mapping[tuple[str, str], CellRuns] = field(default_factory=dict)  # by data set and method

    @classmethod
    def from_cells(cls, cells: Mapping[tuple[str, str], CellRuns], metric: str) -> "Comparison":
        """The comparison of cells by the names of their data sets and methods."""
        values: dict[str, dict[str, Mapping[int, float]]] = {dataset: {} for dataset, _ in cells}
        for (dataset, method), cell in cells.items():
            if splits := by_split(cell, metric):
                values[dataset][method] = splits
        return cls(metric, values, cells)

    @property
    def records(self) -> list[Record]:
        return [record for cell in self.cells.values() for record in cell.records]

    @cached_property
    def diverged(self) -> dict[tuple[str, str], int]:
        """The numbers of diverged runs by data set and method, where there are any."""
        return {key: cell.diverged for key, cell in self.cells.items() if cell.diverged}

    @cached_property
    def undefined(self) -> dict[tuple[str, str], dict[str, int]]:
        """The numbers of runs for which the metric is undefined, by reason, where there are any."""
        counts = {key: absences(cell.records, self.metric) for key, cell in self.cells.items()}
        return {key: reasons for key, reasons in counts.items() if reasons}

    def means(self, splits: Mapping[str, Sequence[int]], methods: Sequence[str]) -> Float[ndarray, "N k"]:
        """The means of k methods on N data sets over these splits."""
        rows = [(self.values[dataset], common) for dataset, common in splits.items()]
        return np.array([[fmean(row[method][split] for split in common) for method in methods] for row, common in rows])

    def test(self, dataset: str, a: str, b: str, splits: Sequence[int]) -> TTest:
        """The corrected t test of the differences a - b on these splits."""
        of_a, of_b = self.values[dataset][a], self.values[dataset][b]
        ratio = largest_ratio([self.cells[dataset, a].ratio, self.cells[dataset, b].ratio])
        return paired_t_test([of_a[split] - of_b[split] for split in splits], ratio)


def comparison(cells: Sequence[CellRuns], metric: str) -> Comparison:
    """The comparison of the cells that have the metric, or whose runs all diverged, on data sets with a value."""
    cells = with_metric(cells, metric)
    compared = Comparison.from_cells(dict(zip(zip(row_names(cells), labels(cells)), cells)), metric)
    datasets = dict.fromkeys(dataset for dataset, method in compared.cells if method in compared.values[dataset])
    return replace(compared, values={dataset: compared.values[dataset] for dataset in datasets})
