"""Names of users' cards and records in every format of a table: each as it is read, and none as a command."""

import csv
import io
import json

from samples import sample

from gpbench.analysis.formats import FORMATS
from gpbench.analysis.printing import aligned
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.api.tables import Table
from gpbench.cli import main
from gpbench.errors import printable


def written(format, *names):
    cells = tuple((name, "1.0") for name in names)
    rows = [{"method": name, "value": 1.0} for name in names]
    return FORMATS[format](Sheet(title="head", grids=[Grid("grid", ("method", "value"), cells)], rows=rows))


def test_latex_prints_the_name():
    for name, tex in {
        "a\\b": r"a\textbackslash{}b",
        "{a}": r"\{a\}",
        "a~b": r"a\textasciitilde{}b",
        "a^b": r"a\textasciicircum{}b",
        "a&b": r"a\&b",
        "50%": r"50\%",
        "$a$": r"\$a\$",
        "#1": r"\#1",
        "a_b": r"a\_b",
        "a|b<c>": "a$|$b$<$c$>$",
        "0.1 ± 0.2": r"0.1 $\pm$ 0.2",
    }.items():
        assert f"\n{tex} & 1.0 \\\\\n" in written("latex", name)


def test_marks_of_latex_and_html_are_commands_and_a_sheet_is_html_and_a_frame():
    text = written("latex", Text("{a}", "best"), Text("b_c", "tied"))
    assert r"\textbf{\{a\}} & 1.0" in text and r"\underline{b\_c} & 1.0" in text
    text = written("html", "<script>&'\"", Text("a", "best"), Text("b", "tied"))
    assert '<th scope="row">&lt;script&gt;&amp;&#x27;&quot;</th><td class="number">1.0</td>' in text
    assert '<th scope="row"><b>a</b></th>' in text and '<th scope="row"><u>b</u></th>' in text
    grid = Grid("grid", ("method", "nll"), (("sep", "0.1"),))
    sheet = Sheet(title="head", grids=[grid], rows=[{"method": "sep", "nll": 0.1}])
    table = Table(sheet)
    assert table._repr_html_() == FORMATS["html"](sheet) and str(table) == FORMATS["terminal"](sheet)
    assert sheet.frame.to_dict("records") == sheet.rows


def test_no_cell_of_csv_markdown_or_the_terminal_is_a_command():
    formulas = ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)"]
    texts = {name: f"'{name}'"[:-1] for name in formulas}
    for name, text in (texts | {name: name for name in ("-1.5", "+2e-3", "sep", "a,b", 'say "a"')}).items():
        assert [row["method"] for row in csv.DictReader(io.StringIO(written("csv", name)))] == [text]
    names = {"a|b": r"a\|b", "<script>": "&lt;script>", "a\nb": r"a\nb", "N < 10": "N < 10", ">a": "&gt;a"}
    for name, md in names.items():
        assert f"| {md} | 1.0 |" in written("md", name).splitlines()
    for format in FORMATS:
        text = written(format, "\x1b[2Jred\x07\x9b", "two\nlines", "\u202eleft", "\ud800")
        assert text.replace("\n", "").isprintable() and "u202eleft" in text, format
        text.encode()


def test_columns_are_aligned_by_what_is_printed():
    header, first, second = aligned(("name", "n"), [("a\x1b", "7"), ("abc", "8")])
    assert first.index("7") == second.index("8") == header.index("n", 4)
    assert printable("Nyström ± 0.1 ≈") == "Nyström ± 0.1 ≈"


def test_ls_show_and_table_print_a_name_with_terminal_escapes_as_text(tmp_path, capsys):
    names = {"dataset": "pi\x1b[31mma", "method": "se\x1bcp", "setting": "a\nb"}
    record = sample("0" * 16, metrics={"nll": 0.5}, seconds={"train": 2.0}, **names)
    folder = tmp_path / "runs" / record.id
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(record.to_json()))
    (tmp_path / "dataset").mkdir()
    card = 'name: mine\ntask: regression\ntitle: "a\\e[31mb"\nsources: [{kind: file, path: a.csv, target: y}]\n'
    (tmp_path / "dataset" / "mine.yaml").write_text(card)
    for words in ("ls runs", "show --last", "table", "table --metric nlll", "ls datasets", "data info mine"):
        main([*words.split(), "--config-dir" if "data" in words else "--results", str(tmp_path)])
        captured = capsys.readouterr()
        assert "\x1b" not in captured.out + captured.err and captured.out + captured.err
    (tmp_path / "all.csv").write_text("")
    assert main(["table", "--results", str(tmp_path), "--format", "csv", "--out", str(tmp_path / "all.csv")]) == 0
    assert "se\\x1bcp" in (tmp_path / "all.csv").read_text()
