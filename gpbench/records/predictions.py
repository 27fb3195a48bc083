"""The predictions of a run's test rows: `predictions.parquet` in the run's folder, one line a row of the data set.

Columns: `row`, its number in the data set from 0; `target`, as the data set has it (-1/+1, 0..C-1, original units);
`log_prob` of the target, in original units; and `mean` and `variance` in original units (regression), or `log_prob_0`
to `log_prob_{C-1}`, the classes in order of code (classification).  Targets and means are stored in float64, since
their difference is what counts, and the others in float32.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

FILE = "predictions.parquet"
MOST_ROWS = 10_000
"""Test rows of which predictions are kept unless the user decides (`run.predictions`): 240 kB a run."""
_TYPES = {"row": "int64", "target": "float64", "mean": "float64"}
"""Of columns that are not float32."""

Predictions = Mapping[str, "np.ndarray"]


def write(folder: Path, predictions: Predictions) -> None:
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
    pq.write_table(pa.table(columns), folder / FILE, compression="zstd", **options)


def unpack(content: bytes) -> "dict[str, np.ndarray]":
    """The columns by name of the file with this content.  Raises ValueError where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
        return {name: table.column(name).to_numpy() for name in table.column_names}
    except (OSError, pa.ArrowException, KeyError) as error:
        raise ValueError(f"its {FILE} cannot be read ({str(error).partition(chr(10))[0][:100]})") from None


def log_probs(predictions: Predictions) -> "np.ndarray":
    """The log probabilities of the classes, (rows, C); (rows, 0) of regression."""
    import numpy as np

    rows, classes = len(predictions["row"]), sum(name.startswith("log_prob_") for name in predictions)
    return np.stack([predictions[f"log_prob_{c}"] for c in range(classes)], axis=1) if classes else np.empty((rows, 0))
