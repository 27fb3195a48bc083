"""A paper's table, made from the records of its experiment beside the numbers that the paper printed."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.metrics import better
from gpbench.papers import published
from gpbench.report import cells as statistics
from gpbench.report.cells import Entry
from gpbench.report.formats import Grid, Marks, Sheet
from gpbench.report.tables import LEGEND, heads, notes, numbered, row, shown, title

LEVEL = 0.05
AVERAGE = "(average)"  # what papers.csv calls the row of averages over data sets
_UNMARKED = ("seconds", "objective")


@dataclass(frozen=True)
class Block:
    """One metric of one value of the key `blocks`: entries by row and column, both as the table calls them."""

    title: str
    lines: Mapping[str, Mapping[str, Entry]]

    def marks(self) -> dict[int, str]:
        """The mark ("best", "tied" or "") of each entry, by its `id`."""
        return {id(e): mark for of in self.lines.values() for e, mark in zip(of.values(), rank([*of.values()]))}


def blocks(experiment: Experiment, found: Sequence[Cell]) -> list[Block]:
    """The experiment's table as numbers: a block for each metric and value of the key `blocks`.

    Where the file asks for them the first has a row of averages over data sets, or each those of mean and standard
    deviation over outputs.
    """
    layout = experiment.table
    assert layout is not None
    by, along, apart = layout["columns"], layout["rows"], layout.get("blocks")
    grouped: dict[str, dict[str, dict[str, Cell]]] = {}
    for cell in found:
        block = cell.job[apart] if apart else ""
        line = cell.output if along == "output" else experiment.label(along, cell.job[along])
        grouped.setdefault(block, {}).setdefault(line, {})[experiment.label(by, cell.job[by])] = cell
    made = []
    for metric, (block, lines) in itertools.product(layout["metrics"], grouped.items()):
        name = experiment.label(apart, block) if apart else ""
        filled = {line: {column: _entry(cell, metric, name) for column, cell in of.items()}
                  for line, of in lines.items()}  # fmt: skip
        if metric == layout["metrics"][0] and (averaged := layout.get("average")):
            columns = dict.fromkeys(column for of in lines.values() for column in of)
            average = {column: _average(lines, column, averaged, name) for column in columns}
            filled[f"average {averaged}"] = {column: entry for column, entry in average.items() if entry}
        if along == "output":
            filled |= {key: _over_outputs(lines, metric, key) for key in ("mean", "std")}
        made.append(Block(", ".join(filter(None, [name, title(metric)])), filled))
    return made


def columns(experiment: Experiment, found: Sequence[Cell]) -> list[str]:
    """What the columns of the experiment's table are called."""
    assert experiment.table is not None
    by = experiment.table["columns"]
    return list(dict.fromkeys(experiment.label(by, cell.job[by]) for cell in found))


def table(experiment: Experiment, preset: str, found: Sequence[Cell], marks: Marks) -> Sheet:
    """The table of an experiment: a grid for each block.

    In each row the best method is marked, and those that a paired t test over splits does not tell from it.
    """
    assert experiment.table is not None
    made, names = blocks(experiment, found), columns(experiment, found)
    header = (experiment.table["rows"].rpartition(".")[2], *names)
    entries = [entry for block in made for of in block.lines.values() for entry in of.values()]
    ranks = {key: mark for block in made for key, mark in block.marks().items()}
    footnotes = notes(entries)

    def written(entry: Entry) -> str:
        return shown(entry, footnotes, lambda number: marks.on(number, ranks[id(entry)]))

    grids = [
        Grid(b.title, header,
             tuple((line, *(written(of[c]) if c in of else "" for c in names)) for line, of in b.lines.items()))
        for b in made
    ]  # fmt: skip
    records = [record for cell in found for record in cell.records]
    best, tied = marks.on("best", "best"), marks.on("tied", "tied")
    legend = f"{best} of its row; {tied}: not told from the best by a paired t test over splits at 5 %"
    told = [experiment.title, preset_line(found, preset, experiment.presets.get(preset, "")), absent(found)]
    return Sheet(
        heads=[*filter(None, told), *verdict(entries)],
        grids=grids,
        feet=[LEGEND, *([legend] if any(ranks.values()) else []), *numbered(footnotes), *made_with(records, entries)],
        rows=[{**row(entry), "mark": ranks[id(entry)] or None} for entry in entries],
    )


def rank(entries: Sequence[Entry]) -> list[str]:
    """ "best", "tied" or "" for each method of one row, from the splits that all of them have (at least two).

    Tied is what a two-sided paired t test over these splits does not tell from the best at 5 %.
    """
    values = [statistics.by_split(entry.cell, entry.metric) for entry in entries]
    have = [k for k, of in enumerate(values) if of and entries[k].metric not in _UNMARKED]
    common = sorted(set.intersection(*(set(values[k]) for k in have))) if len(have) > 1 else []
    marks = [""] * len(entries)
    if len(common) < 2:
        return marks
    sign = 1 if better(entries[have[0]].metric) == "lower" else -1
    best = min(have, key=lambda k: sign * fmean(values[k][s] for s in common))
    for k in have:
        tied = same([values[k][s] - values[best][s] for s in common])
        marks[k] = "best" if k == best else "tied" if tied else ""
    return marks


def same(differences: Sequence[float]) -> bool:
    """Whether a two-sided paired t test at 5 % finds nothing in these differences."""
    from scipy.special import stdtrit

    n, centre = len(differences), fmean(differences)
    spread = math.sqrt(math.fsum((d - centre) ** 2 for d in differences) / (n - 1) / n)
    return abs(centre) <= spread * float(stdtrit(n - 1, 1 - LEVEL / 2))


def verdict(entries: Sequence[Entry]) -> list[str]:
    """In how many cells with a target we are within two joint standard errors of the paper, or better."""
    compared = [e for e in entries if e.delta_se is not None and e.published and not e.published.note]
    if not compared:
        return []
    worse = [e for e in compared if (e.delta_se or 0.0) * (1 if better(e.metric) == "lower" else -1) > 2]
    named = "; ".join(f"{e.cell.dataset} {e.cell.method} {e.cell.label} {e.delta_se:+.1f}" for e in worse)
    line = f"within 2 standard errors of the paper, or better: {len(compared) - len(worse)} of {len(compared)} cells"
    return [line + (f"; not: {named}" if worse else "")]


def made_with(records: Sequence[Mapping], entries: Sequence[Entry]) -> list[str]:
    """How the runs were made, and what they took."""
    if not records:
        return []
    seconds: Counter[str] = Counter()
    versions: dict[str, set[str]] = {}
    for record in records:
        seconds.update({part: value for part, value in record["seconds"].items() if value})
        for package, version in (record.get("versions") or {}).items():
            versions.setdefault(package, set()).add(str(version))
    spent = ", ".join(f"{part} {value:,.0f}" for part, value in seconds.items())
    used = ", ".join(f"{package} {' and '.join(sorted(of))}" for package, of in versions.items())
    return [*heads(entries), f"seconds of all runs: {spent}; tables show those of train", f"versions: {used}"]


def _entry(cell: Cell, metric: str, size: str) -> Entry:
    return statistics.entry(_statistical(cell, size), metric)


def _over_outputs(lines: Mapping[str, Mapping[str, Cell]], metric: str, key: str) -> dict[str, Entry]:
    """For each column the mean or standard deviation over outputs (`key` is mean or std), split by split."""
    over = fmean if key == "mean" else pstdev
    made = {}
    for column in dict.fromkeys(column for of in lines.values() for column in of):
        of = [line[column] for line in lines.values() if column in line]
        values = [statistics.by_split(_statistical(cell, ""), metric) for cell in of]
        common = sorted(set.intersection(*map(set, values)))
        cell = _statistical(_first_recorded(of), "", output=key)
        theirs = published.lookup(cell.dataset, cell.method, cell.setting, metric, key)
        made[column] = statistics.summary(cell, metric, [over([v[split] for v in values]) for split in common], theirs)
    return made


def _statistical(cell: Cell, size: str, dataset: str | None = None, output: str | None = None) -> statistics.Cell:
    """The cell for the statistics.  Without a record its setting is its block's name, the size that papers print."""
    setting = cell.records[0]["setting"] if cell.records else size
    return statistics.Cell(
        dataset=dataset or cell.dataset,
        output=output or cell.output,
        method=cell.method,
        setting=setting,
        label=setting,
        preset="+".join(sorted({record.get("preset") or "none" for record in cell.records})),
        held_out=all(record.get("held_out", True) is not False for record in cell.records),
        records=tuple(dict(record) for record in cell.records),
    )


def _average(lines: Mapping[str, Mapping[str, Cell]], column: str, metric: str, size: str) -> Entry | None:
    """The mean over rows, split by split, from the splits that all rows have."""
    of = [line[column] for line in lines.values() if column in line]
    if not of:
        return None
    values = [statistics.by_split(_statistical(cell, size), metric) for cell in of]
    common = sorted(set.intersection(*map(set, values)))
    cell = _statistical(_first_recorded(of), size, AVERAGE)
    theirs = published.lookup(AVERAGE, cell.method, cell.setting, metric)
    return statistics.summary(cell, metric, [fmean(v[split] for v in values) for split in common], theirs)


def _first_recorded(of: Iterable[Cell]) -> Cell:
    return max(of, key=lambda cell: bool(cell.records))
