"""Average ranks of methods over data sets, and which of them the data sets do not tell apart.

J. Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7 (2006), sections 3.1.3 and 3.2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.errors import ConfigError
from gpbench.metrics import better
from gpbench.report.cells import Cell, by_split

LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Methods, best first, by their average rank over data sets.

    `statistic` and `p` are Friedman's, with ties corrected for.  `critical` is the Nemenyi critical difference at 5 %,
    None with the Wilcoxon test.  `groups` are the longest stretches (first, last) of `methods` that hold no pair told
    apart.  `left_out` says of a data set why it does not count, `diverged` where runs are left out of the means.
    """

    metric: str
    test: str
    methods: tuple[str, ...]
    average: tuple[float, ...]
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    diverged: tuple[str, ...]
    statistic: float
    p: float
    critical: float | None
    groups: tuple[tuple[int, int], ...]


def ranking(cells: Sequence[Cell], metric: str, test: str = "nemenyi") -> Ranking:
    """Ranks the methods of these cells, each with its setting.  Raises ConfigError as `rank_table` does."""
    return rank_table(by_dataset(cells, metric), metric, test, diverged(cells))


def rank_table(
    table: Mapping[str, Mapping[str, Mapping[int, float]]],
    metric: str,
    test: str = "nemenyi",
    lost: Mapping[tuple[str, str], int] | None = None,
) -> Ranking:
    """Ranks by data set -> method -> split -> metric, on the means over the splits that all methods have.

    A data set where a method is missing is left out; `lost` counts the runs of a data set and method that diverged.
    Raises ConfigError for fewer than two methods or data sets.
    """
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    if len(names) < 2:
        raise ConfigError(f"ranks need two methods at least with {metric}; there is {' '.join(names) or 'none'}")
    kept, values, left_out = [], [], []
    for dataset, row in table.items():
        absent = [name for name in names if name not in row]
        common = sorted(set.intersection(*(set(row[name]) for name in names))) if not absent else []
        if common:
            kept.append(dataset)
            values.append([math.fsum(row[name][split] for split in common) / len(common) for name in names])
        else:
            left_out.append(f"{dataset} (without {', '.join(absent)})" if absent else f"{dataset} (no split in common)")
    if len(kept) < 2:
        raise ConfigError(
            f"ranks need two data sets at least that all {len(names)} methods have; there is"
            f" {kept[0] if kept else 'none'}: choose fewer methods with --method and --setting"
        )
    said = [f"{name} on {place} ({n})" for (place, name), n in (lost or {}).items() if place in kept and name in names]
    return ranked(np.array(values), names, metric, test, datasets=kept, left_out=left_out, diverged=said)


def told(ranking: Ranking) -> list[str]:
    """What must be said beside a ranking: tests, data sets, and what is left out."""
    name = {"nemenyi": "Nemenyi's test", "wilcoxon": "Wilcoxon's signed-rank test with Holm's correction"}[ranking.test]
    critical = f"; critical difference {ranking.critical:.2f}" if ranking.critical else ""
    lines = [
        f"average rank over {len(ranking.datasets)} data sets (1 is best): {', '.join(ranking.datasets)}",
        f"Friedman chi-square {ranking.statistic:.2f}, p = {ranking.p:.2g}{critical}",
        f"joined: not told apart by {name} at 5 %",
    ]
    if ranking.left_out:
        lines.append(f"left out: {'; '.join(ranking.left_out)}")
    if ranking.diverged:
        lines.append(f"diverged runs do not count: {'; '.join(ranking.diverged)}")
    return lines


def diverged(cells: Sequence[Cell]) -> dict[tuple[str, str], int]:
    """(data set, method with its setting) -> how many of the runs diverged, where any did."""
    counts = {
        (_place(cell), name): sum(record["status"] == "diverged" for record in cell.records)
        for cell, name in zip(cells, labels(cells))
    }
    return {place: n for place, n in counts.items() if n}


def by_dataset(cells: Sequence[Cell], metric: str) -> dict[str, dict[str, dict[int, float]]]:
    """Data set -> method with its setting -> split -> metric, where there is any."""
    table: dict[str, dict[str, dict[int, float]]] = {}
    for cell, name in zip(cells, labels(cells)):
        if found := by_split(cell, metric):
            table.setdefault(_place(cell), {})[name] = found
    return table


def ranked(
    values: Float[ndarray, "N k"],
    names: Sequence[str],
    metric: str,
    test: str = "nemenyi",
    *,
    datasets: Sequence[str] = (),
    left_out: Sequence[str] = (),
    diverged: Sequence[str] = (),
) -> Ranking:
    """The ranking of k methods from the metric on N data sets; ties share their average rank."""
    from scipy.stats import rankdata

    # to 12 digits, so that rounding breaks no tie
    rounded = np.array([[float(f"{value:.12g}") for value in row] for row in values])
    ranks = rankdata(rounded if better(metric) == "lower" else -rounded, axis=1)
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    average = ranks.mean(axis=0)[order]
    critical = critical_difference(*values.shape) if test == "nemenyi" else None
    told = _beyond(average, critical) if critical else wilcoxon_holm(values[:, order]) < LEVEL
    statistic, p = friedman(ranks)
    return Ranking(
        metric, test, tuple(names[k] for k in order), tuple(map(float, average)), tuple(datasets), tuple(left_out),
        tuple(diverged), statistic, p, critical, stretches(told),
    )  # fmt: skip


def friedman(ranks: Float[ndarray, "N k"]) -> tuple[float, float]:
    """Friedman's chi-square with k - 1 degrees of freedom, corrected for ties, and its p; 0 and 1 where all tie."""
    from scipy.special import chdtrc

    N, k = ranks.shape
    spread = float(np.sum(ranks**2)) - N * k * (k + 1) ** 2 / 4
    if spread <= 0:
        return 0.0, 1.0
    between = float(np.sum((ranks.sum(axis=0) - N * (k + 1) / 2) ** 2))
    statistic = (k - 1) * between / spread
    return statistic, float(chdtrc(k - 1, statistic))


def critical_difference(N: int, k: int) -> float:
    """Nemenyi's critical difference of average ranks at 5 %: q sqrt(k (k + 1) / 6 N)."""
    return quantile(k) * math.sqrt(k * (k + 1) / (6 * N))


def quantile(k: int) -> float:
    """q at 5 % of Demšar's Table 5(a): the Studentised range of k means, infinite degrees of freedom, over sqrt 2."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)


def wilcoxon_holm(values: Float[ndarray, "N k"]) -> Float[ndarray, "k k"]:
    """Holm-adjusted p-values of Wilcoxon's signed-rank test of every pair; 1 where two methods tie everywhere."""
    from scipy.stats import wilcoxon

    k = values.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    found = []
    for i, j in pairs:
        difference = values[:, i] - values[:, j]
        found.append(float(wilcoxon(difference).pvalue) if difference.any() else 1.0)
    adjusted, largest = np.ones((k, k)), 0.0
    for place, at in enumerate(np.argsort(found, kind="stable")):
        largest = max(largest, min(1.0, (len(pairs) - place) * found[at]))
        i, j = pairs[at]
        adjusted[i, j] = adjusted[j, i] = largest
    return adjusted


def stretches(apart: Bool[ndarray, "k k"]) -> tuple[tuple[int, int], ...]:
    """The longest stretches (first, last) of two or more in which no pair is told apart."""
    found: list[tuple[int, int]] = []
    for first in range(len(apart)):
        last = first
        while last + 1 < len(apart) and not apart[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return tuple(found)


def _beyond(average: Float[ndarray, " k"], critical: float) -> Bool[ndarray, "k k"]:
    return np.abs(average[:, None] - average) > critical - 1e-12


def labels(cells: Sequence[Cell]) -> list[str]:
    """What each cell's method is called: method and setting, or whichever of the two tells them apart."""
    called = {(cell.method, cell.label) for cell in cells}
    methods = {method for method, _ in called}
    if len(methods) == len(called):
        return [cell.method for cell in cells]
    alone = len(methods) == 1
    return [cell.label if alone and cell.label else f"{cell.method} {cell.label}".rstrip() for cell in cells]


def _place(cell: Cell) -> str:
    return f"{cell.dataset} {cell.output}".rstrip()
