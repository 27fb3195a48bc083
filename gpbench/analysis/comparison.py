"""Methods side by side on data sets: the values behind ranks and tests, names of settings, and main ones."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.cells import CellRuns, by_split
from gpbench.analysis.grouping import gather
from gpbench.analysis.statistics import TTest, largest_ratio, paired_t_test
from gpbench.papers.published import UNRANKED, shared_terms, terms
from gpbench.records.absences import absence, absences
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

    @classmethod
    def of_settings(cls, cells: Sequence[CellRuns], metric: str) -> "Comparison":
        """The comparison of cells, by the `labels` of their methods, on data sets with a value."""
        compared = cls.from_cells(dict(zip(zip(row_names(cells), labels(cells)), cells)), metric)
        datasets = dict.fromkeys(dataset for dataset, method in compared.cells if method in compared.values[dataset])
        return replace(compared, values={dataset: compared.values[dataset] for dataset in datasets})

    @property
    def records(self) -> list[Record]:
        return [record for cell in self.cells.values() for record in cell.records]

    @property
    def methods(self) -> list[str]:
        """The methods with a value, in the order in which they come."""
        return list(dict.fromkeys(method for row in self.values.values() for method in row))

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

    def test(self, dataset: str, a: str, b: str, splits: Sequence[int], ratio: float | None = None) -> TTest:
        """The corrected t test of the differences a - b on these splits; `ratio` is by default the larger of both."""
        if ratio is None:
            ratio = largest_ratio([self.cells[dataset, a].ratio, self.cells[dataset, b].ratio])
        of_a, of_b = (self.values[dataset][method] for method in (a, b))
        return paired_t_test([of_a[k] - of_b[k] for k in splits], ratio)


RULE = (
    "one setting a method, by a rule that reads no result: held out where it has such runs, under the protocol that"
    " most methods have, the one with runs on the most data sets; of several the one with the most runs, then with the"
    " fewest terms, then with the largest numbers"
)
"""The rule of `main_names` in words."""
LEAKED_MARK = " (not held out)"
"""What follows the name of a method in a ranking, where test rows of one of its runs were training rows."""


def main_names(pairs: Iterable[tuple[str, CellRuns]]) -> dict[str, str]:
    """The name of each method's main setting (`RULE`), the method with the most data sets first, of those with runs."""
    groups = gather(((cell.method, name), cell) for name, cell in pairs if cell.records)
    methods = gather((_protocol(cells[0]), method) for (method, _), cells in groups.items())

    def completeness(setting: tuple[str, str]) -> tuple:
        cells = groups[setting]
        setting_terms = terms(cells[0].setting)
        numbers = [float(text) for text in re.findall(r"\d+\.?\d*", ", ".join(setting_terms))]
        return (
            all(cell.held_out for cell in cells),
            len({*methods[_protocol(cells[0])]}),
            len({cell.dataset for cell in cells}),
            len(set(map(_row, cells))),  # outputs, split sets and versions of them
            sum(len(cell.records) for cell in cells),
            -len(setting_terms),
            len(numbers),  # more layers
            numbers,
        )

    main = dict(sorted(groups, key=completeness))
    return {method: main[method] for method, _ in sorted(main.items(), key=completeness, reverse=True)}


def main_cells(cells: Sequence[CellRuns], metric: str, *, all_methods: bool) -> tuple[list[CellRuns], list[str]]:
    """The cells of each method's main setting, for a ranking, and lines on what was left out, by which rule."""
    cells = with_metric(cells, metric)
    names = main_names((method_of(cell)[1], cell) for cell in cells)
    groups = {m: [cell for cell in cells if method_of(cell) == (m, name)] for m, name in names.items()}
    notes = [f"{RULE}; --all-settings ranks all"] if sum(map(len, groups.values())) < len(cells) else []
    if not all_methods and (left_out := _without_common_data(groups)):
        groups = {method: group for method, group in groups.items() if method not in left_out}
        rule = "methods that would leave under half of the first method's data sets in common are left out"
        notes.append(f"{rule}; --method ranks those it names: {', '.join(left_out)}")
    return [cell for group in groups.values() for cell in group], notes


def _without_common_data(groups: dict[str, list[CellRuns]]) -> list[str]:
    """The methods that leave fewer than two data sets in common, or less than half of those of the first method."""
    count = lambda rows: len({dataset for dataset, *_ in rows})
    common, fewest, left_out = set[tuple](), 2.0, []
    for method, cells in groups.items():
        rows = {_row(cell) for cell in cells if cell.dataset not in UNRANKED}
        if not common:
            common, fewest = rows, max(2, count(rows) / 2)
        elif count(common) < 2 or count(common & rows) >= fewest:
            common &= rows
        else:
            left_out.append(method)
    return left_out


def with_metric(cells: Sequence[CellRuns], metric: str) -> list[CellRuns]:
    """The cells that have the metric, and those whose runs all diverged or have it undefined."""
    return [
        cell
        for cell in cells
        if by_split(cell, metric) or all(record.diverged or absence(record, metric) for record in cell.records)
    ]


def method_of(cell: CellRuns) -> tuple[str, str]:
    """The method of a cell and its label, without the split set, which belongs to the data."""
    return cell.method, ", ".join(text for text in terms(cell.label) if text != f"set={cell.split_set}")


def row_names(cells: Sequence[CellRuns]) -> list[str]:
    """The row of each cell in a ranking: data set, and split set, output or checksum where there are several."""
    sets = gather((cell.dataset, cell.split_set) for cell in cells)
    versions = gather(((cell.dataset, cell.split_set, cell.output), cell.data_key[1]) for cell in cells)
    names = []
    for cell in cells:
        several = len({*versions[cell.dataset, cell.split_set, cell.output]}) > 1
        split_set = cell.split_set if len({*sets[cell.dataset]}) > 1 else ""
        words = (cell.dataset, split_set, cell.output, (cell.data_key[1] or "")[:12] if several else "")
        names.append(" ".join(filter(None, words)))
    return names


def _protocol(cell: CellRuns) -> tuple:
    return cell.records[0].protocol, cell.records[0].precision


def _row(cell: CellRuns) -> tuple:
    return cell.dataset, cell.output, *cell.data_key


def labels(cells: Sequence[CellRuns]) -> list[str]:
    """A name for the method of each cell: method, setting or both, as needed to distinguish them.  Terms that all
    settings share are left out (`_shared_terms`).  `LEAKED_MARK` follows where one is not held out."""
    pairs, shared = [method_of(cell) for cell in cells], _shared_terms(cells)
    methods = {method for method, _ in pairs}
    names = [method for method, _ in pairs]
    if len(methods) < len({*pairs}):
        own = [", ".join(term for term in terms(label) if term not in shared) for _, label in pairs]
        single = len(methods) == 1
        names = [text if single and text else f"{method} {text}".rstrip() for (method, _), text in zip(pairs, own)]
    leaked = {name for name, cell in zip(names, cells) if not cell.held_out}
    return [name + (LEAKED_MARK if name in leaked else "") for name in names]


def _shared_terms(cells: Sequence[CellRuns]) -> list[str]:
    """The terms that the labels of all cells have, such as "m=50" and "protocol=clean"."""
    return shared_terms(terms(method_of(cell)[1]) for cell in cells)


def cells_notes(cells: Sequence[CellRuns]) -> list[str]:
    """Notes on the terms that all settings share, and on the settings that names of methods leave out."""
    shared, pairs = _shared_terms(cells), dict.fromkeys(map(method_of, cells))
    notes = [f"all with {', '.join(shared)}"] if shared else []
    own = {method: ", ".join(term for term in terms(label) if term not in shared) for method, label in pairs}
    settings = "; ".join(f"{method} {text}" for method, text in own.items() if text)
    return [*notes, f"settings: {settings}"] if settings and len(own) == len(pairs) else notes
