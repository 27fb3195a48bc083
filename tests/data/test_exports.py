"""Tables as spreadsheets, R and people export them: each is read right, or refused in one line that says what to do."""

import numpy as np
import pytest

from gpbench.api.words import with_cards
from gpbench.data import cards, sources, splits
from gpbench.data.checks import check
from gpbench.errors import GpbenchError

N = 24


def table(header: str, cells) -> str:
    return f"{header}\n" + "".join(f"{cells(k)},{k % 5}.5\n" for k in range(N))


A = [k * 7 % 11 for k in range(N)]
X = ("a",)
CODED, ONEHOT = {"codes": {"b": {"T": 1, "F": 0}}}, {"encode": {"b": "onehot"}}
TIMES = {"order": "b", "splits": {"set": "temporal", "folds": 2}}
PARTS = {"split": "b", "splits": {"set": "fixed"}}
# the header and a row's cells before the target; keys of the source and of the card; the inputs, or the refusal
CASES = {
    "row names of write.csv": ('"","a","y"', lambda k: f'"{k + 1}",{A[k]}', {}, X),
    "row names of write.table": ("a,y", lambda k: f"{k + 1},{A[k]}", {}, "as R writes names of rows: write the table"),
    "thousands": ("a,y", lambda k: f'"1,{A[k]:03}"', {"thousands": ","}, X),
    "unstated thousands": ("a,y", lambda k: f'"1,{A[k]:03}"', {}, "the sign between thousands, .* or the decimal sign"),
    "days first": ("b,a,y", lambda k: f"{k + 1:02}/03/2021,{A[k]}", {}, "column 'b', row 1: '01/03/2021' is a date"),
    "percent": ("a,y", lambda k: f"{A[k]}%", {}, "'0%' is not a number: take out what is no digit"),
    "below a limit": ("a,y", lambda k: "<0.01" if k == 3 else A[k], {}, "row 4: '<0.01' is not a number"),
    "true in capitals": ("a,b,y", lambda k: f"{A[k]},{['TRUE', 'true', 'False'][k % 3]}", {}, ("a", "b")),
    "T and F": ("a,b,y", lambda k: f"{A[k]},{'TF'[k % 2]}", CODED, ("a", "b")),
    "spaces in names": (" a ,b b, y ", lambda k: f"{A[k]},{k % 3}", {}, ("a", "b b")),
    "names apart in case": ("a,A,y", lambda k: f"{A[k]},{k % 3}", {}, ("a", "A")),
    "letters of names": ("größe,温度,y", lambda k: f"{A[k]},{k % 3}", {}, ("größe", "温度")),
    "doubled by pandas": ("a,a.1,y", lambda k: f"{A[k]},{A[k]}", {}, ("a", "a.1")),
    "long text": ("b,a,y", lambda k: f"{'word ' * 2000}{k},{A[k]}", {}, "word word .*' is not a number; name"),
    "lines in text": ("b,a,y", lambda k: f'"{k}\n""more""\x0c\u2028, text",{A[k]}', {"drop": ["b"]}, X),
    "beyond floats": ("a,y", lambda k: "1e400" if k == 5 else A[k], {}, r"'a' has 1 .* cells \(row 6\); mend them$"),
    "squares beyond floats": ("a,y", lambda k: f"{A[k]}e200", {}, X),
    "an empty column": ("b,a,y", lambda k: f",{A[k]}", {"impute": "mean"}, "impute: 'b' is missing in all"),
    "a level for each row": ("a,b,y", lambda k: f"{A[k]},c{k}", ONEHOT, ("a", *sorted(f"b=c{k}" for k in range(N)))),
    "ties in time": ("a,b,y", lambda k: f"{A[k]},{k // 9}", TIMES, X),
    "parts in capitals": ("a,b,y", lambda k: f"{A[k]},{['Train', 'TEST '][k % 2]}", PARTS, X),
    "a misspelt part": (
        "a,b,y",
        lambda k: f"{A[k]},{['train', 'tset'][k % 2]}",
        PARTS,
        "'b' of `split`, row 2: 'tset'",
    ),
    "a group that is the target": ("a,y", lambda k: A[k], {"group": "y"}, "column 'y' is the target and `group`"),
    "an order that is the target": ("a,y", lambda k: A[k], {"order": "y"}, "column 'y' is the target and `order`"),
    "a target that is left out": ("a,y", lambda k: A[k], {"drop": ["y"]}, "column 'y' is the target and in `drop`"),
    "kept and left out": ("a,y", lambda k: A[k], {"keep": ["a"], "drop": ["a"]}, "'a' is in `keep` and in `drop`"),
    "a line beyond the last": ("a,y", lambda k: A[k], {"skip": [2, 999]}, "`skip` lists line 999, and the file has"),
    "an unknown column": ("a,b,y", lambda k: f"{A[k]},1", {"drop": ["B"]}, "no column 'B'; the table has a, b, y"),
    "a title": ("My data,\na,y", lambda k: A[k], {}, "has no 'y', and line 2 has: leave out the lines .*`skip: 1`"),
    "a comment": ("# a rig, 4\na,y", lambda k: A[k], {}, r"begins with '#', as comments do: state `comment: \"#\"`"),
    "a comment, a name less": ("# rig, 4\na,b,y", lambda k: f"{A[k]},1", {}, "begins with '#', as comments do: state"),
    "a comment that is left out": ("# rig, 4\na,y", lambda k: A[k], {"comment": "#"}, X),
    "a title that is skipped": ("My data,\na,y", lambda k: A[k], {"skip": 1}, X),
    "units": ("a,y\nkg,m", lambda k: A[k], {}, r"line 2 has no numbers \(kg, m\): .*by `skip: \[2\]`"),
    "units that are skipped": ("a,y\nkg,m", lambda k: A[k], {"skip": [2]}, X),
    "lower nan": ("a,y", lambda k: "nan" if k == 3 else A[k], {}, r"\(row 4\); mend them, or fill them by `impute`"),
    "labels of rows": ("b,a,y", lambda k: f"{k:08x}-aa,{A[k]}", {}, "'00000000-aa' is not a number; name the column"),
    "tabs": ("a\tb\ty", lambda k: f"{A[k]}\t1", {}, r"row 1 has 2 cells, not 1 \(line 2: .*\); is the delimiter right"),
    "a name like a level": ("b=c1,b,y", lambda k: f"{A[k]},c{k % 2}", ONEHOT, "two inputs have the same name"),
    "a name like an indicator": (
        "a,a missing,y",
        lambda k: f"{A[k] or ''},1",
        {"impute": "mean"},
        "there is an input 'a missing' already",
    ),
    "names of numbers": ("1,2,y", lambda k: f"{A[k]},{k % 3}", {}, ("1", "2")),
    "a name of a number": ("2,1,y", lambda k: f"{A[k]},{k % 3}", {"drop": [1]}, ("2",)),
    "indices twice": (",Unnamed: 0,a,y", lambda k: f"{k},{k},{A[k]}", {}, X),
    "counts with points": ("a,b,y", lambda k: f"{A[k]},1", {"task": "count"}, "row 1: 0.5 is no count"),
    "dates as targets": ("a,z,y", lambda k: f"{A[k]},2021-03-{k + 1:02}", {"target": "z"}, "'2021-03-01' is a date or"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_exported_table_is_read_right_or_refused_in_a_line(name, tmp_path):
    header, cells, keys, expected = CASES[name]
    (tmp_path / "own.csv").write_text(table(header, cells), encoding="utf-8")
    of_card = {key: value for key, value in keys.items() if key in ("task", "impute", "splits")}
    source = {"kind": "file", "path": "own.csv", "target": "y"} | {k: v for k, v in keys.items() if k not in of_card}
    card = cards.checked({"name": "own", "task": "regression", "sources": [source]} | of_card)
    if isinstance(expected, str):
        with pytest.raises(GpbenchError, match=expected) as caught:
            splits.indices(card, dataset := sources.load(card, config_dirs=[tmp_path]), 0)
            check(card, dataset)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
        return
    dataset = sources.load(card, config_dirs=[tmp_path])
    assert dataset.columns == expected and len(dataset.y) == N and str(check(card, dataset))
    if expected == X and not keys.get("thousands"):
        scale = 1e200 if "squares" in name else 1.0
        np.testing.assert_allclose(dataset.X[:, 0], np.array(A) * scale)


@pytest.mark.parametrize("name", ["percent", "a title", "row names of write.table", "unstated thousands"])
def test_a_first_look_says_why_there_are_no_inputs_and_writes_no_card(name, tmp_path):
    header, cells, _, expected = CASES[name]
    (tmp_path / "own.csv").write_text(table(header, cells), encoding="utf-8")
    with pytest.raises(GpbenchError, match=f"own.csv: .*{expected}"):
        with_cards([f"dataset={tmp_path}/own.csv", "target=y"], [])
    assert not (tmp_path / "dataset").exists()
