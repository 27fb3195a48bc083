"""Rows that a program hands over: tables of any library are taken by name, and what is no number is one line."""

import datetime
import re

import numpy as np
import pandas
import pyarrow
import pytest

from gpbench.data import tables
from gpbench.data.conversion import from_raw
from gpbench.data.new_rows import new_inputs
from gpbench.errors import DataError
from gpbench.estimators import Classifier, Regressor

polars = pytest.importorskip("polars", reason="polars is not installed")
SOURCE = {"kind": "file", "path": "mine.csv", "target": "drag", "codes": {"hull": {"steel": 0, "wood": 1}}}
CARD = {"name": "mine", "task": "regression", "sources": [SOURCE]}
CSV = b"speed,depth,hull,drag\n1,2,steel,3\n2,1,wood,5\n"
MINE = from_raw(CARD, tables.table([CSV], {"target": "drag", "codes": SOURCE["codes"]}))
COLUMNS = {"hull": ["wood", "steel"], "depth": [0.5, 2.5], "note": ["a", None], "speed": [7, 9]}
DAY = datetime.date(2024, 1, 2)


class Stream:
    """A table of a library that nobody has heard of."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


TABLES = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.table}
TABLES |= {"batch": pyarrow.RecordBatch.from_pydict, "other": lambda columns: Stream(pyarrow.table(columns))}


@pytest.mark.parametrize("kind", TABLES)
def test_a_saved_run_takes_tables_of_every_library_by_name(kind):
    assert new_inputs(TABLES[kind](COLUMNS), CARD, MINE).tolist() == [[7.0, 0.5, 1.0], [9.0, 2.5, 0.0]]
    with pytest.raises(DataError, match=r"^no column 'hull'; the table has depth, speed$"):
        new_inputs(TABLES[kind]({name: COLUMNS[name] for name in ("depth", "speed")}), CARD, MINE)


def test_records_of_numpy_have_names_masked_cells_are_missing_and_categories_of_polars_are_levels():
    rows = np.array([(1.0, 0.5, 7.0)], [("hull", float), ("depth", float), ("speed", float)])
    plain = {**CARD, "sources": [{**SOURCE, "codes": {}}]}
    assert new_inputs(rows, plain, MINE).tolist() == [[7.0, 0.5, 1.0]]
    masked = np.ma.masked_array([[7.0, 0.5, 1.0]], mask=[[False, True, False]])
    with pytest.raises(DataError, match=r"column 'depth' has 1 missing or infinite cells \(row 1\)"):
        new_inputs(masked, CARD, MINE)
    card = {**CARD, "sources": [{**SOURCE, "decimal": ",", "thousands": "."}]}
    (row,) = new_inputs(pandas.DataFrame({"speed": [123.456], "depth": [2], "hull": ["wood"]}), card, MINE)
    assert row.tolist() == [123.456, 2.0, 1.0]
    frame = X.assign(boat=["tug", "yawl", "tug"] * 4)
    categories = polars.from_pandas(frame).with_columns(polars.col("boat").cast(polars.Categorical))
    model = Regressor("linear", encode={"boat": "onehot"}).fit(categories, Y)
    plain = Regressor("linear", encode={"boat": "onehot"}).fit(frame, Y)
    np.testing.assert_array_equal(model.predict(categories.select("boat", "b", "a")), plain.predict(frame))


REFUSED = {
    "lazy": (polars.DataFrame(COLUMNS).lazy(), "X: the columns of a polars.LazyFrame cannot be read (it has no __"),
    "a null": (polars.DataFrame({**COLUMNS, "depth": [None, 1.0]}), "mine: column 'depth' has 1 missing or infinite"),
    "a text": (pyarrow.table({**COLUMNS, "depth": ["deep", "1"]}), "column 'depth', row 1: 'deep' is not a number"),
    "a date": (polars.DataFrame({**COLUMNS, "depth": [DAY, DAY]}), "column 'depth', row 1: '2024-01-02' is a date"),
    "dates in an array": (np.full((2, 3), DAY, "datetime64[D]"), "X: dates and times are no numbers: leave the column"),
    "complex numbers": (np.ones((2, 3), complex), "X is no array of numbers (T, 3): Cannot cast array data from dtype"),
}


@pytest.mark.parametrize(("rows", "line"), REFUSED.values(), ids=REFUSED)
def test_what_no_model_can_read_is_a_line(rows, line, one_line):
    with one_line(DataError, match="^" + re.escape(line)):
        new_inputs(rows, CARD, MINE)


N = 12
RNG = np.random.default_rng(0)
X = pandas.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = (X.a - 2 * X.b + 1).to_numpy()
arrow_of = lambda frame: pyarrow.Table.from_pandas(frame, preserve_index=False)
OF_X = {"polars": polars.from_pandas, "pyarrow": arrow_of, "other": lambda frame: Stream(arrow_of(frame))}
OF_Y = {"polars": lambda y: polars.Series("y", y), "pyarrow": lambda y: pyarrow.chunked_array([y])}
OF_Y |= {"array": pyarrow.array, "pandas": pandas.Series}


@pytest.mark.parametrize("kind", OF_X)
@pytest.mark.parametrize("targets", OF_Y)
def test_estimators_take_tables_and_columns_of_every_library(kind, targets):
    y, weight = OF_Y[targets](Y.tolist()), OF_Y[targets]([1.0, 2.0] * 6)
    model = Regressor("linear").fit(OF_X[kind](X), y, sample_weight=weight)
    expected = Regressor("linear").fit(X, Y, sample_weight=[1.0, 2.0] * 6)
    np.testing.assert_array_equal(model.predict(OF_X[kind](X)), expected.predict(X))
    assert model.score(OF_X[kind](X), y) == expected.score(X, Y) and list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(OF_X[kind](X[["b", "a"]]))


TARGETS = {
    "a null": ([None, *Y[1:].tolist()], r"^Input y contains (None|NaN)\. Leave these rows out$"),
    "a text": (["hot"] * N, "^y has texts that are no numbers: a Classifier takes labels, a Regressor numbers$"),
    "a date": ([DAY] * N, "^y: dates and times are no numbers: make numbers of them$"),
}


@pytest.mark.parametrize("kind", OF_Y)
@pytest.mark.parametrize(("targets", "line"), TARGETS.values(), ids=TARGETS)
def test_targets_that_are_no_numbers_are_a_line_to_fit_and_to_score(kind, targets, line):
    model = Regressor("linear").fit(X, Y)
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=line):
            call(X, OF_Y[kind](targets))


@pytest.mark.parametrize("kind", OF_Y)
def test_labels_of_every_library_are_labels_and_a_missing_one_is_a_line(kind):
    labels = ["up", "down"] * 6
    model = Classifier("constant").fit(X, OF_Y[kind](labels))
    assert model.score(X, OF_Y[kind](labels)) == 0.5 and list(model.classes_) == ["down", "up"]
    with pytest.raises(ValueError, match=r"^Input y contains (None|NaN)\. Leave these rows out$"):
        model.fit(X, OF_Y[kind]([None, *labels[1:]]))


CELLS = {
    "null": (None, r"X, column 'b': 12 of 12 cells are NaN; impute='mean'"),
    "text": ("hot", r"X, column 'b': 'hot' is no number; encode="),
    "date": (DAY, r"X, column 'b': dates and times are no numbers: leave the column out"),
    "list": ([1.0, 2.0], r"X, column 'b': '\[1\. 2\.\]' is no number"),
}


@pytest.mark.parametrize("kind", OF_X)
@pytest.mark.parametrize(("cell", "line"), CELLS.values(), ids=CELLS)
def test_cells_that_are_no_numbers_are_a_line_to_fit_and_to_predict(kind, cell, line, one_line):
    table = pyarrow.table({"a": Y, "b": pyarrow.array([cell] * N)})
    table = {"polars": polars.from_arrow, "pyarrow": lambda table: table, "other": Stream}[kind](table)
    for call in (lambda: Regressor("linear").fit(table, Y), lambda: Regressor("linear").fit(X, Y).predict(table)):
        with one_line(ValueError, match="^" + line):
            call()
