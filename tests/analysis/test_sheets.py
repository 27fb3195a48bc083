"""The model of a table in its forms: parts, footnotes, names of users, lines that fit, LaTeX."""

import csv
import functools
import io
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from samples import sample

import gpbench
from gpbench.analysis import provenance
from gpbench.analysis.cells import caveats, entries, group_runs
from gpbench.analysis.formats import FORMATS, format_of, plain
from gpbench.analysis.printing import aligned
from gpbench.analysis.sheets import Grid, Sheet, Text, parts, text_of
from gpbench.api.tables import Table, table_of
from gpbench.cli import main
from gpbench.errors import ConfigError, printable
from gpbench.report.site import views

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


def test_a_brief_sheet_has_the_first_tables_and_says_how_many_more_there_are():
    sheet = sheet_of([grid(2, rows=9)] * 5, twins=[grid(2, rows=30)] * 2, facts={"runs": "5"})
    assert (len(sheet.brief.grids), len(sheet.brief.twins), sheet.brief.facts) == (2, 1, {})
    assert sheet.brief.remarks == ["--all shows 4 more of these tables, and what was run"]
    small = sheet_of([grid(2)], twins=[grid(2)], facts={"runs": "5"})
    assert small.brief is small


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
    body = r"\documentclass{article}\usepackage{booktabs,tabularray}\begin{document}\input{table}\end{document}"
    (tmp_path / "paper.tex").write_text(body)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0 and b"Overfull" not in done.stdout


def test_the_ending_of_a_file_names_the_format_and_another_format_is_refused():
    endings = {"a.md": "md", "a.TEX": "latex", "a.csv": "csv", "a.html": "html", "a.txt": "terminal", "a": "terminal"}
    assert {name: format_of(Path(name)) for name in endings} == endings and format_of(None) == "terminal"
    # In words: cli/test_wrong_words.py.
    line = r"--out a\.md is Markdown and --format latex is LaTeX: leave one of them out"
    with pytest.raises(ConfigError, match=line):
        format_of(Path("a.md"), "latex")
    for name, format in {"a.tex": "latex", "a.txt": "md", "a": "csv", "a.xyz": "csv"}.items():
        assert format_of(Path(name), format) == format


def of(*records, metric="nll"):
    runs = tuple(sample(**record) for record in records)
    return caveats(replace(group_runs(runs)[0], records=runs), metric, None)


def test_runs_that_did_not_converge_or_left_a_system_unsolved_or_are_not_held_out_are_named():
    assert of({"converged": True}, {"converged": False}) == [provenance.UNCONVERGED]
    assert of({"converged": True}, {"converged": None}, {}) == []
    poor, good = {"residual": 0.008, "residual_samples": 0.02}, {"residual": 0.008}
    assert of({"diagnostics": poor}, {"diagnostics": good}) == [provenance.UNSOLVED]
    assert of({"diagnostics": good}, {"diagnostics": poor, "converged": True}) == []
    assert of({"diagnostics": poor, "converged": False}) == [provenance.UNCONVERGED]
    assert of({"held_out": True}, {"held_out": False}) == [provenance.LEAKED]


def test_a_bound_below_that_of_a_constant_prediction_is_degenerate_in_any_units():
    constant = -0.5 * math.log(2 * math.pi * math.e)
    for scale in (0.01, 1.0, 100.0):
        log_likelihoods = {"ll_std": 0.3, "test_ll": 0.3 - math.log(scale)}
        for bound, notes in ((constant + 0.1, []), (constant - 0.1, [provenance.DEGENERATE])):
            metrics = log_likelihoods | {"vlb_per_row": bound - math.log(scale)}
            assert of({"metrics": metrics}, metric="vlb") == of({"metrics": metrics}, metric="vlb_per_row") == notes
            assert of({"metrics": metrics}, metric="test_ll") == []
    assert of({"metrics": {"vlb_per_row": None}}, metric="vlb") == []


def test_chains_that_have_not_mixed_an_objective_that_still_rose_and_noise_that_was_removed_are_named():
    good = {"rhat": 1.01, "ess": 400.0, "divergences": 0.0}
    assert of({"diagnostics": good}, {}) == []
    for poor in ({"rhat": 1.2}, {"ess": 12.0}, {"rhat": None}):
        assert of({"diagnostics": good}, {"diagnostics": good | poor}) == [provenance.UNMIXED]
    assert of({"diagnostics": good | {"divergences": 3.0}}) == [provenance.DIVERGENT]
    outputs = {"rhat_outputs": 1.01, "ess_outputs": 400.0}
    assert of({"diagnostics": good | outputs}) == []
    assert of({"diagnostics": good | outputs | {"rhat": 1.2, "ess": 5.0}}) == [provenance.UNMIXED_WEIGHTS]
    assert of({"diagnostics": {"slope": 0.019}}, {"diagnostics": {"slope": -1.0}}) == []
    assert of({"diagnostics": {"slope": 0.019}}, {"diagnostics": {"slope": 0.021}}) == [provenance.RISING]
    assert of({"diagnostics": {"slope": 1.0, "rhat": 1.01, "ess": 400.0}}) == []
    for name, value in (("noise_at_floor", 1.2e-6), ("noise_ratio", 7.5e-5)):
        assert of({"diagnostics": {name: value}}, {"diagnostics": {"slope": 0.0}}) == [provenance.NOISELESS]
    assert of({"diagnostics": {"slope": 0.0}}, {"diagnostics": None}, {}) == []


def test_cells_of_one_run_and_of_several_share_a_note_in_tables_and_on_pages():
    slow = {"converged": False, "metrics": {"nll": 0.5}}
    one, two, three = ({**slow, "id": k * 16, "dataset": "pima"} for k in "abc")
    records = [sample(**one), sample(**two, method="svi"), sample(**three, method="svi", split=1)]
    assert str(table_of(records)).count(provenance.UNCONVERGED) == 1
    assert [row["notes"] for row in table_of(records).data] == [[provenance.UNCONVERGED], [provenance.UNCONVERGED]]
    (page,) = views.by_cell(entries(group_runs(records), ["nll"]), {})
    notes = [row["views"]["nll"]["notes"] for row in page["rows"]]
    assert (page["footnotes"], notes) == ([provenance.UNCONVERGED], [(1,), (1,)])


def written(format, *names):
    cells = tuple((name, "1.0") for name in names)
    rows = [{"method": name, "value": 1.0} for name in names]
    return FORMATS[format](Sheet(title="head", grids=[Grid("grid", ("method", "value"), cells)], rows=rows))


def test_latex_prints_the_name():
    for name, tex in {
        "a\\b": r"a\textbackslash{}b",
        "a~b": r"a\textasciitilde{}b",
        "a --b": r"a -{}-b",
        "a^b": r"a\textasciicircum{}b",
        "$a$": r"\$a\$",
        "#1": r"\#1",
        "a|b<c>": "a$|$b$<$c$>$",
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


def test_no_cell_of_csv_markdown_or_the_terminal_is_a_command_and_columns_are_aligned():
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
    header, first, second = aligned(("name", "n"), [("a\x1b", "7"), ("abc", "8")])
    assert first.index("7") == second.index("8") == header.index("n", 4)
    assert printable("Nyström ± 0.1 ≈") == "Nyström ± 0.1 ≈"


def test_ls_show_and_table_print_a_name_with_terminal_escapes_as_text(tmp_path, capsys, new_file):
    names = {"dataset": "pi\x1b[31mma", "method": "se\x1bcp", "setting": "a\nb"}
    record = sample("0" * 16, metrics={"nll": 0.5}, seconds={"train": 2.0}, **names)
    new_file(tmp_path / "runs" / record.id / "record.json", json.dumps(record.to_json()))
    card = 'name: mine\ntask: regression\ntitle: "a\\e[31mb"\nsources: [{kind: file, path: a.csv, target: y}]\n'
    new_file(tmp_path / "dataset" / "mine.yaml", card)
    for words in ("ls runs", "show --last", "table", "table --metric nlll", "ls datasets", "data info mine"):
        main([*words.split(), "--config-dir" if "data" in words else "--results", str(tmp_path)])
        captured = capsys.readouterr()
        assert "\x1b" not in captured.out + captured.err and captured.out + captured.err
    (tmp_path / "all.csv").write_text("")
    assert main(["table", "--results", str(tmp_path), "--format", "csv", "--out", str(tmp_path / "all.csv")]) == 0
    assert "se\\x1bcp" in (tmp_path / "all.csv").read_text()
