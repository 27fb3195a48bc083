"""The Clean Energy Project: packed fingerprints, those that RDKit makes, and that both are the same arrays."""

import gzip

import numpy as np
import pytest
from small_tables import npz

from gpbench.data import cards, load, prepare, sources, splits
from gpbench.data.conversion import from_raw
from gpbench.data.readers import fingerprints_npz, smiles_csv
from gpbench.errors import DataError

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
        (packed(bits=np.zeros(64, np.uint8)), r"shape \(64,\): must be rows of bytes"),
        (npz(bits=np.packbits(BITS, axis=1)), "no array 'pce'; the archive has 'bits'"),
        (packed()[:300], "not the expected npz file"),
    ],
)
def test_fingerprints_of_another_form_are_one_clear_line(content, message):
    with pytest.raises(DataError, match=message) as caught:
        fingerprints_npz([content], NPZ)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["hcep", "hcep_full"])
def test_without_rdkit_the_error_says_how_to_install_it_and_nothing_is_downloaded(name, monkeypatch):
    def download(*_):
        raise AssertionError("downloaded")

    monkeypatch.setattr(sources, "find_spec", lambda package: None)
    monkeypatch.setattr(sources.files, "from_address", download)
    with pytest.raises(
        DataError, match=r"needs rdkit, which is not installed: pip install -c constraints.txt -e '.\[chem\]'"
    ) as caught:
        load(cards.read(name))
    assert "\n" not in str(caught.value)


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


def test_a_fingerprint_is_that_of_the_molecule_and_not_of_its_spelling(rdkit):
    raw = smiles_csv([gzip.compress(b"smiles,PCE\nOCC,1.5\nC(C)O,-2\nc1ccccc1,3.5966390000000001\n")], CSV)
    np.testing.assert_array_equal(raw.X[0], raw.X[1])
    assert raw.X.shape == (3, 512) and 0 < raw.X[0].sum() < 10 and (raw.X[0] != raw.X[2]).any()
    assert raw.target.tolist() == [1.5, -2, np.float32(3.596639)]


def test_a_molecule_that_one_column_misspells_is_that_of_the_next(rdkit):
    raw = smiles_csv([of_full(("OCC", "CCO"), ("c1ccc", "CCO"), ("", "CCO"))], FULL)
    assert (raw.X[0] == raw.X).all() and raw.target.tolist() == [0.25, 1.25, 2.25]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"smiles,PCE\nCCO,1\nc1ccc,2\n", "row 2: RDKit cannot read the SMILES 'c1ccc'"),
        (b"smiles,PCE\nCCO,high\n", "row 1: 'high' is not a number"),
        (b"smiles,PCE\nCCO,1\nCCO\n", "row 2 has 1 cells, not 2"),
        (b"smiles,pce\nCCO,1\n", "no column 'PCE'; the table has smiles, pce"),
        (gzip.compress(b"smiles,PCE\nCCO,1\n", mtime=0)[:-9], "the packed file is damaged"),
    ],
)
def test_a_table_that_is_not_of_molecules_is_one_clear_line(rdkit, capfd, content, message):
    with pytest.raises(DataError, match=message) as caught:
        smiles_csv([content], CSV)
    assert "\n" not in str(caught.value) and capfd.readouterr().err == ""
