"""Arrays of a file that no run leaves are refused when they are read; pictures are drawn of what passes."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpbench.records import kept
from gpbench.records.arrays import unpack_predictions

X = {"X": (5, 2), "y": (5,), "X_shift": (2,), "X_scale": (2,), "y_mean": (), "y_std": ()}
FIT = X | {"grid": (9, 2), "mean": (9,), "var": (9,), "hidden": (9, 3), "inducing": (4, 2), "lengthscales": (2,)}
PARTS = {"inputs": (2, 1), "grid": (7, 1), "mean": (2, 7), "std": (2, 7), "joint": (2,), "place": (2,)}
EFFECTS = X | {"shares": (8, 3)} | {f"effect1_{name}": shape for name, shape in PARTS.items()}


def arrays(shapes, **changes):
    return {f"kept_{name}": np.ones(shape) for name, shape in shapes.items()} | {
        f"kept_{name}": np.asarray(values) for name, values in changes.items()
    }


@pytest.mark.parametrize("shapes", [FIT, EFFECTS, {"inducing": (4, 9), "lengthscales": (9,)}, {}])
def test_what_runs_leave_passes(shapes):
    assert not [*kept.faults(arrays(shapes, own=np.zeros((2, 3, 4))))]  # a user's method keeps what it likes


@pytest.mark.parametrize(
    ("shapes", "changes", "message"),
    [
        (FIT, {"grid": np.ones((9, 2, 1))}, "grid has 3 axes, not 2"),
        (FIT, {"mean": np.ones(8)}, "mean has another size"),
        (FIT, {"grid": np.ones((0, 2))}, "grid has another size"),
        (FIT, {"var": np.full(9, np.nan)}, "var is not finite"),
        ({name: FIT[name] for name in FIT if name != "X_scale"}, {}, "X is there without X_scale"),
        (X | {"grid": (9, 2)}, {}, "grid is there without predictions"),
        (X | {"grid": (8, 2), "mean": (8,), "var": (8,)}, {}, "not square"),
        (EFFECTS, {"effect1_inputs": [[0], [2]]}, "effect1_inputs has numbers out of range"),
        (EFFECTS, {"effect1_place": [0, -1]}, "effect1_place has numbers out of range"),
        (EFFECTS, {"shares": np.ones(3)}, "shares has 1 axes, not 2"),
    ],
)
def test_what_no_run_leaves_is_refused(shapes, changes, message):
    assert message in next(kept.faults(arrays(shapes, **changes)))


def test_inducing_points_that_are_not_drawn_and_probabilities_of_zero_pass():
    log_probs = np.log([[1.0, 1e-300]] * 9)
    log_probs[0] = [0.0, -np.inf]
    inducing = np.full((4, 2), np.nan)
    assert not [*kept.faults(arrays(X | {"grid": (9, 2)}, log_probs=log_probs, inducing=inducing))]


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


def without(absent):
    return {name: values for name, values in MOMENTS.items() if name != absent}


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
        *((without(absent), f"no column {absent}") for absent in ("target", "variance", "log_prob")),
        ({name: values[:0] for name, values in MOMENTS.items()}, "is not of numbers"),
    ],
)
def test_numbers_that_no_run_writes_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        unpack_predictions(packed(columns))
