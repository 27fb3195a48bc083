"""What is wrong with a file of predictions is one line, and nothing is recorded."""

import numpy as np
import pandas as pd
import pytest
from submitted import bring, classification, data, records, regression

from gpbench.cli import main


def with_values(table, line, /, **values):
    """The table with other values in one line."""
    table = table.copy()
    for name, value in values.items():
        table[name] = table[name].astype(object if isinstance(value, str) else float)
        table.loc[table.index[line], name] = value
    return table


FAULTS = {
    "a row twice": (lambda t: with_values(t, 2, row=t["row"][0]), "row {first} is there twice"),
    "a missing row": (lambda t: t.drop(index=2), "1 of 20 test rows is missing: row {third}"),
    "missing rows": (lambda t: t.drop(index=[2, 5]), "2 of 20 test rows are missing: the first is row"),
    "a tiny variance": (lambda t: with_values(t, 2, variance=1e-300), "row {third} has a variance below"),
    "a training row": (lambda t: with_values(t, 2, row=data("sinc")[1][0]), "row {training} is a training row"),
    "no such row": (lambda t: with_values(t, 2, row=200), "row 200 does not exist: sinc has rows 0 to 199"),
    "a variance of 0": (lambda t: with_values(t, 2, variance=0.0), "row {third} has a variance that is not positive"),
    "a mean of NaN": (lambda t: with_values(t, 2, mean=np.nan), "row {third} has a value of mean that is not finite"),
    "an infinite mean": (
        lambda t: with_values(t, 2, mean=np.inf),
        "row {third} has a value of mean that is not finite",
    ),
    "no variance": (lambda t: t.drop(columns="variance"), "no column variance; a regression data set needs mean"),
    "no such split": (lambda t: t.assign(split=20), "sinc split 20: split=20: sinc has splits 0 to 19\n"),
    "an output": (lambda t: t.assign(output=1), "sinc has one output only"),
    "seconds that differ": (
        lambda t: t.assign(seconds=np.arange(20.0)),
        "has another value of seconds than the first row",
    ),
    "a program twice": (lambda t: t.assign(versions="a 1, a 2"), "versions 'a 1, a 2' has a program twice"),
    "versions without numbers": (lambda t: t.assign(versions="theirs"), "versions 'theirs': write them as in"),
    "seconds that are no number": (
        lambda t: t.assign(seconds=pd.Timedelta(2, "s")),
        "seconds that are not a number from 0",
    ),
    "negative seconds": (lambda t: t.assign(seconds=-1.0), "row {first} has seconds that are not a number from 0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_regression_is_one_line_with_file_data_set_split_and_row(tmp_path, capsys, fault):
    spoil, line = FAULTS[fault]
    table = regression()
    rows = {"first": table["row"][0], "third": table["row"][2], "training": data("sinc")[1][0]}
    assert bring(tmp_path, spoil(table)) in (2, 3)
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and line.format(**rows) in error
    split = 20 if fault == "no such split" else 0
    assert f"theirs.parquet: sinc split {split}" in error
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"prob_0": 0.3, "prob_1": 0.3}, "has probabilities that do not sum to one"),
        ({"prob_0": -0.5, "prob_1": 1.5}, "has a negative probability"),
        ({"prob_0": np.nan}, "has a value of prob_0 that is not finite"),
        ({"prob_0": 1.0, "prob_1": 0.0}, "has probability 0 for its target"),
    ],
)
def test_a_fault_of_classification_is_one_line_with_file_data_set_split_and_row(tmp_path, capsys, values, line):
    table = classification()
    positive = int(np.argmax(data("moons")[0].y[table["row"]] > 0))
    assert bring(tmp_path, with_values(table, positive, **values)) == 3
    error = capsys.readouterr().err
    assert f"theirs.parquet: moons split 0: row {table['row'][positive]} {line}" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda t: t.assign(dataset="snic"), "unknown data set 'snic': did you mean sinc"),
        (lambda t: t.assign(method="sep"), "method 'sep' is one of gpbench's"),
        (lambda t: t.assign(method="SEP"), "method 'SEP' is one of gpbench's"),
        (lambda t: t.assign(method="a,b"), "method 'a,b': a name has letters"),
        (lambda t: t.assign(method="-a"), "method '-a': a name has letters"),
        (lambda t: t.assign(method=".a"), "method '.a': a name has letters"),
        (lambda t: t.assign(method="a/b"), "method 'a/b': a name has letters"),
        (lambda t: t.rename(columns={"mean": "maen"}), "unknown column 'maen'; did you mean mean?"),
        (lambda t: t.drop(columns="row"), "no column 'row'"),
        (lambda t: t.assign(row=t["row"] + 0.5), "line 1: row is not a whole number"),
        (lambda t: with_values(t, 2, row=1e300), "line 3: row is not a whole number up to 1e+15"),
        (lambda t: t.assign(method=""), "line 1: no method"),
        (lambda t: t.assign(mean="much"), "line 1: column mean has a value that is not a number"),
        (lambda t: t.iloc[:0], "no rows"),
    ],
)
def test_a_file_that_is_no_such_table_is_one_line(tmp_path, capsys, change, line):
    assert bring(tmp_path, change(regression())) in (2, 3)
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "theirs.parquet" in error and line in error


@pytest.mark.parametrize(("content", "line"), [(None, "no such file"), (b"PK", "neither a Parquet file nor a CSV")])
def test_no_file_and_another_kind_of_file_are_one_line(tmp_path, capsys, content, line):
    file = tmp_path / "theirs.parquet"
    if content:
        file.write_bytes(content)
    assert main(["import", str(file), "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and line in error


def test_an_empty_file_a_folder_and_a_device_are_one_line(tmp_path, capsys):
    (tmp_path / "empty.csv").write_text("")
    assert main(["import", str(tmp_path / "empty.csv"), "--results", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"gpbench: {tmp_path}/empty.csv: the file is empty\n"
    assert main(["import", str(tmp_path), "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"gpbench: {tmp_path}: is a folder\n"
    assert main(["import", "/dev/null", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "gpbench: /dev/null: not a regular file: write the predictions to one\n"


@pytest.mark.parametrize(("column", "value"), [("mean", "much"), ("row", "a"), ("method", "")])
def test_the_line_of_a_csv_file_is_that_of_an_editor(tmp_path, capsys, column, value):
    file, table = tmp_path / "theirs.csv", regression().astype({column: object})
    table.loc[2, column] = value
    table.to_csv(file, index=False)
    assert file.read_text().splitlines()[3].count(value)
    assert main(["import", str(file), "--results", str(tmp_path)]) == 3
    assert f"theirs.csv: line 4: {'no ' if column == 'method' else ''}" in capsys.readouterr().err


def test_a_small_variance_that_can_be_scored_is(tmp_path):
    scale = data("sinc")[0].y.var()
    assert bring(tmp_path, regression(variance=1e-29 * scale)) == 0
    [record] = records(tmp_path)
    assert np.isfinite(record.metrics["test_ll"])


def test_one_fault_in_one_split_records_none(tmp_path):
    table = pd.concat([regression(0), with_values(regression(1), 2, variance=-1.0)])
    assert bring(tmp_path, table) == 3
    assert records(tmp_path) == []
