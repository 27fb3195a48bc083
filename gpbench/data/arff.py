"""The reader of ARFF, by Weka's manual, in time linear in the file.  SciPy reads neither strings, sparse rows, weights
nor double quotes around names, and liac-arff no dates, ranges or weights; both backtrack in some lines without end."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from gpbench.data import archives
from gpbench.data.lines import BLANK, COMMENTS, DECLARATIONS, Cells, numbered
from gpbench.errors import DataError, require

# quantifiers of characters are possessive (`++`, `*+`): no text is read twice; of groups Python 3.11.0 to 3.11.4 err
_QUOTED = r"""'(?P<single>(?:[^'\\]++|\\.)*)'|"(?P<double>(?:[^"\\]++|\\.)*)\""""
_PLAIN = r"""(?P<plain>(?!['"])[^,}]*+)"""
_BEGINNING = re.compile(r"(?:\s++|%[^\r\n]*+)*@relation\b", re.IGNORECASE)
_DECLARATION = re.compile(r"@(\w++)\s*+")
_NAME = re.compile(rf"""(?:{_QUOTED}|(?P<plain>(?!['"])[^\s{{]++))\s*+""")
_LEVEL = re.compile(rf"\s*+(?:{_QUOTED}|{_PLAIN})\s*+(?P<end>[,}}])")
_VALUE = re.compile(  # to a comma, a tab, the end or a comment
    rf"""(?:{_QUOTED}|(?P<plain>(?!['"])(?:[^,\t%]++|(?<!\s)%)*))"""
    r"[ ]*+(?:(?P<end>,|\t\s*+,?+)\s*+|(?:%.*+)?$)"
)
_ENTRY = re.compile(rf"\s*+(?P<index>\d++)\s++(?:{_QUOTED}|{_PLAIN})\s*+(?P<end>[,}}])")
_WEIGHT = re.compile(r"\{\s*+([\d.eE+-]++)\s*+\}\s*+(?:%.*+)?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_DATES = {"yy": "%y", "MMM": "%b", "MMMM": "%B", "EEEE": "%A"} | dict(
    zip("yMdHhmsSaEzZX", ("%Y", "%m", "%d", "%H", "%I", "%M", "%S", "%f", "%p", "%a", "%z", "%z", "%z"))
)
"""Codes of `strptime` by the letters of Java's formats of dates."""


class _Attribute(NamedTuple):
    name: str
    check: Callable[[str], str]  # returns a cell as it is kept
    zero: str = ""  # what sparse rows leave out
    is_nominal: bool = False


def is_arff(text: str, skip: int | Sequence[int]) -> bool:
    """Whether a text begins, after comments, with the declaration of a relation."""
    text = "".join(line for _, line in numbered(text, skip, Counter())) if skip else text
    return _BEGINNING.match(text) is not None


def read(text: str, skip: int | Sequence[int]) -> Cells:
    """The table, with the names in its first row.  Raises DataError, which names the line."""
    others: Counter[str] = Counter()
    attributes: list[_Attribute] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    unknown: dict[str, str] = {}
    weighted = 0
    for number, line in numbered(text, skip, others):
        line = line.strip()
        try:
            if not line or line.startswith("%"):
                others[COMMENTS if line else BLANK] += 1
            elif lines:
                archives.require_dense(len(rows) * len(attributes), len(text))
                cells, weight = (_sparse if line[0] == "{" else _dense)(line, attributes)
                rows.append(cells)
                weighted += weight != 1
                lines.append(number)
            else:
                match = _DECLARATION.match(line)
                keyword = match[1].lower() if match else ""
                if match and keyword == "attribute":
                    attributes.append(_attribute(line[match.end() :], unknown))
                elif keyword == "data":
                    rows.append([attribute.name for attribute in attributes])
                    lines.append(number)
                else:
                    require(keyword == "relation", f"{line[:40]!r} is no declaration")
                others[DECLARATIONS] += keyword != "data"
        except (DataError, ValueError) as error:
            raise DataError(f"line {number} of the ARFF file: {str(error)[:200]}") from None
    require(lines, "the ARFF file has no line @data before its rows: add it")
    notes = [f"{name!r} has values that its declaration lacks, as {cell[:40]!r}" for name, cell in unknown.items()]
    notes += [f"weights of {weighted:,} rows are not used: all rows count alike"] if weighted else []
    nominal = frozenset(attribute.name for attribute in attributes if attribute.is_nominal)
    return Cells(rows, nominal=nominal, is_named=True, lines=lines, other_lines=others, notes=tuple(notes))


def _attribute(text: str, unknown: dict[str, str]) -> _Attribute:
    """The attribute of a declaration; `unknown` gets a value of each that its levels lack."""
    if (match := _NAME.match(text)) is None:
        raise ValueError(f"an attribute has no name, or a quotation mark is not closed: {text[:40]!r}")
    name, kind = _text(match), text[match.end() :]
    words = [*kind.split(None, 1), ""]
    match words[0].lower():
        case "numeric" | "real" | "integer":
            return _Attribute(name, _numeric, "0")
        case "string":
            return _Attribute(name, str)
        case "date":
            form = _NAME.match(words[1])
            return _Attribute(name, _date_of(_text(form) if form else "yyyy-MM-dd'T'HH:mm:ss"))
    require(kind.startswith("{"), f"{name!r} is of type {kind[:20]!r}: must be numeric, nominal, string or date")
    levels = {_text(level): None for level in _until_brace(_LEVEL, kind)}

    def check(cell: str) -> str:
        if cell not in levels:
            unknown.setdefault(name, cell)
        return cell

    return _Attribute(name, check, next(iter(levels)), is_nominal=True)


def _numeric(cell: str) -> str:
    float(cell)  # its ValueError says what the cell is
    return cell


def _date_of(java: str) -> Callable[[str], str]:
    """The function that writes a date of a Java format as ISO 8601 does."""
    code = lambda match: match[1] if match[2] is None else _DATES.get(match[0]) or _DATES.get(match[2], "?")
    form = re.sub(r"'([^']*)'|([A-Za-z])\2*+", code, java)
    require("?" not in form, f"the format of dates {java[:40]!r} is unknown")
    return lambda cell: datetime.strptime(cell, form).isoformat()[: None if "%H" in form or "%I" in form else 10]


def _until_brace(pattern: re.Pattern[str], text: str, start: int = 1) -> Iterator[re.Match[str]]:
    """The entries of a text that begins with `{`, to the `}`."""
    end = ","
    while end == ",":
        if (match := pattern.match(text, start)) is None:
            raise ValueError(f"not entries between braces, or a quotation mark is not closed: {text[start:][:40]!r}")
        yield match
        start, end = match.end(), match["end"]


def _text(match: re.Match[str]) -> str:
    """A name or a value without its quotation marks."""
    if match["plain"] is not None:
        return match["plain"].strip()
    quoted = match["double"] if match["single"] is None else match["single"]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted)


def _value(match: re.Match[str], attribute: _Attribute) -> str:
    """A cell: "" for `?` without quotation marks, and for nothing."""
    text = _text(match)
    return attribute.check(text) if text and (text != "?" or match["plain"] is None) else ""


def _dense(line: str, attributes: Sequence[_Attribute]) -> tuple[list[str], float]:
    """The cells of a row, and its weight."""
    matches: list[re.Match[str]] = []
    while not matches or matches[-1]["end"]:
        if (match := _VALUE.match(line, matches[-1].end() if matches else 0)) is None:
            raise ValueError("a quotation mark is not closed, or text follows a closing one")
        matches.append(match)
    if len(matches) > len(attributes) and matches[-1][0] == "":
        del matches[-1]  # behind a comma at the end
    weight = _WEIGHT.fullmatch(matches[-1]["plain"] or "")
    count = len(matches) - bool(weight)
    fault = f"{count} values for {len(attributes)} attributes: mend it, or leave it out by `skip`"
    require(count == len(attributes), fault)
    return [*map(_value, matches, attributes)], float(weight[1]) if weight else 1.0


def _sparse(line: str, attributes: Sequence[_Attribute]) -> tuple[list[str], float]:
    """The cells of a row `{INDEX VALUE, ...}`, and its weight."""
    cells, last, start = [attribute.zero for attribute in attributes], -1, line.find("}") + 1
    for match in _until_brace(_ENTRY, line) if line[1:start].strip() != "}" else ():
        start, index = match.end(), int(match["index"])
        order = f"index {index} is out of order, or beyond the last, {len(cells) - 1}"
        require(last < index < len(cells), f"{order}: sort the entries, or declare the attribute")
        cells[index], last = _value(match, attributes[index]), index
    rest = line[start:].lstrip(" \t,")
    weight = _WEIGHT.fullmatch(rest)
    require(not rest or rest.startswith("%") or weight, f"{rest[:40]!r} follows the row")
    return cells, float(weight[1]) if weight else 1.0
