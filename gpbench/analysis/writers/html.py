"""A sheet as HTML, for notebooks and pages; without styles, and all text is escaped."""

import html
from collections.abc import Mapping
from types import MappingProxyType

from gpbench.analysis.sheets import Grid, Sheet, render
from gpbench.errors import printable

_MARKS = {"best": "<b>%s</b>", "tied": "<u>%s</u>", "placed": "<b>%s</b>"}
_MARK_NAMES = {"best": "bold", "tied": "underlined", "placed": "bold"}


def as_html(sheet: Sheet) -> str:
    """The sentence, a `<table>` for each grid, notes as a list, and what was run, which opens on demand."""
    notes = sheet.notes
    lines = [f"<p>{_html(line)}</p>" for line in (sheet.title, sheet.answer, " ".join(sheet.summary)) if line]
    lines += [grid_html(grid, notes) for grid in (*sheet.grids, *sheet.twins)]
    items = [f"{_MARKS[mark] % _MARK_NAMES[mark]}: {_html(text)}" for mark, text in sheet.marks.items()]
    items += [f"{letter} {_html(note)}" for note, letter in notes.items()]
    items += map(_html, sheet.remarks)
    lines += ["<ul>", *(f"<li>{item}</li>" for item in items), "</ul>"] if items else []
    if sheet.facts:
        facts = [f"<dt>{_html(name)}</dt><dd>{_html(text)}</dd>" for name, text in sheet.facts.items()]
        lines += ["<details>", "<summary>What was run</summary>", "<dl>", *facts, "</dl>", "</details>"]
    return "\n".join(lines)


def grid_html(grid: Grid, notes: Mapping[str, str] = MappingProxyType({})) -> str:
    """A grid as the element `<table>`; numbers have the class `number`."""
    texts = lambda row: (render(text, notes, _MARKS, _html) for text in row)
    of_cells = "" if grid.prose else ' class="number"'
    name, *columns = texts(grid.header)
    header = f'<th scope="col">{name}</th>' + "".join(f'<th scope="col"{of_cells}>{text}</th>' for text in columns)
    (caption,) = texts([grid.title])
    lines = ["<table>", *([f"<caption>{caption}</caption>"] if caption else [])]
    lines += [f"<thead><tr>{header}</tr></thead>", "<tbody>"]
    for row in grid.rows:
        name, *cells = texts(row)
        numbers = "".join(f"<td{of_cells}>{text}</td>" for text in cells)
        lines.append(f'<tr><th scope="row">{name}</th>{numbers}</tr>')
    return "\n".join([*lines, "</tbody>", "</table>"])


def _html(text: str) -> str:
    return html.escape(printable(text))
