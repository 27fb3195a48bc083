"""Groups of methods whose ranks the site shows: drawn for those with the most data sets, and as data for any other."""

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.errors import ConfigError
from gpbench.metrics import METRICS, better
from gpbench.report import figures
from gpbench.report.cells import Cell, by_split, cells
from gpbench.report.figures.ranks import draw
from gpbench.report.ranks import Ranking, by_dataset, diverged, labels, quantile, rank_table, told


@dataclass(frozen=True)
class Group:
    """Methods under one protocol and precision.  `data` are the values by data set, method and split for site.js;
    `ranking`, `picture` (SVG) and `told` are of the methods with the most data sets."""

    title: str
    quick: bool
    data: dict[str, Any]
    ranking: Ranking
    picture: bytes
    told: Sequence[str]
    settings: Sequence[str]
    """Of methods whose names leave them out."""


def groups(records: Sequence[dict]) -> list[Group]:
    """A group for each protocol, precision and metric by which two methods can be ranked on two data sets."""
    apart: dict[tuple, list[dict]] = {}
    for record in records:
        apart.setdefault((record["protocol"], record.get("precision") or ""), []).append(record)
    found = []
    for (protocol, precision), of in apart.items():
        together = cells(of, presets_apart=False)
        for metric in (name for name in METRICS if any(name in record["metrics"] for record in of)):
            if group := _group(together, metric, f"{metric}, protocol {protocol}, {precision}".removesuffix(", ")):
                found.append(group)
    return found


def _group(made: Sequence[Cell], metric: str, title: str) -> Group | None:
    places = Counter((cell.method, cell.label) for cell in made if by_split(cell, metric))
    made = [cell for cell in made if places[cell.method, cell.label] > 1]  # one data set ranks nothing
    table = by_dataset(made, metric)
    count = Counter(name for row in table.values() for name in row)
    names = list(count)
    widest = {name for name in names if count[name] == max(count.values())}
    chosen = {place: {name: row[name] for name in row if name in widest} for place, row in table.items()}
    named = [(name, cell) for name, cell in zip(labels(made), made) if name in count]
    quick = {name for name, cell in named if "quick" in cell.preset}
    settings = sorted({f"{name} {cell.label}" for name, cell in named if name == cell.method and cell.label})
    lost = diverged(made)
    try:
        ranks = rank_table(chosen, metric, lost=lost)
    except ConfigError:
        return None
    file = io.BytesIO()
    figures.write(draw(ranks), file, "svg")
    data = {
        "metric": metric,
        "higher": better(metric) == "higher",
        "quantiles": [quantile(k) for k in range(2, len(names) + 1)],
        "methods": names,
        "chosen": [name in widest for name in names],
        "quick": sorted(quick),
        "diverged": [(*place, n) for place, n in lost.items()],
        "datasets": table,
    }
    return Group(title, bool(quick), data, ranks, file.getvalue(), told(ranks), settings)
