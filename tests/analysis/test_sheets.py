"""The model of a table in its forms: parts that can be read, notes at their places, lines that fit, LaTeX."""

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import gpbench
from gpbench.analysis.formats import FORMATS, format_of, plain
from gpbench.analysis.sheets import Grid, Sheet, Text, parts, text_of
from gpbench.errors import ConfigError

RESULTS = Path(__file__).resolve().parents[2] / "results"
CELL = "-2.123 ± 0.045"


def grid(columns, rows=3, text=CELL):
    return Grid(
        "test_ll",
        ("data set", *(f"method-{c}" for c in range(columns))),
        tuple((f"set{r}", *([text] * columns)) for r in range(rows)),
    )


def sheet_of(grids, **fields):
    return Sheet(title="A table of 50 % & more.", grids=grids, rows=[{"a": 1}], name="x/table1", **fields)


def test_a_part_has_at_most_ten_columns_none_is_lost_and_empty_ones_are_left_out():
    for n in (1, 9, 10, 18, 40):
        pieces = parts(grid(n), lambda column: "odd" if column % 2 else "even")
        assert all(len(piece.header) <= 10 for piece in pieces)
        names = [text_of(name).text for piece in pieces for name in piece.header[1:]]
        assert sorted(names) == sorted(grid(n).header[1:]) and len(pieces) == (1 if n < 10 else -(-n // 18) * 2)
        title = "test_ll" if n < 10 else f"test_ll: even{', part 1 of 3' * (n == 40)}"
        assert text_of(pieces[0].title).text == title
    rows = (("a", "1", "", ""), ("b", "", "", ""), ("c", "", "", "3"))
    (piece,) = parts(Grid("nll", ("data set", "x", "y", "z"), rows))
    assert [text_of(name).text for name in piece.header] == ["data set", "x", "z"]
    assert [text_of(row[0]).text for row in piece.rows] == ["a", "c"]
    assert parts(Grid("nll", ("data set", "x"), (("a", ""),))) == []


def test_a_note_of_all_cells_of_a_title_a_row_or_a_column_stands_there_alone():
    def value(*notes):
        return Text("1", notes=notes)

    rows = (("a", value("all", "row"), value("all", "row")), ("b", value("all"), value("all", "one")))
    (piece,) = parts(Grid("nll", ("data set", "x", "y"), rows))
    assert text_of(piece.title).notes == ("all",) and text_of(piece.rows[0][0]).notes == ("row",)
    assert [text_of(text).notes for row in piece.rows for text in row[1:]] == [(), (), (), ("one",)]


def test_letters_of_a_late_note_are_not_those_of_two_notes_and_columns_stand_below_each_other():
    notes = [f"note {k}" for k in range(27)]
    rows = (*((note, Text("1", notes=(note,))) for note in notes), ("both", Text("1", notes=("note 0", "note 1"))))
    sheet = sheet_of([Grid("nll", ("data set", "x"), rows)])
    for name, late, both in (("md", "1ᵇᵇ", "1ᵃᵇ"), ("terminal", "1ᵇᵇ", "1ᵃᵇ"), ("latex", "{bb}", "{a,b}")):
        text = FORMATS[name](sheet)
        assert text.count(late) == 1 + (name == "latex") and text.count(both) == 1  # in LaTeX also at the note
    rows = [(f"r{k}", Text("1.0", notes=(f"note {k}",)), Text("2.0")) for k in range(28)]
    lines = FORMATS["terminal"](sheet_of([Grid("nll", ("a", "b", "c"), tuple(rows))])).splitlines()
    assert {(line.index("1.0"), line.index("2.0")) for line in lines if "1.0" in line} == {(5, 12)}


@functools.cache
def committed(experiment):
    """The table of an experiment, of which one costs seconds."""
    return gpbench.table(experiment, preset="quick", results=RESULTS / experiment.split("/")[0] / "records.parquet")


@pytest.mark.parametrize("experiment", ["aep_dgp/table3", "qsgp/table2"])
def test_lines_of_a_committed_table_fit_the_terminal(experiment, monkeypatch):
    """Printed as the command prints it: tests/api/test_interface.py."""
    for width in (60, 80, 100, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        assert max(map(len, str(committed(experiment)).splitlines())) <= width


def test_lines_of_committed_tables_are_at_most_194_characters_and_tables_at_most_ten_columns():
    for path in RESULTS.glob("*/*.md"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert len(line) <= 194, f"{path}: {line[:80]}"
            assert len(re.findall(r"(?<!\\)\|", line)) <= 11, f"{path}: {line[:80]}"


def test_latex_is_a_float_with_rules_caption_and_label_for_each_grid_and_plain_is_the_tabulars_alone():
    rows = (("50 %", Text("0.1 ± 0.2", "best", ("not held out",)), Text("a_b", "tied")),)
    sheet = sheet_of([Grid("nll", ("data set", "x", "y"), rows), grid(9)], marks={"best": "best of its row"})
    text = FORMATS["latex"](sheet)
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") >= 2
    n = text.count(r"\begin{tabular}")
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == n
    assert r"\caption{A table of 50 \% \& more. nll." in text and r"\label{tab:x-table1-2}" in text
    assert r"\textbf{0.1 $\pm$ 0.2}\textsuperscript{a}" in text and r"\textsuperscript{a}~not held out." in text
    bare = FORMATS["latex"](plain(sheet))
    assert bare.count(r"\begin{tabular}") == n and not any(c in bare for c in ("caption", "{table}", "superscript"))
    for line in (line for line in text.splitlines() if line.endswith(r" \\")):
        assert line.count(" & ") + 1 <= 10


def prose():
    """Words as in `compare`, `verify` and `best`: short and long ones, numbers, paths, marks."""
    header = ("data set", "setting", "A: gpr", "B: svi", "A - B", "95 % interval", "p", "n", "better")
    setting = "rows=512, kernel=squared_exponential(isotropic) | m=128, trial_steps=50"
    numbers = ("0.05254", "0.02676", "+0.02577", "[-0.007593, +0.006678]", "0.89", "20 (1 diverged)", "gpr")
    row = ("kuka_sim1 torque1", setting, *numbers)
    claim = ("sep/c01", "contradicted", "0.3499 [-0.007593, +0.006678], not wine_red; " * 6, "The same says it " * 4)
    best = ("laplace hidden=[100]", Text("4.382", "best", ("a note",)), "+0.0207 [-0.00592, +0.0473]", "0.11", "open")
    path = ("sep/c05", "not run", "tests/methods/test_sep.py::test_the_running_product_is_the_product", "x")
    return [
        Grid("rmse", header, (row,) * 30, prose=True),
        Grid("claims", ("claim", "verdict", "evidence", "says"), (claim, path) * 8, prose=True),
        Grid("best", ("method", "rmse", "minus the first [95 %]", "p", "shown"), (best,) * 5, prose=True),
    ]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("made", ["gam/regression", "aep_dgp/table3", "words"])
def test_latex_compiles_and_fits_the_line(made, is_plain, tmp_path):
    sheet = sheet_of(prose()) if made == "words" else committed(made).sheet
    (tmp_path / "table.tex").write_text(FORMATS["latex"](plain(sheet) if is_plain else sheet))
    body = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}\end{document}"
    (tmp_path / "paper.tex").write_text(body)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0 and b"Overfull" not in done.stdout


def test_the_ending_of_a_file_names_the_format_and_another_format_is_refused():
    endings = {"a.md": "md", "a.TEX": "latex", "a.csv": "csv", "a.html": "html", "a.txt": "terminal", "a": "terminal"}
    assert {name: format_of(Path(name)) for name in endings} == endings and format_of(None) == "terminal"
    # In words: cli/test_wrong_words.py.
    with pytest.raises(
        ConfigError, match=r"--out a\.md is Markdown and --format latex is LaTeX: leave one of them out"
    ):
        format_of(Path("a.md"), "latex")
    for name, format in {"a.tex": "latex", "a.txt": "md", "a": "csv", "a.xyz": "csv"}.items():
        assert format_of(Path(name), format) == format
