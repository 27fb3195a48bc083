"""The findings of `gpbench data check`, on data that have them, on data that have not, and on tables/cases."""

import json
from pathlib import Path

import numpy as np
import pytest

import gpbench
from gpbench.cli import main
from gpbench.data import cards, checks, load, new_rows, splits, tables
from gpbench.data.checks import check
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset, Raw
from gpbench.errors import DataError

RNG = np.random.default_rng(3)
ENC = {"target": "y", "encode": {"c": "onehot"}}
CARD = {"name": "mine", "task": "regression", "sources": [{"kind": "file", "path": "a", "target": "y"}]}
N = 60
A, B, NOISE = RNG.normal(size=(3, N))
TARGET = A * B + NOISE


def report(columns: dict, target=TARGET, task="regression", **card):
    card = CARD | {"task": task} | card
    raw = Raw(np.array([*columns.values()]).T, np.asarray(target), tuple(columns), outputs=("y",))
    return check(card, from_raw(card, raw))


def said(*args, **card) -> str:
    return "\n".join(f"{finding.text}; {finding.mend}" for finding in report(*args, **card).findings)


def test_large_data_are_checked_by_some_rows_and_splits(monkeypatch):
    many = report({"a": A, "b": B}, splits={"sets": {"random90": 10**9}})
    assert "1000000000 (the first 100 are checked)" in many.splits
    monkeypatch.setattr(checks, "_CELLS", 60)
    monkeypatch.setattr(checks, "_ROWS", 2 * N)
    large = report({"a": A, "b": np.arange(N), "c": A * 2}, splits={"sets": {"random90": 3}})
    assert large.rows == N and "random90: 3 (the first 2 are checked)" in large.splits
    texts = [finding.text for finding in large.findings]
    assert texts[0] == "the findings are those of 20 rows, every 3th" and "'b' orders the rows" in texts[2]


def test_marks_of_missing_cells_are_noted_and_the_check_from_python_is_that_of_the_command(capsys):
    raw = tables.table([b"c,y\n" + b"".join(b"%s,%d\n" % (c, k) for k, c in enumerate([b"A", b"NA", b"B"] * 4))], ENC)
    card = CARD | {"sources": [{"kind": "file", "path": "a", **ENC}]}
    [finding] = [f for f in check(card, from_raw(card, raw)).findings if "level" in f.text]
    assert finding == ("'c' has the level 'NA'", 'missing: "NA" if it marks missing cells')
    pressure = np.where(np.arange(N) % 20 == 3, 0, 70 + 10 * A)
    assert "'c' is 0 in 3 rows, far from all others: is it missing there?" in said({"a": A, "b": B, "c": pressure})
    assert "yeo_johnson and log;" in said({"a": A, "b": B}, np.exp(TARGET))
    assert "'y' is skewed: skewness -" in said({"a": A, "b": B}, -np.exp(TARGET))
    report = gpbench.load("coal").check()
    assert main(["data", "check", "coal"]) == 0 and capsys.readouterr().out.split() == str(report).split()
    assert report.rows == 112 and [finding.mend for finding in report.findings] == [""]


def test_ordinary_data_have_nothing_doubtful_and_targets_of_few_values_or_in_order_are_noted():
    assert report({"a": A, "b": B}).findings == []
    labels, one = np.where(NOISE > 0, "x", "y"), {"sets": {"random90": 1}}
    assert report({"a": A, "b": B}, labels, "binary", splits=one).findings == []
    assert "'y' has 3 different values; task: multiclass if they are classes" in said({"a": A}, np.arange(N) % 3)
    assert "'y' has one value" in said({"a": A}, np.ones(N))
    assert "the rows are in the order of 'y'" in said({"a": A}, np.sort(TARGET))


@pytest.mark.parametrize(
    "column, text",
    [
        (np.full(N, 3.0), "constant: c; drop: [c]"),
        (32 + 1.8 * A, "'c' is 'a' again, or linear in it; drop: [c]"),
        (np.sort(B), "'c' orders the rows: .*; drop: [c] if it numbers them; order: c, splits: {set: temporal}"),
        (RNG.permutation(N) + 5000, "'c' has a different whole number in each row, as labels do; drop: [c]"),
        (np.where(np.arange(N) % 9 == 4, -999, B), "'c' is -999 in 7 rows, far from all others; missing: -999"),
        (TARGET + 1e-3 * B, "'c' alone tells 'y': is it known before 'y' is?; drop: [c]"),
    ],
)
def test_doubtful_inputs_are_named_with_their_correction(column, text):
    assert all(part in said({"a": A, "b": B, "c": column}) for part in text.split(".*"))


def test_an_input_that_separates_classes_or_is_made_of_a_column_is_named():
    labels = np.where(NOISE > 0, "x", "y")
    assert "'c' alone tells 'y'" in said({"a": A, "c": NOISE**3}, labels, "binary")
    swapped = NOISE.copy()
    swapped[[np.argmin(NOISE), np.argmax(NOISE)]] = NOISE.max(), NOISE.min()
    assert "alone" not in said({"a": A, "c": swapped}, labels, "binary")
    three = np.digitize(A, [-0.5, 0.5]).astype(str)
    assert "'a' alone tells 'y'" in said({"a": A, "b": B}, three, "multiclass")
    card = CARD | {"sources": [{"kind": "file", "path": "a", **ENC}]}
    dataset = from_raw(card, Raw(np.column_stack([A, 1 - A, B]), TARGET, columns=("c=L", "c=S", "b")))
    finding = ("'c=S' is 'c=L' again, or linear in it", "drop: [c], and take c out of `encode`")
    assert finding in check(card, dataset).findings


def test_repeated_rows_of_each_split_are_counted_as_by_comparing_them_one_by_one():
    X, y = RNG.integers(0, 3, (N, 2)).astype(float), RNG.integers(0, 2, N).astype(float)
    card, dataset = CARD, from_raw(CARD, Raw(X, y))
    rows = [(*x, target) for x, target in zip(X.tolist(), y.tolist())]
    counts = []
    for k in range(20):
        train, test = splits.indices(card, dataset, k)
        counts.append(sum(any(rows[i] == rows[j] for j in train) for i in test))
    text = f"{N - len(set(rows))} of {N} rows repeat another one; {min(counts)} to {max(counts)} of the 6 test rows"
    findings = [finding.text for finding in check(card, dataset).findings]
    assert any(finding.startswith(text) for finding in findings)
    assert f"the inputs have {len(set(map(tuple, X.tolist())))} different rows" in " ".join(findings)


def test_groups_on_both_sides_and_classes_that_lack_are_counted():
    card = CARD
    dataset = from_raw(card, Raw(np.column_stack([A, B]), TARGET, groups=np.arange(N) % 4))
    [finding] = check(card, dataset).findings
    assert finding.text == "groups are on both sides in 20 of 20 splits" and "groups90" in finding.mend
    grouped = card | {"splits": {"sets": {"groups90": 3}}}
    assert check(grouped, dataset).findings == [] and check(grouped, dataset).groups == 4
    assert 'differ in case only: Yes, yes; labels: {"Yes": -1, "yes": -1, ...} joins' in said(
        {"a": A, "b": B}, np.array(["Yes", "yes", "no"])[np.arange(N) % 3], "multiclass"
    )
    labels = np.where(np.arange(N) < 2, "rare", np.where(NOISE > 0, "x", "y"))
    text = said({"a": A, "b": B}, labels, "multiclass", splits={"sets": {"random90": 20}})
    assert "class 'rare' has 2 of 60 rows" in text and text.count("splits: {set: stratified90}") <= 2
    assert "stratified90" not in said({"a": A, "b": B}, labels, "multiclass", splits={"sets": {"stratified90": 20}})


def test_rows_that_lack_an_output_a_time_or_a_group_are_counted_and_findings_are_those_of_the_others():
    y = np.column_stack([2 * A, np.abs(TARGET), TARGET])
    y[:20, 0] = y[50:, 1] = y[55:] = np.nan
    y[30, 1] = 1e200
    card = CARD | {"incomplete": "drop"}
    found = check(card, from_raw(card, Raw(np.column_stack([A, B]), y, ("a", "b"), outputs=("u", "v", "w"))))
    texts = [finding.text for finding in found.findings]
    assert texts[:2] == [
        "rows that lack an output count for the others alone (u 20, v 5)",
        "rows with missing cells are left out (u 5, v 5, w 5)",
    ]
    assert "'a' alone tells 'u': is it known before 'u' is?" in texts and found.rows == 55
    large = "'v' has 1e+200 in row 31, whose square float64 cannot hold"
    assert (large, "mend it in the file, or mark it as missing") in found.findings
    assert (found.targets[0].name, found.targets[0].low) == ("u", (2 * A[20:55]).min())
    lines = "".join(f"{k % 3 or ''},{k % 4 or ''},{a},{b}\n" for k, (a, b) in enumerate(zip(A, TARGET, strict=True)))
    source = {"kind": "file", "target": "y", "order": "t", "group": "g"}
    raw = tables.table([f"t,g,a,y\n{lines}".encode()], source)
    card = CARD | {"incomplete": "drop", "sources": [source]}
    [finding, *_] = check(card, from_raw(card, raw)).findings
    assert finding.text == "rows with missing cells are left out (column 'g' of `group` 15, column 't' of `order` 20)"


CASES = Path(__file__).parent / "cases"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
REFUSED = {
    "c02": "line 2: byte 0xe4 is not UTF-8; .*`encoding: latin-1`",
    "c03": "column 'CO', row 1: '2,0' is not a number; .*`decimal: \",\"`",
    "c03q": "column 'CO', row 1: '2,0' is not a number; .*`decimal: \",\"`",
    "c07b": "column 'valve', row 1: 'on' is not among its codes, False, True; quote yes, no, on and off in the card",
    "c07c": "label 'no' is not in the card's labels .*quote yes, no, on and off",
    "c08": "column 'bean', row 1: 'arabica' is not a number; .*`codes`",
}
"""Cards that cannot be used as they are."""


def read(name: str, folder: Path = CASES, **options) -> Dataset:
    """The data set of a card, with further options of its source."""
    card = cards.read(name, [folder])
    labels = {"labels": options.pop("labels")} if "labels" in options else {}
    return load({**card, **labels, "sources": [{**card["sources"][0], **options}]}, config_dirs=[folder])


@pytest.mark.parametrize("name", sorted(path.stem for path in (CASES / "dataset").glob("*.yaml")))
def test_check_describes_every_case_or_refuses_it_in_one_line(name, capsys):
    code = main(["data", "check", name, "--config-dir", str(CASES), "--json"])
    printed = capsys.readouterr()
    if name in REFUSED:
        assert code == DataError.exit_code and printed.err.count("\n") == 1 and not printed.out
        with pytest.raises(DataError, match=REFUSED[name]):
            read(name)
        return
    [report] = json.loads(printed.out)
    dataset = read(name)
    assert code == 0 and report["rows"] == len(dataset.y)
    assert [column["name"] for column in report["inputs"]] == [*dataset.columns]


def test_new_rows_are_read_by_name_whatever_the_case_and_letters_of_other_encodings_are_kept():
    card, coffee = cards.read("coffee", [EXAMPLES]), read("coffee", EXAMPLES)
    assert coffee.columns == ("minutes", "room", "start", "cup")
    assert new_rows.new_inputs(CASES / "p13.csv", card, coffee).tolist() == [[5, 20, 80, 1]]
    with pytest.raises(DataError, match="no column 'cup'; the table has room, minutes, start, mug"):
        new_rows.new_inputs(CASES / "p14.csv", card, coffee)
    with pytest.raises(DataError, match="column 'cup', row 2: 'glass' is not among its codes, paper, china"):
        new_rows.new_inputs(CASES / "p1.csv", card, coffee)
    assert read("c02", encoding="latin-1").classes == ("schun", "schän", "schön")
    utf16 = read("c02d")
    assert utf16.columns == ("speed", "depth") and utf16.X[0].tolist() == [-0.802, 7.129]


@pytest.mark.parametrize(
    "name, said",
    [
        ("c18", "the test rows have one class only in 17 of 20 splits: they have no AUC"),
        ("c01b", "column 1 has no name: no input"),
    ],
)
def test_check_says_what_is_doubtful_in_a_line_of_its_own(name, said, capsys):
    main(["data", "check", name, "--config-dir", str(CASES)])
    lines = capsys.readouterr().out.splitlines()
    (note,) = [line for line in lines if line.split("; mend: ")[0] == f"  note     {said}"]
    assert "one class" not in said or "splits: {set: stratified90}" in note
