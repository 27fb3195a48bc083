"""One split of a data set, scaled and ready to train on."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gpbench.data.dataset import Dataset, check_finite
from gpbench.data.scaling import fit_scalers
from gpbench.errors import ConfigError, DataError


@dataclass(frozen=True)
class Prepared:
    """The scaled rows of one split, and what scoring and the record need to know of it; arrays are float64.

    `X_shift`, `X_scale`: original units = X * X_scale + X_shift.  `X_constant`: columns constant among the training
    rows, which the scalers that divide make zeros in both parts.  `y_mean`, `y_std`: original units = y * y_std +
    y_mean (0 and 1 for classification).  `classes`: their number, 0 for regression.  `held_out`: no test row is a
    training row.  `scaled_by_all_rows`: a scaler was fitted to other rows than the training rows.  `test_rows`: the
    numbers of the test rows in the data set.
    """

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    X_test: Float[np.ndarray, "t D"]
    y_test: Float[np.ndarray, " t"]
    y_mean: float
    y_std: float
    task: str
    classes: int
    held_out: bool
    scaled_by_all_rows: bool
    test_rows: Int[np.ndarray, " t"]
    X_shift: Float[np.ndarray, " D"]
    X_scale: Float[np.ndarray, " D"]
    X_constant: Bool[np.ndarray, " D"]

    def scaled(self, rows: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
        """Further rows, in original units, as the method takes them."""
        return np.where(self.X_constant, 0.0, (rows - self.X_shift) / self.X_scale)

    @property
    def outside(self) -> int:
        """The number of test rows of which an input lies below all training rows or above."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        return int(((self.X_test < low) | (self.X_test > high)).any(axis=1).sum())


def prepare(
    dataset: Dataset,
    train_idx: Int[np.ndarray, " n"],
    test_idx: Int[np.ndarray, " t"],
    *,
    inputs: str = "standardise",
    targets: str = "standardise",
    output: int | None = None,
) -> Prepared:
    """The rows of one split, inputs and regression targets scaled by the `SCALERS` of these names.

    `output` is the number, from 0, of the output that is the target, for data sets with several and only for those.
    Raises DataError: empty split, NaN or infinite cells, one class only among the training rows, constant targets, a
    column whose squares would be infinite or 0; ConfigError: an unknown scaler, an output that is missing, superfluous
    or out of range.
    """
    if len(train_idx) == 0 or len(test_idx) == 0:
        raise DataError(f"{dataset.name}: an empty split ({len(train_idx)} training, {len(test_idx)} test rows)")
    all_y, target = _target(dataset, output)
    X, X_test = dataset.X[train_idx], dataset.X[test_idx]  # fancy indices copy: the data set stays as it is
    y, y_test = all_y[train_idx], all_y[test_idx]
    check_finite(dataset.name, X, y, dataset.columns, (target,))
    check_finite(dataset.name, X_test, y_test, dataset.columns, (target,))
    x_scaler, y_scaler = fit_scalers(
        X,
        y,
        inputs=inputs,
        targets=targets,
        task=dataset.task,
        population=(dataset.X, all_y),
        dataset=dataset.name,
        columns=dataset.columns,
        target=target,
    )
    x_scaler.transform(X_test)
    y_scaler.transform(y_test)
    return Prepared(
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
        y_mean=float(y_scaler.shift),
        y_std=float(y_scaler.scale),
        task=dataset.task,
        classes=len(dataset.classes),
        held_out=_disjoint(train_idx, test_idx, len(all_y)),
        scaled_by_all_rows=not (x_scaler.train_only and y_scaler.train_only),
        test_rows=test_idx,
        X_shift=np.broadcast_to(x_scaler.shift, X.shape[1:]),
        X_scale=np.broadcast_to(x_scaler.scale, X.shape[1:]),
        X_constant=np.broadcast_to(x_scaler.constant, X.shape[1:]),
    )


def _disjoint(train_idx: Int[np.ndarray, " n"], test_idx: Int[np.ndarray, " t"], rows: int) -> bool:
    """Whether no test row is a training row, by index and not by value: a data set may repeat a row."""
    in_training = np.zeros(rows, bool)
    in_training[train_idx] = True
    return not in_training[test_idx].any()


def _target(dataset: Dataset, output: int | None) -> tuple[Float[np.ndarray, " N"], str]:
    """The column of the chosen output, and its name."""
    count = len(dataset.outputs)
    if count == 0 and output is None:
        return dataset.y, dataset.target
    if count == 0:
        raise ConfigError(f"output={output}: {dataset.name} has one output only; leave `output` out")
    if output is None or not 0 <= output < count:
        choice = "no output is chosen" if output is None else f"output={output}"
        hint = f"; its card must say `outputs: {count}`" if output is None else ""
        names = ", ".join(dataset.outputs)
        raise ConfigError(f"{choice}: {dataset.name} has the outputs 0 to {count - 1} ({names}){hint}")
    return dataset.y[:, output], dataset.outputs[output]
