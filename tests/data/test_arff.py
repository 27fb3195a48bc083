"""ARFF by the description of the format: each of its parts read right, or refused in a line; in linear time."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from gpbench.api.words import with_cards
from gpbench.data import cards, cells, checks, load
from gpbench.errors import DataError

HEAD = """% Title: a rig
@RELATION 'rig 4'

@attribute 'flow rate' REAL [0,10]
@Attribute "heat" NUMERIC % in kW
@attribute hue {red, 'dark blue', "it's, 5\\% \\"x\\"", {}}
@attribute who string
@attribute day date 'dd/MM/yyyy'
@attribute at DATE
@DATA
"""


def rows(data: str, head: str = HEAD) -> list[list[str]]:
    """The rows of a file with these lines of data."""
    return cells.read((head.replace("{}}", "'{}'}") + data).encode(), {}).rows[1:]


DATES = ["2021-03-04", "2021-03-04T12:30:00"]
TAIL = "04/03/2021,2021-03-04T12:30:00"
ROWS = {
    f"1,2,red,pump,{TAIL}": ["1", "2", "red", "pump", *DATES],
    "  1.50 ,\t-2e3,\t'dark blue',\t\"a, b\", '04/03/2021' , \"2021-03-04T12:30:00\"  % note, '": [
        *("1.50", "-2e3", "dark blue", "a, b", *DATES)
    ],
    f"1\t2\t'it\\'s, 5\\% \"x\"'\tNew York 50%\t{TAIL.replace(',', chr(9))}": [
        *("1", "2", 'it\'s, 5% "x"', "New York 50%", *DATES)
    ],
    "?,?,?,?,?,?": [""] * 6,
    ",,,,,": [""] * 6,
    "?,?,'{}','?',?,?,": ["", "", "{}", "?", "", ""],
    f"1,2,red,'tab\\tand\\\\n\\'',{TAIL},{{2.5}}": ["1", "2", "red", "tab\tand\\n'", *DATES],
    "{}": ["0", "0", "red", "", "", ""],
    "{ 1 3.5 , 2 'dark blue',3 \"x}, y\" }": ["0", "3.5", "dark blue", "x}, y", "", ""],
    "{0 ?, 4 04/03/2021}, {3} % note": ["", "0", "red", "", DATES[0], ""],
}


@pytest.mark.parametrize("line", ROWS)
def test_a_row_is_read_as_the_format_says(line):
    assert rows(line) == [ROWS[line]] == rows(f"\n%\n{line}\r\n")


def test_the_names_the_kinds_and_all_lines_are_told():
    table = cells.read((HEAD.replace("{}}", "'{}'}") + "%\n1,2,red,a,?,?,{2}\n\n1,2,grey,a,?,?,{1}\n").encode(), {})
    assert table.rows[0] == ["flow rate", "heat", "hue", "who", "day", "at"] and table.nominal == {"hue"}
    assert table.lines == [10, 12, 14] and table.is_named
    assert table.other_lines == {"declarations": 7, "blank": 2, "comments": 2}
    assert table.notes == (
        "'hue' has values that its declaration lacks, as 'grey'",
        "weights of 1 rows are not used: all rows count alike",
    )


REFUSED = {
    "1,2,red": "line 11 of the ARFF file: 3 values for 6 attributes",
    "1,2,red,a,?,?,5": "7 values for 6 attributes: mend it",
    "one,2,red,a,?,?": "could not convert string to float: 'one'",
    "1,2,'red,a,?,?": "a quotation mark is not closed, or text follows a closing one",
    "1,2,red,a,2021-03-04,?": "'2021-03-04' does not match format",
    "{6 1}": "index 6 is out of order, or beyond the last, 5: sort the entries, or declare the attribute",
    "{1 1, 1 2}": "index 1 is out of order, or beyond the last, 5",
    "{1 1": "not entries between braces, or a quotation mark is not closed",
    "{1}": "not entries between braces",
    "{1 1}, 5": "'5' follows the row",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_row_that_is_none_is_refused_with_its_line(line):
    with pytest.raises(DataError, match=REFUSED[line]) as caught:
        rows(line)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("line 11 of the ARFF file: ")


@pytest.mark.parametrize(
    "head, message",
    [
        ("@relation r\n@attribute a complex\n", "line 2 .*'a' is of type 'complex': must be numeric, nominal"),
        ("@relation r\n@attribute 'a numeric\n", "an attribute has no name, or a quotation mark is not closed"),
        ("@relation r\n@attribute a {x,'y}\n", "line 2 .*not entries between braces, or a quotation mark"),
        ("@relation r\n@attribute a date QQ\n", "the format of dates 'QQ' is unknown"),
        ("@relation r\n@attribute a numeric\n1,2\n", "line 3 of the ARFF file: '1,2' is no declaration"),
        ("@relation r\n@attribute a numeric\n", "the ARFF file has no line @data before its rows: add it"),
    ],
)
def test_a_head_that_is_none_is_refused_with_its_line(head, message):
    with pytest.raises(DataError, match=message):
        cells.read(head.encode(), {})


def test_dates_order_the_rows_strings_are_left_out_and_weights_are_said_by_check_and_first_look(tmp_path, capsys):
    days = "".join(f"'pump {k}',{28 - k:02}/03/2021,{k * k % 7},{k}.5\n" for k in range(28))
    head = "@relation r\n@attribute who string\n@attribute day date dd/MM/yyyy\n@attribute a numeric\n"
    (tmp_path / "log.arff").write_text(f"{head}@attribute y numeric\n@data\n{days}")
    folders = with_cards([f"dataset={tmp_path}/log.arff", "target=y"], [])[1]
    assert load(cards.read("log", folders), config_dirs=folders).columns == ("a",)
    source = {"kind": "file", "path": "log.arff", "target": "y", "order": "day", "drop": ["who"]}
    dataset = load({"name": "log", "task": "regression", "sources": [source]}, config_dirs=[tmp_path])
    assert (np.diff(dataset.order) == -86400).all()
    text = "@relation r\n@attribute x numeric\n@attribute y numeric\n@data\n"
    (tmp_path / "iw.arff").write_text(text + "".join(f"{k * k % 7},{k % 5}.5,{{{k % 3 + 1}}}\n" for k in range(30)))
    folders = with_cards([f"dataset={tmp_path}/iw.arff", "target=y"], [])[1]
    note = "weights of 20 rows are not used: all rows count alike"
    assert f"30 rows of 34 lines (1 of names, 3 declarations); {note}): edit it" in capsys.readouterr().err
    report = checks.check(card := cards.read("iw", folders), load(card, config_dirs=folders))
    assert (note, "") in report.findings and report.account.startswith("30 rows of 34 lines")


def test_a_small_file_has_no_large_table():
    head = "@relation r\n" + "".join(f"@attribute a{k} numeric\n" for k in range(3000))
    with pytest.raises(DataError, match=r"line 6\d\d\d of .*|a sparse file of [0-9,]+ bytes has 1\d,\d+,\d+ cells"):
        cells.read((head + "@data\n" + "{}\n" * 20_000).encode(), {})


N = 10**6
LONG = {
    "blanks": " " * N,
    "lines of blanks": " \n" * N,
    "comments": " %" * N,
    "comments and blanks": "% \n \n" * N,
    "a name": "@relation r\n@attribute '" + "\\'" * N,
    "levels": "@relation r\n@attribute a {" + "'a'," * N,
    "braces": "@relation r\n@attribute a " + "{" * N,
    "quotes": "@relation r\n@attribute a string\n@data\n" + "'" * N,
    "escapes": "@relation r\n@attribute a string\n@data\n'" + "\\'" * N,
    "quotes and commas": "@relation r\n@attribute a string\n@data\n" + "'a'," * N + "'",
    "tabs": "@relation r\n@attribute a string\n@data\n,a" + "\t" * N + "a",
    "blanks and percents": "@relation r\n@attribute a string\n@data\na" + "  %" * N,
    "percents": "@relation r\n@attribute a string\n@data\na" + "%" * N + ",a",
    "entries": "@relation r\n@attribute a string\n@data\n{" + "0 a," * N,
    "digits": "@relation r\n@attribute a string\n@data\n{" + "0" * N,
    "a weight": "@relation r\n@attribute a string\n@data\na,{" + "1" * N,
    "a date": "@relation r\n@attribute a date '" + "y" * N,
    "a date in quotes": '@relation r\n@attribute a date "' + "'y" * N + '"',
}
READ = """
import sys
from gpbench.data import cells
from gpbench.errors import DataError
try:
    cells.read(sys.stdin.buffer.read(), {})
except DataError as error:
    print(str(error)[:200])
"""


@pytest.mark.parametrize("name", LONG)
def test_a_megabyte_of_what_regular_expressions_read_twice_takes_seconds(name):
    """A quadratic pattern would take 10^12 steps, which are hours; the limit is that of the processor's seconds."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    done = subprocess.run(
        [sys.executable, "-c", READ], input=LONG[name].encode(), capture_output=True, preexec_fn=limit
    )
    assert done.returncode == 0 and done.stderr == b"", done.stderr[-300:]
