"""Odd text tables, made here by hundreds: each is read with all of its rows and cells, or refused in one line.

No row vanishes without a word: the rows that are read and the lines that are told besides are the lines of the file.
"""

import bz2
import gzip
import io
import itertools
import lzma
import re

import numpy as np
import pytest
from small_tables import excel

from gpbench.api.words import with_cards
from gpbench.data import cards, cells, checks, load, tables
from gpbench.errors import DataError, GpbenchError

N = 24
RNG = np.random.default_rng(7)
X = np.column_stack([RNG.normal(size=N).round(2), 1000 + RNG.integers(0, 999, N)])
Y = RNG.normal(size=N).round(3)
LINES = ["load|angle|note|wear", *(f"{a}|{b:.0f}|ok {k}|{y}" for k, ((a, b), y) in enumerate(zip(X, Y)))]
"""A table with `|` for the delimiter; the first look leaves its column of texts out."""
DELIMITERS = [",", ";", "\t", "|", " "]
READ, SHORT = None, "row {row} has 3 cells, not 4 .line {line}: '1, 2, 3'.; .*`skip: .{line}.`"


def sums(lines):
    return [*lines, f"{X[:, 0].sum():.2f}|{X[:, 1].sum():.0f}|all|{Y.sum():.3f}"]


def at(place, *more):
    return lambda lines: [*lines[:place], *more, *lines[place:]]


def cell(column, text):
    """Every cell of a column as a text makes it."""

    def change(lines):
        rows = [line.split("|") for line in lines]
        return ["|".join(text(c) if i == column else c for i, c in enumerate(row)) for row in rows]

    return change


def below(change):
    """A change of all lines but the header."""
    return lambda lines: [lines[0], *map(change, lines[1:])]


# a change of the lines, with what the first look says of it, what the check notes, or why the table is refused
FEATURES = {
    "plain": (lambda lines: lines, READ, ""),
    "all in quotes": (lambda lines: ['"' + line.replace("|", '"|"') + '"' for line in lines], READ, ""),
    "texts in quotes": (cell(2, lambda c: f'"{c}"'), READ, ""),
    "delimiters in quotes": (below(lambda line: re.sub("ok (.*)[|]", r'"ok|\1|, ; "|', line)), READ, ""),
    "doubled quotes": (below(lambda line: re.sub("ok (.*)[|]", r'"a ""b"" \1"|', line)), READ, ""),
    "inches": (below(lambda line: re.sub("ok (.*)[|]", r'ok_\1"|', line)), READ, ""),
    "lines in quotes": (below(lambda line: re.sub("ok (.*)[|]", r'"ok~\1, and~more"|', line)), READ, "in cells of sev"),
    "blanks around": (lambda lines: [f" {line.replace('|', ' | ')} " for line in lines], READ, ""),
    "empty lines": (lambda lines: [new for line in lines for new in (line, "")], READ, " blank"),
    "empty lines first": (at(0, "", ""), READ, "2 blank"),
    "lines of blanks last": (lambda lines: [*lines, "  ", "   "], READ, "2 blank"),
    "a delimiter at the ends": (lambda lines: [f"{line}|" for line in lines], READ, ""),
    "a delimiter at the ends of rows": (below(lambda line: f"{line}|"), READ, ""),
    "comments": (lambda lines: ["# a, b; c", "#", lines[0], "# more", *lines[1:]], READ, "3 comments"),
    "percents": (at(0, "% made by rig 4"), READ, "1 comments"),
    "units": (at(1, "kN|deg|-|mm"), READ, "line 2 left out, as one of units"),
    "units in brackets": (at(1, "[kN]|[%]|[-]|[mm/s2]"), READ, "line 2 left out, as one of units"),
    "units and a comment": (lambda lines: ["# rig", lines[0], "kN|°|-|mm", *lines[1:]], READ, "line 3 left out"),
    "a title": (at(0, "A table of rig 4"), "first line has no 'wear', and line 2 has: .*`skip: 1`", ""),
    "totals": (lambda lines: [*lines, "1|1|Total|1"], "totals", "looks like totals of the others, which skip: [26]"),
    "sums": (sums, "totals", "the last row, 25 (line 26), looks like totals of the others, which skip: [26] leaves"),
    "a short row": (at(5, "1|2|3"), SHORT.format(row=5, line=6), ""),
    "a long row": (at(9, "1|2|3|4|5"), "row 9 has 5 cells, not 4 .line 10: '1, 2, 3, 4, 5'", ""),
    "a short row below a comment": (lambda lines: ["# rig", *lines, "1|2|3"], SHORT.format(row=25, line=27), ""),
    "a name twice": (lambda lines: ["load|load|note|wear", *lines[1:]], "the header has 'load' more than once", ""),
    "no name of the target": (lambda lines: ["load|angle|note|worn", *lines[1:]], "target=wear: no such column", ""),
    "names twice": (at(12, LINES[0]), r"24 cells are numbers, and 1 not, as 'load' \(row 12\).*`skip: \[13\]`", ""),
    "an open mark": (cell(2, lambda c: f'"{c}' if c == "ok 5" else c), "line 7: a quotation mark (is open|opens)", ""),
    "a control character": (lambda lines: [*lines, "\x1a"], r"row 25 has 1 cells, not 4 .line 26: '.x1a'", ""),
    "only names": (lambda lines: lines[:1], "the table has no rows", ""),
}
ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
CODES = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]
PACKED = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def content(feature: str, delimiter: str, end: str, is_open: bool = False) -> str:
    """The text of a feature, without its last line end where `is_open`."""
    lines = FEATURES[feature][0]([*LINES])
    if delimiter == " ":  # texts with blanks are in quotes
        lines = [re.sub(r"(?<![\w\"])(ok \d+)(?!\")", r'"\1"', line) for line in lines]
    return end.join(lines).replace("|", delimiter).replace("~", end) + end * (not is_open)


def lines_of(text: str) -> int:
    return len(io.StringIO(text, newline="").readlines())


CASES = [
    (feature, delimiter, [*ENDS][(i + j) % 3], CODES[(i + 2 * j) % 4], [*PACKED][(2 * i + j) % 4], bool((i + j) % 2))
    for i, feature in enumerate(FEATURES)
    for j, delimiter in enumerate(DELIMITERS)
    if (i + j) % 5 < 3
]


@pytest.mark.parametrize(("feature", "delimiter", "end", "code", "pack", "is_open"), CASES)
def test_a_first_look_reads_all_rows_or_refuses_a_table(feature, delimiter, end, code, pack, is_open, tmp_path, capsys):
    _, refusal, said = FEATURES[feature]
    text = content(feature, delimiter, ENDS[end], is_open)
    (tmp_path / "odd.txt").write_bytes(PACKED[pack](text.encode(code)))
    try:
        folders = with_cards([f"dataset={tmp_path}/odd.txt", "target=wear"], [])[1]
    except GpbenchError as error:
        assert "\n" not in str(error) and len(str(error)) < 440 and not (tmp_path / "dataset").exists()
        assert refusal and re.search(refusal, str(error)), error
        return
    assert refusal in (READ, "totals")
    line, more = capsys.readouterr().err, refusal == "totals"
    assert said in line and line.count("\n") == 1
    card = cards.read("odd", folders)
    dataset = load(card, config_dirs=folders)
    np.testing.assert_array_equal(dataset.X[:N, :2], X)
    np.testing.assert_array_equal(dataset.y[:N], Y)
    assert len(dataset.y) == N + more and dataset.columns[:2] == ("load", "angle")
    assert dataset.account.startswith(f"{N + more} rows of {lines_of(text)} lines (1 of names")
    report = checks.check(card, dataset)
    assert f"file     {dataset.account}" in str(report)
    assert any("totals" in finding.text for finding in report.findings) == more


def stray(row: int, column: int, place: int) -> str:
    """The table with commas and one quotation mark at the beginning, in the middle or at the end of a cell."""
    mark = lambda c: [f'"{c}', f'{c[:1]}"{c[1:]}', f'{c}"'][place]
    lines = [line.split("|") for line in LINES]
    lines[row][column] = mark(lines[row][column])
    return "\n".join(map(",".join, lines)) + "\n"


def read_or_refused(text: str) -> tables.Raw | None:
    """The table with the target of the last column, None where it is refused in a line; all lines are told."""
    try:
        raw = tables.table([text.encode()], {"target": 3, "header": True, "drop": ["note"]})
    except DataError as error:
        assert "\n" not in str(error) and len(str(error)) < 300
        return None
    rows, lines = map(int, re.match(r"(\d+) rows of (\d+) lines", raw.account).groups())
    others = sum(map(int, re.findall(r"(\d+) (?!rows|lines)[a-z]", raw.account)))
    assert rows == len(raw.X) and rows + others == lines == lines_of(text)
    return raw


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("place", range(3))
def test_one_stray_mark_never_takes_rows_away(column, place):
    for row in range(1, N + 1):
        raw = read_or_refused(stray(row, column, place))
        assert raw is None or len(raw.X) == N
        assert raw is not None or place == 0 or column != 2  # within a text a mark is a letter


@pytest.mark.parametrize("place", range(3))
def test_two_stray_marks_never_take_rows_away(place):
    """One opens a cell of text, and one behind closes it, or does not."""
    for first, second, column in itertools.product(range(1, N + 1, 4), range(1, N + 1), range(4)):
        lines = [stray(first, 2, 0).splitlines()[k] for k in range(N + 1)]
        lines[second] = stray(second, column, place).splitlines()[second] if first != second else lines[second]
        raw = read_or_refused("\n".join(lines) + "\n")
        assert raw is None or len(raw.X) == N


def test_random_marks_delimiters_and_line_ends_take_no_line_away_without_a_word():
    rng = np.random.default_rng(3)
    read = 0
    for _ in range(500):
        letters = [*"\n".join(LINES).replace("|", ",")]
        for place in rng.integers(0, len(letters), rng.integers(1, 4)):
            letters[place] = rng.choice([letters[place], *'"",\n\r #'])
        read += read_or_refused("".join(letters)) is not None
    assert 50 < read < 450


@pytest.mark.parametrize("delimiter", ",;")
def test_one_lost_mark_never_takes_rows_away(delimiter):
    text = "\n".join(f'"{line}"' for line in LINES).replace("|", f'"{delimiter}"') + "\n"
    for place in [match.start() for match in re.finditer('"', text)]:
        try:
            table = cells.read((text[:place] + text[place + 1 :]).encode(), {"delimiter": delimiter})
        except DataError as error:
            assert re.match(r"line \d+: a quotation mark (is|opens)", str(error))
        else:
            assert len(table.rows) == N + 1


SPELT = {
    "decimal commas": ("a;b;y", lambda k: f"{k},5;{k * k % 7};{k % 5},25", "decimal comma"),
    "decimal commas without names": ("", lambda k: f"{k},5;{k * k % 7};{k % 5},25", "decimal comma"),
    "no names": ("", lambda k: f"{k}.5,{k * k % 7},{k % 5}.25", "24 rows of 24 lines)"),
    "no names and a gap": ("", lambda k: f"{k}.5,{k or ''},{k % 5}.25", "1 rows with missing cells left out"),
    "sep=;": ("sep=;\na;b;y", lambda k: f"{k}.5;{k * k % 7};{k % 5}.25", "1 left out by `skip`"),
    "sep and units": ("sep=;\na;b;y\nkg;m;s", lambda k: f"{k}.5;{k * k % 7};{k % 5}.25", "line 3 left out, as one of"),
    "names of gnuplot": ("# a b y", lambda k: f"{k}.5 {k * k % 7}  {k % 5}.25", "24 rows of 25 lines (1 of names)"),
    "a comment and cells like it": ("# rig\nc,a,y", lambda k: f"#{k % 2},{k}.5,{k % 5}.25", "1 left out by `skip`"),
    "thousands": ("a;b;y", lambda k: f"1.{k:03},5;{k};{k % 5},25", "`thousands: .\\."),
    "thousands or decimals": ("a;b;y", lambda k: f"1,{k:03};{k};2,{k:03}", '`thousands: ","` or `decimal: ","`'),
    "a mark that is no comment": ("#a,b,y", lambda k: f"{k}.5,{k * k % 7},{k % 5}.25", "24 rows of 25 lines"),
}


@pytest.mark.parametrize("name", SPELT)
def test_a_spelling_is_guessed_with_all_rows_or_asked_for(name, tmp_path, capsys):
    head, line, said = SPELT[name]
    text = "\n".join([*([head] if head else []), *map(line, range(N))])
    (tmp_path / "odd.csv").write_text(text)
    try:
        folders = with_cards([f"dataset={tmp_path}/odd.csv", f"target={'y' if head else -1}"], [])[1]
    except GpbenchError as error:
        assert "\n" not in str(error) and re.search(said, str(error)), error
        return
    dataset = load(cards.read("odd", folders), config_dirs=folders)
    lost = name == "no names and a gap"
    assert said in capsys.readouterr().err and len(dataset.y) == N - lost
    np.testing.assert_array_equal(dataset.y, [k % 5 + 0.25 for k in range(lost, N)])


def test_one_cell_may_be_long_and_is_left_out_with_its_length(tmp_path, capsys):
    (tmp_path / "long.csv").write_text(
        "\n".join(["a,b,y", *(f"{k * k % 7},{'x' * (200_000 if k == 3 else 1)},{k}.5" for k in range(N))])
    )
    folders = with_cards([f"dataset={tmp_path}/long.csv", "target=y"], [])[1]
    dataset = load(cards.read("long", folders), config_dirs=folders)
    assert dataset.columns == ("a",) and len(dataset.y) == N
    assert "b left out (texts of up to 200,000 characters)" in capsys.readouterr().err
    content = f"a,y\n{'x' * 200_000},1\n2,3\n".encode()
    with pytest.raises(DataError, match=r"column 'a', row 1: 'x{60}\.\.\.' is not a number") as caught:
        tables.table([content], {"target": "y"})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("lines", "skip", "rows"),
    [
        (["", "title", "", "a,y", "kg,m", "1,2", "", "3,4", "4,6"], [1, 2, 5, 9], [1, 3]),
        (["", "title", "", "a,y", "1,2", "", "3,4"], 3, [1, 3]),
        (["a,y", "1,2", "# x", "3,4"], [3], [1, 3]),
    ],
)
def test_skip_counts_the_lines_of_the_file_in_every_format(lines, skip, rows):
    text = "\n".join(lines).encode()
    raw = tables.table([text], {"target": "y", "skip": skip})
    assert raw.X[:, 0].tolist() == rows
    cells_of = lambda line: [float(cell) if cell.isdigit() else cell for cell in line.split(",")] if line else [None]
    sheet = tables.table([excel(*map(cells_of, lines))], {"target": "y", "skip": skip})
    assert sheet.X[:, 0].tolist() == rows and sheet.account == raw.account
