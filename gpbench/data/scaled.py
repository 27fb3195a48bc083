"""A split of a data set, scaled and ready to train on."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gpbench.data.conversion import check_finite
from gpbench.data.dataset import Dataset, brief
from gpbench.data.encoding import Filler, fit_filler
from gpbench.data.mapped import MappedRows, blocks, gather
from gpbench.data.scaling import Scaler, fit_in_blocks, fit_scalers
from gpbench.errors import ConfigError, require


@dataclass(frozen=True, kw_only=True)
class ScaledSplit:
    """The training and test rows of one split as a method sees them, and how to undo the scaling; all is float64."""

    X: Float[np.ndarray, "n D"]  # inputs of the training rows, scaled; with `on_disk`, of the first of them
    y: Float[np.ndarray, " n"]  # scaled for regression, counts as they are, -1/+1 for two classes, 0 to C-1 for several
    X_test: Float[np.ndarray, "t D"]
    y_test: Float[np.ndarray, " t"]
    x_scaler: Scaler
    y_scaler: Scaler = field(repr=False)  # its `trained` makes those on which methods train of scaled targets
    y_mean: float  # original targets are `y * y_std + y_mean`; 0 and 1 for classification
    y_std: float
    task: str  # "regression", "count", "binary" or "multiclass"
    classes: int  # their number; 0 for regression, 1 for counts
    columns: tuple[str, ...]  # names of the inputs, () where the data set has none
    target: str
    labels: tuple[str, ...]  # names of the classes in the order of their codes; () for regression
    train_rows: Int[np.ndarray, " N"]  # numbers in the data set of all training rows
    test_rows: Int[np.ndarray, " t"]
    held_out: bool  # no test row is a training row
    scaled_by_all_rows: bool  # a scaler was fitted to other rows than the training rows
    unseen: int = 0  # test rows whose value in a constant column is not that of the training rows
    filler: Filler | None = None  # for missing cells and for levels that no training row has
    on_disk: MappedRows | None = None  # reads training rows that are not in memory
    __repr__ = brief

    def scale_inputs(self, X: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
        """Inputs (T, D) in original units, scaled as the method takes them."""
        X = self.filler(X) if self.filler else X.copy()
        self.x_scaler.transform(X)
        return X

    def original_inputs(self, X: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
        """Scaled inputs (T, D) in original units; a constant column has its value among the training rows."""
        return self.x_scaler.inverse(X)

    def original_targets(self, y: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """Scaled targets or predictive means (T,) in original units; multiply a variance by `y_std**2`."""
        return y * self.y_std + self.y_mean

    @property
    def X_shift(self) -> Float[np.ndarray, " D"]:
        """The shift of each input: original inputs, but for an exposure, are `X * X_scale + X_shift`."""
        return self.x_scaler.shift

    @property
    def X_scale(self) -> Float[np.ndarray, " D"]:
        """The size of one unit of each scaled input, in original units."""
        return self.x_scaler.scale

    @property
    def exposure(self) -> bool:
        """Whether the last input is the logarithm of an exposure."""
        return self.x_scaler.exposure

    @property
    def y_variance(self) -> float:
        """The variance of the scaled targets of all training rows."""
        return self.on_disk.y_variance if self.on_disk else float(np.var(self.y))

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
    most: int | None = None,
) -> ScaledSplit:
    """The rows of one split, inputs and regression targets scaled."""
    rows_are = f"{len(train_idx)} training, {len(test_idx)} test rows"
    require(len(train_idx) and len(test_idx), f"{dataset.name}: an empty split ({rows_are})")
    all_y, target = _target(dataset, output)
    facts: dict[str, Any] = {"dataset": dataset.name, "columns": dataset.columns, "target": target}
    facts |= {"inputs": inputs, "targets": targets, "task": dataset.task}
    on_disk, row_numbers = None, train_idx
    if most is not None and dataset.file:
        scalers, y_variance = fit_in_blocks(partial(blocks, dataset.X, all_y, train_idx), **facts)
        on_disk = MappedRows(dataset.X, all_y, train_idx, scalers, y_variance, dataset.file)
        row_numbers = train_idx[:most]
    # fancy indices copy: the data set stays as it is
    read = gather if on_disk else lambda X, y, rows: (np.asarray(X[rows], np.float64), np.asarray(y[rows], np.float64))
    (X, y), (X_test, y_test) = (read(dataset.X, all_y, rows) for rows in (row_numbers, test_idx))
    if dataset.file:
        dataset.file.check()
    population, absent = dataset.X, 0
    if filler := fit_filler(dataset, X):
        absent = filler.count_absent(X_test)
        X, X_test, population = map(filler, (X, X_test, population))
    check_finite(dataset.name, X, y, dataset.columns, (target,), row_numbers)
    check_finite(dataset.name, X_test, y_test, dataset.columns, (target,), test_idx)
    if on_disk:
        x_scaler, y_scaler = on_disk.scalers
        x_scaler.transform(X)
        y_scaler.transform(y)
    else:
        x_scaler, y_scaler = fit_scalers(X, y, population=(population, all_y), exposure=dataset.exposure, **facts)
    shift, constant = x_scaler.shift, np.flatnonzero(x_scaler.constant)
    is_usual = np.isclose(X_test[:, constant], shift[constant], rtol=1e-9, atol=0.0)
    x_scaler.transform(X_test)
    if y_scaler.warp:
        y_scaler.warp.check(y_test, f"{dataset.name}: column {target!r}")
    y_scaler.transform(y_test)
    return ScaledSplit(
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
        y_mean=float(y_scaler.shift),
        y_std=float(y_scaler.scale),
        task=dataset.task,
        classes=1 if dataset.task == "count" else len(dataset.classes),
        columns=dataset.columns,
        target=target,
        labels=dataset.classes,
        train_rows=train_idx,
        held_out=not np.isin(test_idx, train_idx).any(),  # by index, not by value: a data set may repeat a row
        scaled_by_all_rows=not (x_scaler.train_only and y_scaler.train_only),
        test_rows=test_idx,
        unseen=absent + int((~is_usual).any(axis=1).sum()),
        filler=filler,
        on_disk=on_disk,
        x_scaler=x_scaler,
        y_scaler=y_scaler,
    )


def _target(dataset: Dataset, output: int | None) -> tuple[Float[np.ndarray, " N"], str]:
    if not dataset.outputs:
        require(output is None, f"output={output}: {dataset.name} has one output only; leave `output` out", ConfigError)
        return dataset.y, dataset.target
    last = len(dataset.outputs) - 1
    known = f"{dataset.name} has the outputs 0 to {last} ({', '.join(dataset.outputs)})"
    if output is None:
        raise ConfigError(f"no output is chosen: {known}; its card must say `outputs: {last + 1}`")
    require(0 <= output <= last, f"output={output}: {known}", ConfigError)
    return dataset.y[:, output], dataset.outputs[output]
