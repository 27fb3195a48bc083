"""Readers of raw formats: bytes of one or several files, and the source's options, to a `Raw` table.  Text is parsed as
text only and npz without pickle.  `gpbench.data_registry` names the readers, of which the last are of single data sets:
flights (card `airline`), songs by their timbre (`year`) and molecules (`hcep`)."""

import csv
import io
import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import UInt8

from gpbench import limits
from gpbench.data import archives, cells, encoding, row_labels
from gpbench.data.dataset import Raw
from gpbench.data.faults import reject
from gpbench.data.tables import columns_of, split_header
from gpbench.errors import DataError, require


@archives.parsing("the expected npz file")
def npz(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads a NumPy archive: inputs `X`, targets, groups of rows, their order, fixed splits and folds."""
    options = {key: value for key, value in options.items() if value is not None}
    target, folds = options.get("target", "y"), options.get("folds", {})
    time, format = row_labels.column_and_format(options.get("order"))
    names_of = {"groups": options.get("group"), "order": time, "split": options.get("split")}
    labels = {key: str(name) for key, name in names_of.items() if name is not None}
    content = archives.arrays(blobs[0], "X", target, *folds.values(), *labels.values(), optional=("feature_names",))
    X, names = _without(options.get("drop") or (), content["X"], [*map(str, content.get("feature_names", ()))])
    of_rows: dict[str, Any] = {key: content[name] for key, name in labels.items()}
    if "order" in of_rows:
        of_rows["order"] = row_labels.times(row_labels.label(labels["order"], "order"), of_rows["order"], format=format)
    if "split" in of_rows:
        of_rows["split"] = row_labels.texts(of_rows["split"].reshape(len(of_rows["split"]), -1))
    return Raw(X, content[target], names, {key: content[name] for key, name in folds.items()}, **of_rows)


def _without(drop: Sequence[int], X: np.ndarray, names: Sequence[str] = ()) -> tuple[np.ndarray, tuple[str, ...]]:
    """The inputs and their names without those at these places.  Raises DataError: there is no such place."""
    if not drop:
        return X, (*names,)
    require(max(drop) < X.shape[1], f"drop={[*drop]}: the file has {X.shape[1]} inputs, counted from 0")
    return np.delete(X, drop, axis=1), tuple(name for k, name in enumerate(names) if k not in drop)


def libsvm(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads `label index:value ...` lines with indices from 1, or `label qid:group index:value ...`; others are 0."""
    from sklearn.datasets import load_svmlight_file

    content = archives.decompress(blobs[0])
    stream, inputs = io.BytesIO(content), options.get("inputs")
    with archives.parsing("libsvm text"):
        try:
            X, target, queries = load_svmlight_file(stream, zero_based=False, query_id=True)
        except ValueError as error:
            line = content.count(b"\n", 0, max(0, stream.tell() - 1)) + 1
            raise ValueError(f"line {line}: {error}; indices count from 1") from None
        rows, largest = X.shape
        if not rows:
            raise ValueError("the table has no rows")
        if largest > (inputs or largest):
            mend = f"write `inputs: {largest}`, or leave `inputs` out"
            raise ValueError(f"index {largest} is beyond the {inputs} inputs of the card: {mend}")
        archives.require_dense(rows * (inputs or largest), archives.size_of(content))
        X.resize(rows, inputs or largest)
    fact = f"a `qid` in {len(queries)} of {rows} lines: give one to every line, or to none"
    require(len(queries) in (0, rows), f"not libsvm text: {fact}")
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return Raw(X.toarray(), target, groups=queries, account=f"{rows:,} rows of {lines:,} lines")


@archives.parsing("an idx file of unsigned bytes")
def idx(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads pairs of idx files: images and labels, which are put one pair below the other."""
    arrays = []
    for content in map(archives.decompress, blobs):
        # magic: two zero bytes, the type (8: unsigned byte), the number of dimensions; then the big-endian sizes
        if content[:3] != b"\0\0\x08":
            raise ValueError("it begins with other bytes")
        start = 4 + 4 * content[3]
        shape = np.frombuffer(content[4:start], dtype=">u4").tolist()
        is_whole = shape and len(content) == start + math.prod(shape)
        require(is_whole, f"an idx file of shape {tuple(shape)} is cut off or too long")
        arrays.append(np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape))
    images, labels = np.concatenate(arrays[::2]), np.concatenate(arrays[1::2])
    require(len(images) == len(labels), f"{len(images)} images, but {len(labels)} labels")
    return Raw(images.reshape(len(images), -1), labels)


def uci_datasets(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads the files of Evans & Nair's repository, with their folds as `yang`."""
    with archives.parsing("a table of numbers"):
        *parts, mask = (np.loadtxt(io.BytesIO(archives.decompress(blob)), delimiter=",", ndmin=2) for blob in blobs)
        data = np.concatenate(parts)
    is_whole = len(mask) == len(data) and (mask.sum(axis=1) == 1).all()
    require(is_whole, "the test masks do not test every row exactly once")
    return Raw(_without(options.get("drop") or (), data[:, :-1])[0], data[:, -1], (), {"yang": mask.argmax(axis=1)})


def mat(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads MATLAB 5 files, one row for each row of the data."""
    from scipy.io import loadmat

    with archives.parsing("the expected MATLAB file"):
        for blob in blobs:
            archives.check_matlab(blob)
        if "outputs" not in options:
            arrays = loadmat(io.BytesIO(blobs[0]), variable_names=[options["matrix"], options["target"]])
            return Raw(arrays[options["matrix"]], arrays[options["target"]].ravel())
        parts = [loadmat(io.BytesIO(blob), variable_names=[name])[name] for blob, name in zip(blobs, options["matrix"])]
        inputs, targets = np.split(np.concatenate(parts), [-options["outputs"]], axis=1)
        return Raw(inputs, targets)


_AIRLINE_COLUMNS = ("month", "day_of_month", "day_of_week", "departure", "arrival", "air_time", "distance", "plane_age")
_FLIGHTS = ("Month", "DayofMonth", "DayOfWeek", "DepTime", "ArrTime", "AirTime", "Distance", "ArrDelay")
_OTHER_ARRAYS = ("dep_time_hhmm", "arr_time_hhmm", "air_time_min", "distance_mi", "arr_delay_min")
_AIRLINE_ARRAYS = (*_AIRLINE_COLUMNS[:3], *_OTHER_ARRAYS)
_YEARS = ("plane_year", "issue_year")


@archives.parsing("the expected npz file")
def airline_npz(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads the airline set from one NumPy array a column, with flights and planes joined already."""
    columns = archives.arrays(blobs[0], *_AIRLINE_ARRAYS, "plane_year", "plane_issue_year")
    years = dict(zip(_YEARS, (columns["plane_year"], columns["plane_issue_year"])))
    return _airline([columns[name] for name in _AIRLINE_ARRAYS], years, options)


@archives.parsing("the flights and planes of the 2009 data expo")
def airline_csv(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads the airline set from the official files.  Raises DataError: a file is something else."""
    flights, planes = blobs
    year_of = _planes(planes)
    table = array("h")  # 16 bits hold every cell of the rows that are used: 43 MB in all
    rows = csv.reader(io.TextIOWrapper(archives.open_decompressed(flights), encoding="latin-1", newline=""))
    header = next(rows, [])
    positions, tail = [header.index(name) for name in _FLIGHTS], header.index("TailNum")
    for row in rows:
        if row[tail] in year_of and "NA" not in (cells := [row[i] for i in positions]) and int(cells[0]) <= 4:
            table.extend([*map(int, cells), *year_of[row[tail]]])
    columns = np.frombuffer(table, np.int16).reshape(-1, len(_FLIGHTS) + len(_YEARS)).T
    return _airline(list(columns[: len(_FLIGHTS)]), dict(zip(_YEARS, columns[len(_FLIGHTS) :])), options)


def _planes(content: bytes) -> dict[str, tuple[int, int]]:
    """Tail number -> year built, year registered; 0 where unknown."""
    planes = csv.DictReader(io.StringIO(content.decode("latin-1"), newline=""))
    if missing := {"tailnum", "year", "issue_date"} - set(planes.fieldnames or ()):
        raise ValueError(f"the table of planes has no column {sorted(missing)[0]!r}")
    return {plane["tailnum"]: (_year_in(plane["year"]), _year_in(plane["issue_date"])) for plane in planes}


def _year_in(text: str | None) -> int:
    """The year at the end of `2004` or `05/08/1986`; 0 for `None` and nothing."""
    digits = (text or "").strip()[-4:]
    return int(digits) if digits.isdecimal() else 0


def _airline(flights: Sequence[np.ndarray], years: Mapping[str, np.ndarray], options: Mapping) -> Raw:
    """The rows whose plane's year, in which it was built or registered, is known, and whether each was late (1)."""
    year = years[options["variant"]]
    known = year > 0
    inputs: list[np.ndarray] = [column[known].astype(np.int16) for column in flights]
    late = (inputs.pop() > 0).astype(np.int8)
    for i in (_AIRLINE_COLUMNS.index("departure"), _AIRLINE_COLUMNS.index("arrival")):
        inputs[i] = 60 * (inputs[i] // 100) + inputs[i] % 100
    inputs.append((2008 - year[known]).astype(np.int16))
    order = np.lexsort(np.stack([late, *inputs[::-1]]))
    return Raw(np.stack([column[order] for column in inputs], axis=1), late[order], _AIRLINE_COLUMNS)


_SONG_COLUMNS = (*(f"timbre_mean{i}" for i in range(1, 13)), *(f"timbre_covariance{i}" for i in range(1, 79)))
_SONG_FILE = "YearPredictionMSD.txt"


def year_zip(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads the zip archive of the song set line by line: 91 numbers between commas, the year and then 90 inputs."""
    rows, width, number = options["rows"], 1 + len(_SONG_COLUMNS), 0
    limits.check(4 * rows * width, archives.LARGEST, "the table unpacks to", error=DataError)
    table = np.empty((rows, width), np.float32)
    for number, line in enumerate(archives.lines(blobs[0], _SONG_FILE), 1):
        require(number <= rows, f"{_SONG_FILE} has more than {rows} lines")
        cells = text.split(b",") if (text := line.strip()) else []
        require(len(cells) == width, f"line {number} of {_SONG_FILE} has {len(cells)} numbers, not {width}")
        try:
            table[number - 1] = cells
        except ValueError as error:
            raise DataError(f"line {number} of {_SONG_FILE}: {error}") from None
    require(number == rows, f"{_SONG_FILE} has {number} lines, not {rows}")
    return Raw(table[:, 1:], table[:, 0], _SONG_COLUMNS)


@archives.parsing("the expected npz file")
def fingerprints_npz(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads fingerprints that are ready made.  Raises DataError: fingerprints of another length or number."""
    content = archives.arrays(blobs[0], "bits", options["target"])
    packed, target = content["bits"], content[options["target"]]
    is_bytes = packed.dtype == np.uint8 and packed.ndim == 2
    require(is_bytes, f"fingerprints of type {packed.dtype} and shape {packed.shape}: must be rows of bytes")
    require(len(packed) == len(target), f"{len(packed)} fingerprints, but {len(target)} targets")
    return _fingerprints(packed, target, options["bits"])


def smiles_csv(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Makes Morgan fingerprints of a table of SMILES: a bit for each hash of an atom with its neighbours."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=options["radius"], fpSize=options["bits"])
    names, rows, _ = split_header([cells.read(blobs[0], {})], True)
    table = dict(zip(names, columns_of(rows, len(names))))
    spellings = [options["smiles"]] if isinstance(options["smiles"], str) else options["smiles"]
    absent, known = [name for name in (*spellings, options["target"]) if name not in table], ", ".join(names[:20])
    reject(f"no column {name!r}; the table has {known[:200]}" for name in absent)
    packed = bytearray()
    with rdBase.BlockLogs():
        for row, smiles in enumerate(zip(*(table[name] for name in spellings)), 1):
            molecules = (Chem.MolFromSmiles(text) for text in smiles if text)
            if (molecule := next((m for m in molecules if m is not None), None)) is None:
                raise DataError(f"row {row}: RDKit cannot read the SMILES {smiles[0][:60]!r}")
            packed += np.packbits(generator.GetFingerprintAsNumPy(molecule)).tobytes()
    target = encoding.parsed(table[options["target"]], options["target"], cells.DECIMAL_POINT, None)
    bits = np.frombuffer(packed, np.uint8).reshape(len(target), -1)
    return _fingerprints(bits, target.astype(np.float32), options["bits"])


def _fingerprints(packed: UInt8[np.ndarray, "N bytes"], target: np.ndarray, bits: int) -> Raw:
    require(8 * packed.shape[1] == bits, f"fingerprints of {8 * packed.shape[1]} bits, not {bits}")
    limits.check(len(packed) * bits, archives.LARGEST, "the table unpacks to", error=DataError)
    return Raw(np.unpackbits(packed, axis=1), target)
