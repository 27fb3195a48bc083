"""Tables of any recorded runs: rows are data sets, columns methods with their settings."""

from collections.abc import Callable, Iterable, Sequence

from gpbench.report.cells import Entry, natural, provenance
from gpbench.report.formats import Grid, Sheet
from gpbench.report.text import number

COLUMNS = (
    "dataset", "output", "method", "setting", "metric", "mean", "stderr", "n_splits", "published", "published_err",
    "delta_se", "held_out", "protocol", "preset",
)  # fmt: skip
LEGEND = (
    "mean ± standard error over splits (number of splits) [value the paper prints, difference in joint standard errors]"
)


def sheet(entries: Sequence[Entry]) -> Sheet:
    """One grid per metric, how the runs were made above it, and the footnotes of its marks below."""
    footnotes = notes(entries)
    made = []
    for metric in dict.fromkeys(entry.metric for entry in entries):
        found = {(_row_name(e), _column_name(e)): e for e in entries if e.metric == metric}
        names = list(dict.fromkeys(name for name, _ in found))
        columns = sorted(dict.fromkeys(column for _, column in found), key=natural)
        rows = [
            [shown(found[place], footnotes) if (place := (name, column)) in found else "" for column in columns]
            for name in names
        ]
        made.append(
            Grid(title(metric), ("data set", *columns), tuple((name, *cells) for name, cells in zip(names, rows)))
        )
    return Sheet(heads(entries), made, [LEGEND, *numbered(footnotes)], [row(entry) for entry in entries])


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
        "protocol": "+".join(sorted({record["protocol"] for record in cell.records})) or None,
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


def heads(entries: Sequence[Entry]) -> list[str]:
    """How the runs of a table were made: a line for what they share, and one for each thing that is mixed."""
    return runs_line(record for entry in entries for record in entry.cell.records)


def runs_line(made: Iterable[dict]) -> list[str]:
    """How these runs were made, each counted once."""
    records = {record["id"]: record for record in made}
    told = provenance(records.values())
    same = [f"{name} {next(iter(counts))}" for name, counts in told.items() if len(counts) == 1]
    mixed = [
        f"MIXED {name}: " + ", ".join(f"{value} ({n})" for value, n in counts.items())
        for name, counts in told.items()
        if len(counts) > 1
    ]
    return [f"{len(records)} runs: " + ", ".join(same), *mixed]


def notes(entries: Sequence[Entry]) -> list[str]:
    """The footnotes of these entries, in order."""
    return list(dict.fromkeys(note for entry in entries for note in entry.notes))


def numbered(footnotes: Sequence[str]) -> list[str]:
    """Footnotes as lines, each with its mark."""
    return [f"{_superscript(k)} {note}" for k, note in enumerate(footnotes, 1)]


def shown(entry: Entry, footnotes: Sequence[str], marked: Callable[[str], str] = str) -> str:
    """A cell as LEGEND says, with the marks of its footnotes; `marked` is put on our number."""
    text = f"{marked(number(entry.mean, entry.stderr))} ({entry.n_splits})" if entry.n_splits else "0 done"
    if entry.diverged:
        text += f" ({entry.diverged} diverged)"
    if entry.published:
        delta = "" if entry.delta_se is None else f", {entry.delta_se:+.1f} se"
        text += f" [{number(entry.published.value)}{delta}]"
    return text + " ".join(_superscript(footnotes.index(note) + 1) for note in entry.notes)


def title(metric: str) -> str:
    """A metric's name, with its unit and direction."""
    from gpbench.metrics import METRICS  # here: csv and JSON need no NumPy

    known = METRICS.get(metric)
    return f"{metric} ({known.unit}; {known.better} is better)" if known else metric


def _row_name(entry: Entry) -> str:
    return f"{entry.cell.dataset} {entry.cell.output}".rstrip()


def _column_name(entry: Entry) -> str:
    return f"{entry.cell.method} {entry.cell.label}".rstrip()


def _superscript(mark: int) -> str:
    return str(mark).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
