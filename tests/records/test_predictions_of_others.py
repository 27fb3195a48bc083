"""Files of predictions that no run writes are refused when they are read; pictures are drawn of what passes."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpbench.records.arrays import unpack_predictions

ROWS = {"row": np.arange(3), "target": np.zeros(3), "log_prob": np.full(3, -1.0)}
MOMENTS = ROWS | {"mean": np.zeros(3), "variance": np.ones(3)}
CLASSES = ROWS | {"log_prob_0": np.log([0.2, 0.5, 1.0]), "log_prob_1": np.array([np.log(0.8), np.log(0.5), -np.inf])}


def packed(columns) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({name: np.asarray(values) for name, values in columns.items()}), file)
    return file.getvalue()


@pytest.mark.parametrize("columns", [MOMENTS, CLASSES], ids=["regression", "classes"])
def test_predictions_of_a_run_are_read(columns):
    read = unpack_predictions(packed(columns))
    assert all(np.array_equal(read[name], columns[name]) for name in columns)


@pytest.mark.parametrize("absent", ["target", "variance", "log_prob"])
def test_an_absent_column_is_named(absent):
    with pytest.raises(ValueError, match=f"no column {absent}"):
        unpack_predictions(packed({name: values for name, values in MOMENTS.items() if name != absent}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (MOMENTS | {"mean": ["a", "b", "c"]}, "mean is not of numbers"),
        (MOMENTS | {"mean": [np.nan, 0.0, 0.0]}, "mean is not finite"),
        (MOMENTS | {"target": [-1e308, 0.0, 0.0]}, "target has numbers beyond"),
        (MOMENTS | {"variance": [-1.0, 1.0, 1.0]}, "variance is out of range"),
        (CLASSES | {"log_prob_1": [np.nan, 0.0, 0.0]}, "log_prob_1 is out of range"),
        (CLASSES | {"log_prob_0": [2.0, 0.0, 0.0]}, "log_prob_0 is out of range"),
        (CLASSES | {"log_prob_3": np.zeros(3)}, "no column log_prob_2"),
        ({name: values[:0] for name, values in MOMENTS.items()}, "is not of numbers"),
    ],
)
def test_numbers_that_no_run_writes_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        unpack_predictions(packed(columns))
