"""ARFF by the description of the format, in linear time; molecules: packed fingerprints, and those that RDKit makes."""

import gzip
import re
import resource
import subprocess
import sys

import numpy as np
import pytest
from small_tables import npz

from gpbench.api.words import with_cards
from gpbench.data import arff, cards, cells, checks, load, prepare, sources, splits
from gpbench.data.conversion import from_raw
from gpbench.data.readers import fingerprints_npz, smiles_csv
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
    "one,2,red,a,?,?": "could not convert string to float: 'one'",
    "1,2,'red,a,?,?": "a quotation mark is not closed, or text follows a closing one",
    "1,2,red,a,2021-03-04,?": "'2021-03-04' does not match format",
    "{6 1}": "index 6 is out of order, or beyond the last, 5: sort the entries, or declare the attribute",
    "{1 1, 1 2}": "index 1 is out of order, or beyond the last, 5",
    "{1 1": "not entries between braces, or a quotation mark is not closed",
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


def test_no_group_is_possessive_where_python_3_11_0_to_3_11_4_err():
    assert not re.search(r"\)[*+?]\+", arff._VALUE.pattern + arff._NAME.pattern + arff._BEGINNING.pattern)


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
    most = lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    done = subprocess.run([sys.executable, "-c", READ], input=LONG[name].encode(), capture_output=True, preexec_fn=most)
    assert done.returncode == 0 and done.stderr == b"", done.stderr[-300:]


RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (5, 512)).astype(np.uint8)
PCE = np.array([3.5, -6.9, 0, 1, 2], np.float32)
NPZ = {"bits": 512, "target": "pce"}
CSV = {"bits": 512, "radius": 2, "smiles": "smiles", "target": "PCE"}
FULL = {**CSV, "smiles": ["SMILES_str", "tmp_smiles_str"], "target": "pce"}


def packed(**arrays) -> bytes:
    return npz(**{"bits": np.packbits(BITS, axis=1), "pce": PCE} | arrays)


def of_full(*molecules: tuple[str, str]) -> bytes:
    """A table with the columns that others report of the full one, padded as they report."""
    lines = ['"id", "SMILES_str"      , "stoich_str", "pce", "tmp_smiles_str"']
    lines += [f'"{i}", "{one}"   , "C2H6O", "{i}.25", "{other}"' for i, (one, other) in enumerate(molecules)]
    return "\n".join(lines).encode()


def test_packed_bits_become_inputs_of_0_and_1():
    raw = fingerprints_npz([packed()], NPZ)
    np.testing.assert_array_equal(raw.X, BITS)
    np.testing.assert_array_equal(raw.target, PCE)
    assert from_raw(cards.read("hcep"), raw).X.shape == (5, 512)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(bits=np.zeros((5, 128), np.uint8)), "fingerprints of 1024 bits, not 512"),
        (packed(bits=np.zeros((4, 64), np.uint8)), "4 fingerprints, but 5 targets"),
        (packed(bits=BITS.astype(float)), r"of type float64 and shape \(5, 512\): must be rows of bytes"),
        (npz(bits=np.packbits(BITS, axis=1)), "no array 'pce'; the archive has 'bits'"),
        (packed()[:300], "not the expected npz file"),
    ],
)
def test_fingerprints_of_another_form_are_one_clear_line(content, message, one_line):
    with one_line(DataError, match=message):
        fingerprints_npz([content], NPZ)


@pytest.mark.parametrize("name", ["hcep", "hcep_full"])
def test_without_rdkit_the_error_says_how_to_install_it_and_nothing_is_downloaded(name, monkeypatch, one_line):
    def download(*_):
        raise AssertionError("downloaded")

    monkeypatch.setattr(sources, "find_spec", lambda package: None)
    monkeypatch.setattr(sources.files, "from_address", download)
    line = r"needs rdkit, which is not installed: pip install -c constraints.txt -e '.\[chem\]'"
    with one_line(DataError, match=line):
        load(cards.read(name))


def test_the_mirror_needs_no_rdkit_and_25000_rows_train(mirror, monkeypatch):
    monkeypatch.setattr(sources, "find_spec", lambda package: None)
    card = cards.read("hcep")
    dataset = load(card, mirror=mirror)  # compares the checksum with the card's
    assert set(np.unique(dataset.X)) == {0, 1} and dataset.y.min() == np.float32(-6.9454)
    assert (np.ptp(dataset.X, axis=0) == 0).sum() == 4
    train, test = splits.indices(card, dataset, 0)
    assert (len(train), len(test)) == splits.sizes(card) == (25_000, 4_978)
    assert prepare(dataset, train, test).held_out and splits.sizes(cards.read("hcep_full")) == (50_000, 10_000)


@pytest.fixture
def rdkit():
    return pytest.importorskip("rdkit", reason="RDKit is not installed: the extra `chem`")


def test_rdkit_makes_the_arrays_of_the_mirror_from_all_smiles(mirror, rdkit):
    card = cards.read("hcep")
    source = next(source for source in card["sources"] if source["kind"] == "official")
    if not (path := mirror / "hcep_30k_smiles_pce.csv.gz").is_file():
        pytest.skip(f"the mirror has no {path.name}")
    dataset = from_raw(card, smiles_csv([path.read_bytes()], source))
    assert dataset.checksum == card["checksum"] and len(dataset.y) == 29_978


def test_a_fingerprint_is_that_of_the_molecule_whatever_its_spelling_or_its_column(rdkit):
    raw = smiles_csv([gzip.compress(b"smiles,PCE\nOCC,1.5\nC(C)O,-2\nc1ccccc1,3.5966390000000001\n")], CSV)
    np.testing.assert_array_equal(raw.X[0], raw.X[1])
    assert raw.X.shape == (3, 512) and 0 < raw.X[0].sum() < 10 and (raw.X[0] != raw.X[2]).any()
    assert raw.target.tolist() == [1.5, -2, np.float32(3.596639)]
    raw = smiles_csv([of_full(("OCC", "CCO"), ("c1ccc", "CCO"), ("", "CCO"))], FULL)
    assert (raw.X[0] == raw.X).all() and raw.target.tolist() == [0.25, 1.25, 2.25]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"smiles,PCE\nCCO,1\nc1ccc,2\n", "row 2: RDKit cannot read the SMILES 'c1ccc'"),
        (b"smiles,PCE\nCCO,high\n", "row 1: 'high' is not a number"),
        (b"smiles,pce\nCCO,1\n", "no column 'PCE'; the table has smiles, pce"),
        (gzip.compress(b"smiles,PCE\nCCO,1\n", mtime=0)[:-9], "the packed file is damaged"),
    ],
)
def test_a_table_that_is_not_of_molecules_is_one_clear_line(rdkit, capfd, content, message):
    with pytest.raises(DataError, match=message) as caught:
        smiles_csv([content], CSV)
    assert "\n" not in str(caught.value) and capfd.readouterr().err == ""
