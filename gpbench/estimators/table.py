"""Inputs of the estimators that are no plain numbers: categories and missing cells, as cards of data sets have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench.config.cards import CENTRES
from gpbench.data import encoding
from gpbench.data.cells import DECIMAL_POINT
from gpbench.data.conversion import check_finite
from gpbench.data.dataset import Dataset
from gpbench.data.faults import SpellingError
from gpbench.data.new_rows import new_inputs, rows_of_frame
from gpbench.data.tables import columns_of
from gpbench.data_registry import ENCODINGS
from gpbench.errors import ConfigError, DataError, require, require_known

_MEND = "impute='mean' (or 'median') fills missing ones; else leave these rows out"


@dataclass(frozen=True)
class Table:
    """How inputs become numbers: their names, the levels of encoded columns, and what stands for missing cells."""

    card: Mapping[str, Any]
    dataset: Dataset
    filler: encoding.Filler | None

    def inputs(self, X: Any) -> Float[np.ndarray, "T D"]:
        """Rows as numbers; columns of a DataFrame are taken by name.  Raises DataError for rows that do not fit."""
        if self.dataset.levels and not hasattr(X, "columns"):
            names = encoding.columns_of_table(self.dataset.columns, self.dataset.levels)
            raise DataError(f"X is an array: give a DataFrame with the columns {', '.join(dict.fromkeys(names))}")
        rows = new_inputs(X if hasattr(X, "columns") else np.asarray(X), self.card, self.dataset)
        return self.filler(rows) if self.filler else rows


def fit_table(
    X: Any, name: str, encode: Mapping[str, Any] | None, impute: str | Mapping[str, str] | None
) -> tuple[Table, Float[np.ndarray, "N D"]]:
    """The names, levels and fillers of training rows, and these as numbers; `encode` and `impute` are as in a card."""
    ENCODINGS.check("encode", encode)
    CENTRES.check("impute", impute)
    specs = {str(column): spec for column, spec in (encode or {}).items()}
    if hasattr(X, "columns"):
        specs |= {column: {encoding.ORDINAL: levels} for column, levels in _orders(X, specs).items()}
        numbers, names, levels = _numbers(X, specs)
    else:
        fault = "encode names columns, and X is an array without names: give a pandas DataFrame"
        require(not specs, fault, ConfigError)
        numbers, levels = np.asarray(X, np.float64), {}
        names = tuple(f"x{i + 1}" for i in range(numbers.shape[1]))
    filled, indicators = encoding.filling_rules(name, impute, names, levels, numbers)
    present = np.where(np.isnan(numbers) & [column in filled for column in names], 0.0, numbers)
    sources = encoding.columns_of_table(names, levels)
    check_finite(name, present, np.zeros(len(present)), sources, rows=np.arange(len(present)), mend=_MEND)
    nothing = np.zeros((0, len(names) + len(indicators)))
    data = (name, "regression", nothing, np.zeros(0), names + tuple(indicators), (), "")
    dataset = Dataset(*data, levels=levels, impute=filled, indicators=indicators)
    card = {"sources": [{"encode": specs}]}
    rows = new_inputs(X if hasattr(X, "columns") else numbers, card, dataset)
    filler = encoding.fit_filler(dataset, rows)
    return Table(card, dataset, filler), filler(rows) if filler else rows


def _orders(X: Any, specs: Mapping[str, Any]) -> dict[str, list[str]]:
    """The levels of ordinal columns whose order pandas knows."""
    ordered = {str(column): X[column].dtype for column in X.columns if specs.get(str(column)) == encoding.ORDINAL}
    return {name: [*map(str, kind.categories)] for name, kind in ordered.items() if getattr(kind, "ordered", False)}


def _numbers(
    X: Any, specs: Mapping[str, Any]
) -> tuple[Float[np.ndarray, "N C"], tuple[str, ...], Mapping[str, tuple[str, ...]]]:
    """The inputs of a DataFrame with missing cells, their names, and the levels of its encoded columns."""
    header = [str(column) for column in X.columns]
    for name in specs:
        require_known(name, header, f"encode: no column {name!r} in X", DataError)
    columns = dict(zip(header, columns_of(rows_of_frame(X), len(header)), strict=True))
    try:
        inputs, names, levels = encoding.inputs_of(columns, DECIMAL_POINT, specs, {})
    except SpellingError as error:
        raise DataError(f"{error.fact}: leave the column out, or name it in encode") from None
    return np.stack(inputs, axis=1), tuple(names), levels
