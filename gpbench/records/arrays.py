"""Arrays beside a record: thinned traces as collections have them, and predictions of the test rows.

`predictions.parquet` in a run's folder has one line a test row, with the columns `row`, its number in the data set
from 0; `target`, as the data set has it (-1/+1, 0..C-1, original units); `log_prob` of the target, in original units;
and `log_prob_0` to `log_prob_{C-1}`, the classes in order of code (classification), or `mean`, `variance`, the interval
`low95` and `high95` in original units, `cdf`, P(target or less), and of counts `below`, P(less) (regression).  Another
program's samples or quantiles lack some of these, and files of earlier versions all after the variance.  What has the
target's units is stored in float64: differences count, and variances of targets around 1e30 or 1e-27 leave the range of
float32.  The others are stored in float32."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits, npz, pages
from gpbench.errors import require

if TYPE_CHECKING:
    from numpy import ndarray

    from gpbench.records.record import Record

Predictions = Mapping[str, "ndarray"]  # columns of predictions by name

Headers = Mapping[str, tuple[tuple[int, ...], Any]]  # shapes and types of arrays by name

PREDICTIONS = "predictions.parquet"
MOST_ROWS = 10_000
"""Largest number of test rows whose predictions are kept by default (`run.predictions=auto`): 500 kB a run."""
_TYPES = {"row": "int64", **dict.fromkeys(("target", "mean", "variance", "low95", "high95"), "float64")}
"""Types of the columns that are not float32."""

_POINTS = 48  # largest number of points of a trace that is not thinned
_FIRST = 10  # number of first points that every thinned trace has: the start of training is compared step by step
_GROWTH = 1.3
"""The ratio of the steps of a thinned trace.  Steps do not depend on its length, so that those of splits agree."""
_LARGEST = 1e300  # largest number of a trace: the width of an axis must be a number too


def thin(arrays: "Mapping[str, ndarray]", *, whole: bool) -> "dict[str, ndarray]":
    """Each trace at its first points, at a geometric progression of points, as on logarithmic axes, and at its last.
    Numbers are of single precision.  With `whole` also the arrays of `run.keep=true`, as they are."""
    import numpy as np

    thinned = {}
    for name, values in arrays.items():
        if name.startswith(_KEPT):
            selected = values if whole else None
        else:
            selected = values[_points(len(values))] if values.ndim else values
        if selected is not None:
            thinned[name] = selected.astype(np.float32) if selected.dtype == np.float64 else selected
    return thinned


def share_seconds(record: "Record", arrays: "Mapping[str, ndarray]") -> "dict[str, ndarray]":
    """The arrays of a run with its own seconds: a trace has those of the group, which its runs share equally."""
    import numpy as np

    own = {"seconds": np.asarray(arrays["seconds"]) / (record.group or 1)} if "seconds" in arrays else {}
    return {**arrays, **own}


def pack(arrays: "Mapping[str, ndarray]") -> bytes | None:
    """The arrays as the content of an .npz file, which the file around it compresses; None without any."""
    import numpy as np

    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue() if arrays else None


def unpack_trace(content: bytes) -> "dict[str, ndarray]":
    """The arrays of a trace, and those that `run.keep=true` keeps.  Raises ValueError: no run leaves such arrays."""
    arrays = _unpack(content, limits.TRACE) or {}
    traces = [values for name, values in arrays.items() if not name.startswith(_KEPT)]
    are_real = all(values.dtype.kind in "biuf" for values in arrays.values())
    require(are_real, "its arrays are not of real numbers", ValueError)
    are_alike = all(values.ndim == 1 and len(values) == len(traces[0]) for values in traces)
    require(are_alike, "its traces are not of one length", ValueError)
    require(not any(map(_has_large, arrays.values())), f"its arrays have numbers beyond {_LARGEST:g}", ValueError)
    for fault in kept_faults(arrays):
        raise ValueError(fault)
    return arrays


def unpack_state(content: bytes, expected: Headers | None = None) -> "dict[str, ndarray] | None":
    """The arrays of a trained state; None, and none is read, where they are others than expected."""
    return _unpack(content, limits.STATE, expected)


def _unpack(content: bytes, most: int, expected: Headers | None = None) -> "dict[str, ndarray] | None":
    try:
        if expected is not None and npz.headers(content) != expected:
            return None
        with npz.opened(content, limits.most_unpacked(len(content), most)) as arrays:
            return dict(arrays)
    except ValueError as error:
        raise ValueError(f"its arrays cannot be read ({error})") from None


def write_predictions(folder: Path, predictions: Predictions) -> None:
    """Writes the file into a run's folder.  Raises OSError."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for name, values in predictions.items():
        array = np.ascontiguousarray(values, dtype=_TYPES.get(name, "float32"))
        # from its buffer: given an array, pyarrow imports pandas, which takes half a second
        columns[name] = pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, pa.py_buffer(array)])
    options = {"use_dictionary": False, "write_statistics": False, "store_schema": False}  # a third of a small file
    with open(folder / PREDICTIONS, "wb") as file:  # pyarrow takes no path that is not UTF-8
        pq.write_table(pa.table(columns), file, compression="zstd", **options)


def unpack_predictions(content: bytes) -> "dict[str, ndarray]":
    """The columns of a file of predictions, each (rows,).  Raises ValueError: no run writes such a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
            for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types):
                is_number = pa.types.is_primitive(kind) and not pa.types.is_temporal(kind)
                require(is_number, f"its column {name} is not of numbers", ValueError)
            size = 8 * file.metadata.num_rows * file.metadata.num_columns  # equal values take no space in the file
            size = max(size, pages.unpacked_size(content, file.metadata))
            most = limits.most_unpacked(len(content), limits.PREDICTIONS)
            limits.check(size, most, f"a file of {len(content):,} bytes unpacks to")
            table = file.read(use_threads=False)  # as in a collection
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        for fault in _faults(columns):
            raise ValueError(fault)
        return columns
    except (OSError, pa.ArrowException, LookupError, RecursionError, ValueError) as error:
        raise ValueError(f"its {PREDICTIONS} cannot be read ({npz.reason(error)})") from None


def _faults(columns: Predictions) -> Iterator[str]:
    """Faults of columns that no run writes."""
    import numpy as np

    classes = [name for name in columns if name.startswith("log_prob_")]
    of_numbers = ["log_prob", "mean", "variance"] if "cdf" not in columns else []
    needed = ["log_prob", *(f"log_prob_{c}" for c in range(max(2, len(classes))))] if classes else of_numbers
    if absent := [name for name in ("row", "target", *needed) if name not in columns]:
        yield f"no column {absent[0]}"
    for name, values in columns.items():
        if values.dtype.kind not in "biuf" or not len(values):
            yield f"its column {name} is not of numbers"
        is_finite = np.isfinite(values)
        if name in ("row", "target", "mean") and not is_finite.all():
            yield f"its column {name} is not finite"
        if _has_large(values):
            yield f"its column {name} has numbers beyond {_LARGEST:g}"
        ranges = {"variance": (0.0, np.inf), "cdf": (-1e-3, 1.001), "below": (-1e-3, 1.001)}
        low, high = (-np.inf, 1e-3) if name in classes else ranges.get(name, (-np.inf, np.inf))
        if name in (*ranges, *classes) and not ((values >= low) & (values <= high)).all():
            yield f"its column {name} is out of range"


def _has_large(values: "ndarray") -> bool:
    import numpy as np

    # float32 holds no such number
    return values.dtype.itemsize > 4 and bool((np.abs(values[np.isfinite(values)]) > _LARGEST).any())


def log_probs(predictions: Predictions) -> "ndarray":
    """The log probabilities of the classes, (rows, C); (rows, 0) of regression."""
    import numpy as np

    rows, classes = len(predictions["row"]), sum(name.startswith("log_prob_") for name in predictions)
    return np.stack([predictions[f"log_prob_{c}"] for c in range(classes)], axis=1) if classes else np.empty((rows, 0))


def _points(n: int) -> "ndarray":
    import numpy as np

    if n <= _POINTS:
        return np.arange(n)
    steps = (_GROWTH ** np.arange(np.log(n) / np.log(_GROWTH))).astype(int) - 1
    return np.unique([*range(_FIRST), *steps, n - 1])


_KEPT = "kept_"  # prefix, in a trace, of the names of the arrays that `run.keep=true` keeps for pictures

_OF_EFFECTS = {"inputs": "E{0} {0}", "grid": "g{0} {0}", "mean": "E{0} g{0}", "std": "E{0} g{0}", "joint": "E{0}"}
_AXES = {
    **{"X": "n D", "y": "n", "X_shift": "D", "X_scale": "D", "y_mean": "", "y_std": ""},
    **{"grid": "G D", "mean": "G", "var": "G", "log_probs": "G C", "hidden": "G H"},
    **{"lengthscales": "D", "inducing": "M D", "covariance_inducing": "K D", "shares": "S components"},
    **{f"effect{size}_{name}": axes.format(size) for size in (1, 2) for name, axes in _OF_EFFECTS.items()},
    **{"effect1_place": "E1", "effect2_place": "E2"},
}
"""The axes of each array: training rows n, inputs D, points of the grid G, classes C, hidden units H, inducing points M
and K, samples S; of effects of one and of two inputs their number E and the points g of their grid."""

_NEEDS = {
    "grid": ("X", "y"),
    "X": ("y", "X_shift", "X_scale", "y_mean", "y_std"),
    "mean": ("grid", "var"),
    "var": ("mean",),
    "log_probs": ("grid",),
    "hidden": ("grid",),
    "shares": ("X",),
    **{
        f"effect{size}_inputs": ("X", "shares", *(f"effect{size}_{name}" for name in ("grid", "mean", "std", "place")))
        for size in (1, 2)
    },
}
"""The arrays without which an array cannot be drawn."""

_GRIDS = {"G": "D", "g2": "2"}
"""Axes of the points of grids, by the axis of their inputs: with two inputs the number of points is a square."""


def kept_faults(arrays: "Mapping[str, ndarray]") -> Iterator[str]:
    """Faults of kept arrays, but for those of other names, which a user's method keeps and which may have any axes."""
    import numpy as np

    by_name = {name.removeprefix(_KEPT): values for name, values in arrays.items() if name.startswith(_KEPT)}
    sizes = {"1": 1, "2": 2}
    for name, values in by_name.items():
        axes = _AXES[name].split() if name in _AXES else ()
        if name in _AXES and values.ndim != len(axes):
            yield f"the array {name} has {values.ndim} axes, not {len(axes)}"
        for axis, size in zip(axes, values.shape):
            if size < 1 or sizes.setdefault(axis, size) != size:
                yield f"the array {name} has another size than those beside it"
        if absent := [other for other in _NEEDS.get(name, ()) if other not in by_name]:
            yield f"the array {name} is there without {absent[0]}"
        # inducing points that are not drawn are NaN, and a probability may be 0
        is_drawn = np.isfinite(values) | ((name == "log_probs") & (values < 0))
        if name in _AXES and not name.endswith("inducing") and not is_drawn.all():
            yield f"the array {name} is not finite"
    if "grid" in by_name and not {"mean", "log_probs"} & by_name.keys():
        yield "the array grid is there without predictions"
    for points, inputs in _GRIDS.items():
        if points in sizes and sizes.get(inputs) == 2 and round(sizes[points] ** 0.5) ** 2 != sizes[points]:
            yield "a grid of two inputs is not square"
    for size in (1, 2):
        for name, limit in ((f"effect{size}_inputs", sizes.get("D")), (f"effect{size}_place", sizes.get("components"))):
            if name in by_name and not ((by_name[name] >= 0) & (by_name[name] < (limit or 0))).all():
                yield f"the array {name} has numbers out of range"
