"""The findings of `gpbench data check`, each on data that have it and on data that have not."""

import numpy as np
import pytest

import gpbench
from gpbench.cli import main
from gpbench.data import checks, splits, tables
from gpbench.data.checks import check
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Raw

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


def test_marks_of_missing_cells_are_noted_among_levels_and_zeros():
    raw = tables.table([b"c,y\n" + b"".join(b"%s,%d\n" % (c, k) for k, c in enumerate([b"A", b"NA", b"B"] * 4))], ENC)
    card = CARD | {"sources": [{"kind": "file", "path": "a", **ENC}]}
    [finding] = [f for f in check(card, from_raw(card, raw)).findings if "level" in f.text]
    assert finding == ("'c' has the level 'NA'", 'missing: "NA" if it marks missing cells')
    pressure = np.where(np.arange(N) % 20 == 3, 0, 70 + 10 * A)
    assert "'c' is 0 in 3 rows, far from all others: is it missing there?" in said({"a": A, "b": B, "c": pressure})


def test_the_check_from_python_is_that_of_the_command_and_no_shipped_card_is_to_be_edited(capsys):
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
        (np.exp(3 * TARGET), "'c' alone tells 'y': is it known before 'y' is?; drop: [c]"),
    ],
)
def test_doubtful_inputs_are_named_with_their_correction(column, text):
    assert all(part in said({"a": A, "b": B, "c": column}) for part in text.split(".*"))


def test_an_input_that_separates_classes_is_named_and_one_that_does_not_quite_is_not():
    labels = np.where(NOISE > 0, "x", "y")
    assert "'c' alone tells 'y'" in said({"a": A, "c": NOISE**3}, labels, "binary")
    swapped = NOISE.copy()
    swapped[[np.argmin(NOISE), np.argmax(NOISE)]] = NOISE.max(), NOISE.min()
    assert "alone" not in said({"a": A, "c": swapped}, labels, "binary")
    three = np.digitize(A, [-0.5, 0.5]).astype(str)
    assert "'a' alone tells 'y'" in said({"a": A, "b": B}, three, "multiclass")


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


def test_an_input_that_is_made_of_a_column_is_left_out_with_its_column():
    card = CARD | {"sources": [{"kind": "file", "path": "a", **ENC}]}
    dataset = from_raw(card, Raw(np.column_stack([A, 1 - A, B]), TARGET, columns=("c=L", "c=S", "b")))
    finding = ("'c=S' is 'c=L' again, or linear in it", "drop: [c], and take c out of `encode`")
    assert finding in check(card, dataset).findings


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
    assert (
        "'v' has 1e+200 in row 31, whose square float64 cannot hold",
        "mend it in the file, or mark it as missing",
    ) in found.findings
    assert (found.targets[0].name, found.targets[0].low) == ("u", (2 * A[20:55]).min())
    lines = "".join(f"{k % 3 or ''},{k % 4 or ''},{a},{b}\n" for k, (a, b) in enumerate(zip(A, TARGET, strict=True)))
    source = {"kind": "file", "target": "y", "order": "t", "group": "g"}
    raw = tables.table([f"t,g,a,y\n{lines}".encode()], source)
    card = CARD | {"incomplete": "drop", "sources": [source]}
    [finding, *_] = check(card, from_raw(card, raw)).findings
    assert finding.text == "rows with missing cells are left out (column 'g' of `group` 15, column 't' of `order` 20)"
