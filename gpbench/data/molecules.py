"""Molecules of the Harvard Clean Energy Project (Hachmann et al. 2011): Morgan fingerprints and a number to predict.

A fingerprint says of each of `bits` hash values whether an atom with its neighbours up to `radius` bonds away has it.
It comes ready made, or RDKit (the extra `chem`) makes it from the molecule's SMILES.  Targets are single precision.
"""

import csv
import io
from array import array
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import UInt8

from gpbench.data import archives
from gpbench.data.dataset import Raw
from gpbench.errors import DataError


def fingerprints_npz(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """A NumPy archive: `bits`, eight to a byte, and the array named by `target`.  Option: the number of `bits`.

    Raises DataError for fingerprints of another length or number.
    """
    content = archives.arrays(blobs[0], "bits", options["target"])
    packed, target = content["bits"], content[options["target"]]
    if packed.dtype != np.uint8 or packed.ndim != 2:
        raise DataError(f"fingerprints of type {packed.dtype} and shape {packed.shape}: must be rows of bytes")
    if len(packed) != len(target):
        raise DataError(f"{len(packed)} fingerprints, but {len(target)} targets")
    return _raw(packed, target, options["bits"])


def smiles_csv(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """A table with a header, plain or gzipped, read row by row; fingerprints are made of the column `smiles`.

    Where `smiles` names several columns, each molecule is that of the first one which RDKit can read.  Other options:
    the column `target`, `radius` and `bits`.  Raises DataError for a column that is absent, and for a molecule or a
    target that cannot be read, with its row.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=options["radius"], fpSize=options["bits"])
    spellings = [options["smiles"]] if isinstance(options["smiles"], str) else options["smiles"]
    packed, target = bytearray(), array("f")
    with rdBase.BlockLogs():
        for row, (*smiles, value) in enumerate(_cells(blobs[0], [*spellings, options["target"]]), 1):
            molecules = (Chem.MolFromSmiles(text) for text in smiles if text)
            if (molecule := next((m for m in molecules if m is not None), None)) is None:
                raise DataError(f"row {row}: RDKit cannot read the SMILES {smiles[0][:60]!r}")
            packed += np.packbits(generator.GetFingerprintAsNumPy(molecule)).tobytes()
            try:
                target.append(float(value))
            except ValueError:
                raise DataError(f"row {row}: {value[:20]!r} is not a number") from None
    if not target:
        raise DataError("the table has no rows")
    table = np.frombuffer(packed, np.uint8).reshape(len(target), -1)
    return _raw(table, np.frombuffer(target, np.float32), options["bits"])


def _cells(blob: bytes, columns: Sequence[str]) -> Iterator[list[str]]:
    """The cells of these columns, row by row."""
    text = io.TextIOWrapper(io.BytesIO(archives.unzipped(blob)), encoding="utf-8-sig", errors="replace", newline="")
    rows = csv.reader(text, skipinitialspace=True)
    try:
        header = [cell.strip() for cell in next(rows, [])]
        if absent := [name for name in columns if name not in header]:
            raise DataError(f"no column {absent[0]!r}; the table has {', '.join(header[:20])[:200]}")
        positions = [header.index(name) for name in columns]
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                raise DataError(f"row {number} has {len(row)} cells, not {len(header)}")
            yield [row[i].strip() for i in positions]
    except csv.Error as error:
        raise DataError(f"not a table of SMILES: {error}") from None


def _raw(packed: UInt8[np.ndarray, "N bytes"], target: np.ndarray, bits: int) -> Raw:
    if 8 * packed.shape[1] != bits:
        raise DataError(f"fingerprints of {8 * packed.shape[1]} bits, not {bits}")
    return Raw(np.unpackbits(packed, axis=1), target)
