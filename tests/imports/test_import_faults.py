"""What is wrong with a file of predictions is one line, and nothing is recorded."""

import numpy as np
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
    "a tiny variance": (lambda t: with_values(t, 2, variance=1e-300), "row {third} has a variance below"),
    "a training row": (lambda t: with_values(t, 2, row=data("sinc")[1][0]), "row {training} is a training row"),
    "no such row": (lambda t: with_values(t, 2, row=200), "row 200 does not exist: sinc has rows 0 to 199"),
    "a variance of 0": (lambda t: with_values(t, 2, variance=0.0), "row {third} has a variance that is not positive"),
    "a mean of NaN": (lambda t: with_values(t, 2, mean=np.nan), "row {third} has a value of mean that is not finite"),
    "no variance": (lambda t: t.drop(columns="variance"), "no column variance; a regression data set needs mean"),
    "no such split": (lambda t: t.assign(split=20), "sinc split 20: split=20: sinc has splits 0 to 19\n"),
    "an output": (lambda t: t.assign(output=1), "sinc has one output only"),
    "seconds that differ": (lambda t: t.assign(seconds=np.arange(20.0)), "has another value of seconds than the"),
    "a program twice": (lambda t: t.assign(versions="a 1, a 2"), "versions 'a 1, a 2' has a program twice"),
    "versions without numbers": (lambda t: t.assign(versions="theirs"), "versions 'theirs': write them as in"),
    "negative seconds": (lambda t: t.assign(seconds=-1.0), "row {first} has seconds that are not a number from 0"),
}


def test_a_fault_of_regression_is_one_line_with_file_data_set_split_and_row(tmp_path, capsys):
    table = regression()
    rows = {"first": table["row"][0], "third": table["row"][2], "training": data("sinc")[1][0]}
    for fault, (spoil, line) in FAULTS.items():
        assert bring(tmp_path, spoil(table)) in (2, 3), fault
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and line.format(**rows) in error, fault
        assert f"theirs.parquet: sinc split {20 if fault == 'no such split' else 0}" in error
        assert not (tmp_path / "results").exists()


def test_a_fault_of_classification_is_one_line_with_file_data_set_split_and_row(tmp_path, capsys):
    table = classification()
    positive = int(np.argmax(data("moons")[0].y[table["row"]] > 0))
    for (first, second), line in {
        (0.3, 0.3): "has probabilities that do not sum to one",
        (-0.5, 1.5): "has a negative probability",
        (np.nan, 0.5): "has a value of prob_0 that is not finite",
        (1.0, 0.0): "has probability 0 for its target",
    }.items():
        assert bring(tmp_path, with_values(table, positive, prob_0=first, prob_1=second)) == 3
        error = capsys.readouterr().err
        assert f"theirs.parquet: moons split 0: row {table['row'][positive]} {line}" in error and error.count("\n") == 1


def test_a_file_that_is_no_such_table_or_no_file_of_predictions_is_one_line(tmp_path, capsys):
    t = regression()
    methods = ("a,b", "-a", ".a", "a/b")
    for table, line in (
        (t.assign(dataset="snic"), "unknown data set 'snic': did you mean sinc"),
        (t.assign(method="sep"), "method 'sep' is one of gpbench's"),
        (t.assign(method="SEP"), "method 'SEP' is one of gpbench's"),
        *((t.assign(method=name), f"method '{name}': a name has letters") for name in methods),
        (t.rename(columns={"mean": "maen"}), "unknown column 'maen'; did you mean mean?"),
        (t.drop(columns="row"), "no column 'row'"),
        (t.assign(row=t["row"] + 0.5), "line 1: row is not a whole number"),
        (with_values(t, 2, row=1e300), "line 3: row is not a whole number up to 1e+15"),
        (t.assign(method=""), "line 1: no method"),
        (t.assign(mean="much"), "line 1: column mean has a value that is not a number"),
        (t.iloc[:0], "no rows"),
    ):
        assert bring(tmp_path, table) in (2, 3), line
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "theirs.parquet" in error and line in error
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "other.parquet").write_bytes(b"PK")
    for file, code, line in (
        ("none.parquet", 2, "no such file"),
        ("other.parquet", 2, "neither a Parquet file nor a CSV"),
        ("empty.csv", 3, "empty.csv: the file is empty\n"),
        (".", 2, f"gpbench: {tmp_path}: is a folder\n"),
        ("/dev/null", 2, "gpbench: /dev/null: not a regular file: write the predictions to one\n"),
    ):
        assert main(["import", str(tmp_path / file), "--results", str(tmp_path)]) == code
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and line in error


def test_the_line_of_a_csv_file_is_that_of_an_editor(tmp_path, capsys):
    file = tmp_path / "theirs.csv"
    for column, value in (("mean", "much"), ("row", "a"), ("method", "")):
        table = regression().astype({column: object})
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
