"""Scaling by the training rows alone: no test row touches a mean or a standard deviation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gpbench.data.dataset import Dataset, check_finite
from gpbench.errors import ConfigError, DataError

# A constant column's computed std is rarely 0 (kegg's is 1e-21): compare it with the column's size, never with 0.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Prepared:
    """One split, scaled and ready to train on, all float64.

    `y_mean`, `y_std`: original units = y * y_std + y_mean (0 and 1 for classification).  `classes`: their number, 0 for
    regression.  Columns constant in the training rows are kept, as zeros in both parts.
    """

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    X_test: Float[np.ndarray, "t D"]
    y_test: Float[np.ndarray, " t"]
    y_mean: float
    y_std: float
    task: str
    classes: int


def prepare(
    dataset: Dataset,
    train_idx: Int[np.ndarray, " n"],
    test_idx: Int[np.ndarray, " t"],
    *,
    inputs: str = "standardise",
    targets: str = "standardise",
    output: int | None = None,
) -> Prepared:
    """The rows of one split, inputs and regression targets standardised (ddof 0) or left ("none").

    `output` is the number, from 0, of the output that is the target, for data sets with several and only for those.
    Raises DataError: empty split, NaN or infinite cells, one class only among the training rows, constant targets;
    ConfigError: an unknown scaling, an output that is missing, superfluous or out of range.
    """
    for key, value in {"inputs": inputs, "targets": targets}.items():
        if value not in ("standardise", "none"):
            raise ConfigError(f"{key}={value!r} is neither 'standardise' nor 'none'")
    if len(train_idx) == 0 or len(test_idx) == 0:
        raise DataError(f"{dataset.name}: an empty split ({len(train_idx)} training, {len(test_idx)} test rows)")
    y_all, name = _target(dataset, output)
    X, X_test = dataset.X[train_idx], dataset.X[test_idx]  # fancy indices copy: the data set stays as it is
    y, y_test = y_all[train_idx], y_all[test_idx]
    check_finite(dataset.name, X, y, dataset.columns, (name,))
    check_finite(dataset.name, X_test, y_test, dataset.columns, (name,))
    if inputs == "standardise":
        _standardise(X, X_test)
    y_mean, y_std = 0.0, 1.0
    if dataset.task != "regression":
        if len(np.unique(y)) < 2:
            raise DataError(f"{dataset.name}: one class only among the {len(y)} training rows; take another split")
    elif targets == "standardise":
        y_mean, y_std = float(y.mean()), float(y.std())
        if y_std <= _CONSTANT * np.abs(y).max():
            raise DataError(f"{dataset.name}: column {name!r}: the targets of the {len(y)} training rows are all equal")
        y, y_test = (y - y_mean) / y_std, (y_test - y_mean) / y_std
    return Prepared(X, y, X_test, y_test, y_mean, y_std, dataset.task, len(dataset.classes))


def _target(dataset: Dataset, output: int | None) -> tuple[Float[np.ndarray, " N"], str]:
    """The column of the output asked for, and what it is called."""
    count = len(dataset.outputs)
    if count == 0 and output is None:
        return dataset.y, "target"
    if count == 0:
        raise ConfigError(f"output={output}: {dataset.name} has one output only; leave `output` out")
    if output is None or not 0 <= output < count:
        said = "no output is chosen" if output is None else f"output={output}"
        hint = f"; its card must say `outputs: {count}`" if output is None else ""
        names = ", ".join(dataset.outputs)
        raise ConfigError(f"{said}: {dataset.name} has the outputs 0 to {count - 1} ({names}){hint}")
    return dataset.y[:, output], dataset.outputs[output]


def _standardise(X: Float[np.ndarray, "n D"], X_test: Float[np.ndarray, "t D"]) -> None:
    """In place, and without a temporary as large as X: mnist in float64 is 0.4 GB."""
    size = np.maximum(np.abs(X.max(axis=0)), np.abs(X.min(axis=0)))
    mean = X.mean(axis=0)
    X -= mean
    std = np.sqrt(np.einsum("nd,nd->d", X, X) / len(X))
    constant = std <= _CONSTANT * size
    std[constant] = 1.0
    X /= std
    X_test -= mean
    X_test /= std
    X[:, constant] = 0.0
    X_test[:, constant] = 0.0
