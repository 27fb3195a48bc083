"""Groups of methods whose ranks the site shows: drawn for those with the most data sets, and as data for any other."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.errors import ConfigError
from gpbench.metrics import METRICS, better
from gpbench.report import figures
from gpbench.report.cells import Cell, cells
from gpbench.report.figures.ranks import draw
from gpbench.report.ranks import Ranking, by_dataset, diverged, quantile, rank_table, told


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
    table = by_dataset(made, metric)
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    count = {name: sum(name in row for row in table.values()) for name in names}
    widest = {name for name in names if count[name] == max(count.values())}
    chosen = {place: {name: row[name] for name in row if name in widest} for place, row in table.items()}
    try:
        ranks = rank_table(chosen, metric, lost=diverged(made))
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
        "datasets": table,
    }
    quick = any("quick" in cell.preset for cell in made)
    return Group(title, quick, data, ranks, file.getvalue(), told(ranks))
