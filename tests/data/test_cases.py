"""Tables of tests/data/cases as people have them: each has the right value, or the right refusal in one line."""

import json
from pathlib import Path

import pytest

from gpbench.cli import main
from gpbench.data import cards, load, new_rows
from gpbench.data.dataset import Dataset
from gpbench.errors import DataError

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


def test_new_rows_are_read_by_name_whatever_the_case_or_refused():
    card, coffee = cards.read("coffee", [EXAMPLES]), read("coffee", EXAMPLES)
    assert coffee.columns == ("minutes", "room", "start", "cup")
    assert new_rows.new_inputs(CASES / "p13.csv", card, coffee).tolist() == [[5, 20, 80, 1]]
    with pytest.raises(DataError, match="no column 'cup'; the table has room, minutes, start, mug"):
        new_rows.new_inputs(CASES / "p14.csv", card, coffee)
    with pytest.raises(DataError, match="column 'cup', row 2: 'glass' is not among its codes, paper, china"):
        new_rows.new_inputs(CASES / "p1.csv", card, coffee)


def test_letters_of_other_encodings_are_kept():
    assert read("c02", encoding="latin-1").classes == ("schun", "schän", "schön")
    utf16 = read("c02d")
    assert utf16.columns == ("speed", "depth") and utf16.X[0].tolist() == [-0.802, 7.129]


@pytest.mark.parametrize(
    "name, said",
    [
        ("c17", "the inputs have 6 different rows: more inducing points than that add nothing"),
        ("c18", "class '1' has 2 of 120 rows"),
        ("c18", "the test rows have one class only in 17 of 20 splits: they have no AUC"),
        ("c23", "160 of 240 rows repeat another one; 21 to 24 of the 24 test rows of a split are training rows"),
        ("c01b", "column 1 has no name: no input"),
        ("c01b", "the rows are in the order of 'drag': a column that numbers them would tell it"),
        ("c03d", "rows with missing cells are left out (CO 5, T 4)"),
    ],
)
def test_check_says_what_is_doubtful_in_a_line_of_its_own(name, said, capsys):
    main(["data", "check", name, "--config-dir", str(CASES)])
    lines = capsys.readouterr().out.splitlines()
    (note,) = [line for line in lines if line.split("; mend: ")[0] == f"  note     {said}"]
    assert "one class" not in said or "splits: {set: stratified90}" in note
