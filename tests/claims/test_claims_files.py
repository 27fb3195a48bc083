"""Claims that lack runs, claims files that are wrong, and those of a user."""

import csv
import itertools
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median, stdev

import pytest
from truths import A_B, HOLDS, RECORDS, SETS, judge, plan

from gpbench.analysis.cells import group_runs
from gpbench.analysis.writers.terminal import as_text
from gpbench.claims import definition, report, verdicts
from gpbench.claims.selection import select_claims
from gpbench.cli import main
from gpbench.errors import ConfigError
from gpbench.records import collection


def test_what_is_missing_is_not_run_or_leaves_the_claim_undecided(tmp_path):
    clause = {"difference": "nll", **A_B, "below": 0, "least": 3}
    some = [of for of in RECORDS if of.dataset in SETS[:4] or of.method == "a"]
    assert judge(tmp_path, [clause], some).word == HOLDS  # on the four sets that both have
    slow = [replace(of, host={"cores": 1 + (of.method == "b")}) for of in RECORDS]
    verdict = judge(tmp_path, [{"ratio": "seconds", **A_B, "above": 2}], slow)
    assert (verdict.word, verdict.reason) == ("not run", "seconds are of several machines")
    brier = {"value": "brier", "of": {"method": "a"}, "below": 1}
    verdict = judge(tmp_path, [brier])
    assert (verdict.word, verdict.reason) == ("not run", "the runs were recorded without brier")
    verdict = judge(tmp_path, [brier], planned=plan({"full": (5, 5)}), experiments="mine/fig1")
    assert verdict.reason.endswith("without brier; gpbench reproduce mine/fig1 --preset full run.again=true")
    diverged = [replace(of, status="diverged") if of.method == "b" else of for of in RECORDS]
    assert judge(tmp_path, [clause], diverged).word == "not run"


WRONG = [
    ("[]", "claims are a mapping of ids to claims"),
    ("a: {text: x}", "a claim has `clauses`, or a `reason` why it has none; or `elsewhere`"),
    ("a: {text: x, test: tests/test_x.py::test_y}", "a `test` is one of gpbench's, and proves its claims alone"),
    ("a: {clauses: []}", "lacks text"),
    ("a: {text: x, reason: y, printd: none}", "unknown key 'printd'; did you mean printed"),
    ("a: {text: x, reason: y, printed: yes!}", "printed=yes!: must be supported, contradicted, undecided or none"),
    ("a: {text: x, clauses: [{below: 0}]}", "give one of difference, ratio"),
    ("a: {text: x, clauses: [{difference: nll, a: {method: a}, below: 0}]}", "difference needs `b`"),
    ("a: {text: x, clauses: [{difference: nll, a: {method: a}, b: {method: b}}]}", "say where the difference lies"),
    ("a: {text: x, clauses: [{difference: seconds, a: {method: a}, b: {method: b}, below: 0}]}", "by `ratio`"),
    ("a: {text: x, clauses: [{difference: nll, a: {method: a}, b: {method: z}, below: 0}]}", "no run has method=z"),
    ("a: {text: x, clauses: [{difference: nll, a: {metod: a}, b: {method: b}, below: 0}]}", "the key 'metod'"),
    ("a: {text: x, clauses: [{value: nll, of: {method: a}, each: method.none, below: 9}]}", "the key 'method.none'"),
    ("a: {text: x, clauses: [{difference: nl, a: {method: a}, b: {method: b}, below: 0}]}", "the metric 'nl'"),
    ("a: {text: x, clauses: [{value: nll, of: {}, below: 0}]}", "which differ in method (a, b, c): give a value"),
    ("a: {text: x, clauses: [{value: nll, of: {method: a}, between: [3, 1]}]}", "give the lower end first"),
    ("a: {text: x, clauses: [{ratio: nll, a: {method: a}, b: {method: b}, above: 0}]}", "give another end"),
    ("a: {text: x, clauses: [{value: nll, of: {}, below: 3, margin_from: 3}]}", "a, clause 1: margin_from: 3 lea"),
    ("a: {text: x, clauses: [{ratio: nll, a: {}, b: {}, above: 2, margin_from: 0}]}", "margin_from: 0 leaves no"),
    ("a: {text: x, clauses: [{value: nll, of: {method: a}, below: 0, least: 9}]}", "9 of 7 numbers"),
    ("a: {text: x, clauses: [{value: nll, of: {method: a}, below: zero}]}", "below=zero: must be a finite number"),
    ("a: {text: x, experiments: sep/tabel1, clauses: [{value: nll, of: {}, below: 0}]}", "no experiment"),
    ("a: {text: [", "expected"),
]


def test_a_users_claim_is_seven_lines_and_decides_the_exit_code_and_a_wrong_one_is_one_line(tmp_path, capsys, streams):
    (tmp_path / "claims").mkdir()
    collection.write(tmp_path / "records.parquet", [(of, "") for of in RECORDS])
    words = ["verify", "mine", "--config-dir", str(tmp_path), "--results", str(tmp_path / "records.parquet")]
    for content, message in WRONG:
        (tmp_path / "claims" / "mine.yaml").write_text(content)
        assert main(words) == 2, content
        error = capsys.readouterr().err
        assert message in error and len(error.splitlines()) == 1, content
    for side, code in (("below", 0), ("above", 1)):
        claim = f"""\
mine:
  text: My method a beats b by test log-likelihood
  clauses:
    - difference: nll
      a: {{method: a}}
      b: {{method: b}}
      {side}: 0
  control: the two methods exchanged
"""
        (tmp_path / "claims" / "mine.yaml").write_text(claim)
        assert f"\n{'fails' if code else 'holds'} " in streams(*words, code=code).out


def test_a_test_proves_or_refutes_a_claim_and_what_is_elsewhere_is_not_here(tmp_path, monkeypatch):
    (tmp_path / "claims").mkdir()
    monkeypatch.setattr(definition.paths, "conf_dir", lambda: tmp_path)  # tests prove gpbench's own claims alone
    (tmp_path / "claims" / "mine.yaml").write_text("""\
a: {text: x, test: tests/test_x.py::test_y}
b: {text: x, test: [tests/test_x.py::test_y, "tests/test_x.py::test_z[1]"], shows: refuted}
c: {text: x, elsewhere: a Quadro M5000}
d: {text: x, elsewhere: 12 cores, clauses: [{value: nll, of: {method: a}, below: 0}]}
""")
    made = verdicts.judge(definition.read("mine", [tmp_path]), [], lambda id, preset: ())
    assert [each.word for each in made] == ["proved", "refuted", "not here", "not here"]
    reasons = ["tests/test_x.py::test_y", "tests/test_x.py::test_y, tests/test_x.py::test_z[1]", "a Quadro M5000"]
    assert [each.reason for each in made] == [*reasons, "12 cores"]
    text = as_text(report.sheet(made, by_grade=True), 60)  # tests by their number and files, no name broken
    assert all(words in text for words in ("by 1 test", "by 2 tests", "pytest tests/test_x.py"))
    assert "::" not in text and text.index("\nproved: 1 claim") < text.index("\nrefuted: 1 claim")


def test_every_claim_of_the_papers_reads_and_its_tests_are_run_by_make_test():
    root = Path(__file__).parents[2]
    slow = {*(root / "tests" / "slow.txt").read_text().split()}
    for name in definition.files():
        claims = definition.read(name)
        assert len({claim.id for claim in claims}) == len(claims) and all(claim.location for claim in claims)
        for claim in claims:
            words = [clause.control for clause in claim.clauses if isinstance(clause.control, str)]
            assert all(text.startswith("none") for text in words), f"{claim.name}: a control that is not run"
            assert claim.clauses or claim.control or claim.elsewhere or claim.reason, f"{claim.name}: no control"
            file = ""
            tests = " ".join([*claim.tests, claim.reason, claim.note])
            for path, test in re.findall(r"(tests/\S+\.py)?::(\w+)", tests):
                file = path or file
                assert f"def {test}(" in (root / file).read_text(), claim.name
            for test in claim.tests:
                assert test not in slow, f"{claim.name}: make test leaves out {test}"


def test_every_bound_of_ours_is_varied_and_the_list_has_every_sentence_and_claim_with_readmes_counts(monkeypatch):
    root = Path(__file__).parents[2]
    for file in definition.files().values():
        lines = file.read_text(encoding="utf-8").splitlines()
        for line, following in itertools.pairwise(lines):
            if re.match(r" +(above|below|between|within): (?!0 ).*\bours", line):
                assert "margin_from" in following, f"{file.name}: {line}"
    with (root / "docs" / "results" / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    graded = {}
    for row in rows:
        paper, first = row["claim"].split("/")
        parts = [part.split(" ", 1) for part in row["now"].split("; ")[1:]]
        graded |= {f"{paper}/{id}": word for id, word in [(first, row["now"].split("; ")[0]), *parts]}
        assert row["why"] or {row["before"], row["first reading"], row["second reading"]} == {row["now"]}
    claims = {claim.name: claim for paper in definition.files() for claim in definition.read(paper)}
    assert len(rows) == 142 and graded.keys() == claims.keys()
    for name in (name for name, word in graded.items() if word in ("holds", "mostly holds", "fails")):
        assert not any(isinstance(clause.control, str) for clause in claims[name].clauses), name
    monkeypatch.syspath_prepend(str(root / "scripts"))
    import grades

    assert grades.page(rows) == grades.LIST.with_suffix(".md").read_text(encoding="utf-8")
    table = re.search(r"^\| claims of (?:.*\n)(?:\|.*\n)+", (root / "README.md").read_text(), re.MULTILINE)[0]
    header, *_, total = table.splitlines()
    words, counts = ([cell.strip() for cell in line.strip("|").split("|")][1:] for line in (header, total))
    assert dict(zip(words, counts)) == {word: str([*graded.values()].count(word) or "") for word in words}


def test_errors_over_rows_are_those_over_splits_where_a_claim_says_so_and_not_for_the_rivals_of_svdgp():
    """In the median of the cells of three splits and more whose records have an error over rows."""
    ratios = {}
    for paper, names in (("sep", ["error"]), ("svdgp", ["nmse", "vlb_per_row"])):
        records = collection.open_store(Path(__file__).parents[2] / "results" / paper / "records.parquet").all()
        for runs, name in itertools.product(group_runs(records), names):
            first = {record.split: record for record in runs.records if record.metrics.get(name) is not None}
            values = [record.metrics[name] for record in first.values()]
            squares = [(record.row_stderr or {}).get(name, math.nan) ** 2 for record in first.values()]
            if name == "error":
                squares = [p * (1 - p) / record.test_rows for p, record in zip(values, first.values())]
            if len(values) > 2 and fmean(squares) > 0:
                ratios.setdefault((paper, runs.method), []).append(stdev(values) / math.sqrt(fmean(squares)))
    middles = {key: median(found) for key, found in ratios.items()}
    clauses = [clause for paper in definition.files() for one in definition.read(paper) for clause in one.clauses]
    said = [(m, k.split_ratio) for k in clauses if k.split_ratio for side in k.sides.values() for m in side["method"]]
    assert {name for name, _ in said} == {"sep_minibatch", "svi_minibatch", "logistic"}
    assert all(middles["sep", name.removesuffix("_minibatch")] < ratio for name, ratio in said)
    assert min(middles["svdgp", rival] for rival in ("svi", "ivsgpr", "vsgpr", "gpr")) > 2


def test_without_a_terminal_a_line_has_a_hundred_columns(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    verdict = judge(tmp_path, [{"difference": "nll", **A_B, "below": 0, "name": "a says " + 40 * "more " + "than b"}])
    assert 90 < max(map(len, as_text(report.sheet([verdict])).splitlines())) <= 100
    with pytest.raises(ConfigError, match=r"did you mean sep/table1 or sep/starts\?$"):
        select_claims("sep/table9")
