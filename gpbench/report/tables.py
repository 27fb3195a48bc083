"""Tables for terminals, spreadsheets, Markdown and LaTeX: rows are data sets, columns methods with their settings."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from gpbench.report.cells import Entry, natural, provenance
from gpbench.report.text import aligned, number

COLUMNS = (
    "dataset", "output", "method", "setting", "metric", "mean", "stderr", "n_splits", "published", "published_err",
    "delta_se", "held_out", "preset",
)  # fmt: skip
LEGEND = (
    "mean ± standard error over splits (number of splits) [value the paper prints, difference in joint standard errors]"
)


@dataclass(frozen=True)
class Grid:
    """One metric's table as text: a header, one row per data set; the first column names it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def row(entry: Entry) -> dict:
    """One entry under COLUMNS; None where a column does not apply."""
    theirs, cell = entry.published, entry.cell
    return {
        "dataset": cell.dataset,
        "output": cell.output or None,
        "method": cell.method,
        "setting": cell.label,
        "metric": entry.metric,
        "mean": entry.mean,
        "stderr": entry.stderr,
        "n_splits": entry.n_splits,
        "published": theirs.value if theirs else None,
        "published_err": theirs.err if theirs else None,
        "delta_se": entry.delta_se,
        "held_out": entry.held_out,
        "preset": cell.preset or None,
    }


def as_dict(entry: Entry) -> dict:
    """One entry for programs: its row, the diverged, where the published value stands, and how the runs were made."""
    theirs = entry.published
    return {
        **row(entry),
        "diverged": entry.diverged,
        "published_in": f"{theirs.source}, {theirs.table}" if theirs else None,
        "published_stderr": theirs.stderr if theirs else None,
        "notes": entry.notes,
        "made_with": provenance(entry.cell.records),
        "runs": [record["id"] for record in entry.cell.records],
    }


def grids(entries: Sequence[Entry]) -> tuple[list[Grid], list[str]]:
    """One grid per metric, and the footnotes their marks refer to, in the order of the marks."""
    footnotes = list(dict.fromkeys(note for entry in entries for note in entry.notes))
    made = []
    for metric in dict.fromkeys(entry.metric for entry in entries):
        found = {(_row_name(e), _column_name(e)): e for e in entries if e.metric == metric}
        names = list(dict.fromkeys(name for name, _ in found))
        columns = sorted(dict.fromkeys(column for _, column in found), key=natural)
        rows = [[_text(found.get((name, column)), footnotes) for column in columns] for name in names]
        made.append(
            Grid(_title(metric), ("data set", *columns), tuple((name, *cells) for name, cells in zip(names, rows)))
        )
    return made, [f"{_superscript(k)} {note}" for k, note in enumerate(footnotes, 1)]


def chunks(grid: Grid, width: int | None) -> list[Grid]:
    """The grid cut into grids of whole columns that fit the width (characters); None fits everything."""
    if width is None:
        return [grid]
    widths = [max(map(len, column)) + 3 for column in zip(grid.header, *grid.rows)]
    groups: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if groups[-1] and widths[0] + sum(widths[c] for c in groups[-1]) + widths[column] > width:
            groups.append([])
        groups[-1].append(column)
    return [
        Grid(grid.title, tuple(grid.header[c] for c in kept), tuple(tuple(r[c] for c in kept) for r in grid.rows))
        for kept in ((0, *group) for group in groups)
    ]


def heads(entries: Sequence[Entry]) -> list[str]:
    """How the runs of a table were made: a line for what they share, and one for each thing that is mixed."""
    records = {record["id"]: record for entry in entries for record in entry.cell.records}
    told = provenance(records.values())
    same = [f"{name} {next(iter(counts))}" for name, counts in told.items() if len(counts) == 1]
    mixed = [
        f"MIXED {name}: " + ", ".join(f"{value} ({n})" for value, n in counts.items())
        for name, counts in told.items()
        if len(counts) > 1
    ]
    return [f"{len(records)} runs: " + ", ".join(same), *mixed]


def as_csv(entries: Sequence[Entry]) -> str:
    """Exactly COLUMNS, one line per entry; empty where a column does not apply, numbers to 8 digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_plain(value) for value in row(entry).values()] for entry in entries)
    return out.getvalue().rstrip("\n")


def as_text(entries: Sequence[Entry]) -> str:
    """Aligned plain text, for pipes and files."""
    made, footnotes = grids(entries)
    tables = [line for grid in made for line in (grid.title, *aligned(grid.header, grid.rows), "")]
    return "\n".join([*heads(entries), "", *tables, LEGEND, *footnotes])


def as_markdown(entries: Sequence[Entry]) -> str:
    """A Markdown table per metric, with head and footnotes."""
    made, footnotes = grids(entries)
    lines = [*(line + "  " for line in heads(entries)), ""]
    for grid in made:
        lines += [f"**{grid.title}**", "", _bars(grid.header), _bars(["---"] * len(grid.header))]
        lines += [*map(_bars, grid.rows), ""]
    return "\n".join([*lines, *(line + "  " for line in (LEGEND, *footnotes))])


def as_latex(entries: Sequence[Entry]) -> str:
    """A tabular per metric for LaTeX's booktabs package; head, legend and footnotes as text around them."""
    made, footnotes = grids(entries)
    lines = [_tex(line) + r"\\" for line in heads(entries)]
    for grid in made:
        lines += ["", _tex(grid.title) + r"\\", rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}", r"\toprule"]
        lines += [_ampersands(grid.header), r"\midrule", *map(_ampersands, grid.rows), r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, "", *(_tex(line) + r"\\" for line in (LEGEND, *footnotes))])


FORMATS = {"terminal": as_text, "csv": as_csv, "md": as_markdown, "latex": as_latex}


def _text(entry: Entry | None, footnotes: list[str]) -> str:
    if entry is None:
        return ""
    text = f"{number(entry.mean, entry.stderr)} ({entry.n_splits})" if entry.n_splits else "0 done"
    if entry.diverged:
        text += f" ({entry.diverged} diverged)"
    if entry.published:
        delta = "" if entry.delta_se is None else f", {entry.delta_se:+.1f} se"
        text += f" [{number(entry.published.value)}{delta}]"
    return text + " ".join(_superscript(footnotes.index(note) + 1) for note in entry.notes)


def _row_name(entry: Entry) -> str:
    return f"{entry.cell.dataset} {entry.cell.output}".rstrip()


def _column_name(entry: Entry) -> str:
    return f"{entry.cell.method} {entry.cell.label}".rstrip()


def _title(metric: str) -> str:
    from gpbench.metrics import METRICS  # here: csv and JSON need no NumPy

    known = METRICS.get(metric)
    return f"{metric} ({known.unit}; {known.better} is better)" if known else metric


def _superscript(mark: int) -> str:
    return str(mark).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def _tex(text: str) -> str:
    special: dict[str, str | int | None] = {c: "\\" + c for c in "%&_#$"}
    marks = {raised: f"$^{digit}$" for digit, raised in zip("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")}
    return text.translate(str.maketrans(special | marks | {"±": r"$\pm$"}))
