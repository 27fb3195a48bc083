"""Readers of raw formats: bytes of one or several files, and the source's options, to a `Raw` table.  Text is parsed as
text only and npz without pickle.  `gpbench.data_registry` names the readers.
"""

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpbench.data import archives, row_labels
from gpbench.data.dataset import Raw
from gpbench.errors import require


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
        title = row_labels.label(labels["order"], "order")
        of_rows["order"] = row_labels.times(title, of_rows["order"], format=format)
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
    """Reads `label index:value ...` lines with indices from 1; what a line leaves out is 0, and `#` begins a comment.
    Queries, `label qid:number index:value ...`, are groups of rows.
    """
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
