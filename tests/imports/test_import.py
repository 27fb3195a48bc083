"""`gpbench import`: predictions are scored as ours are, and faults are one line and record nothing."""

import hashlib
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from submitted import bring, classification, data, records, regression

from gpbench.cli import main
from gpbench.records.store import Store


def test_regression_is_scored_in_original_units_and_the_record_names_its_file_and_checksum(tmp_path):
    table = regression(seconds=2.5, versions="theirs 1.0rc2, scikit-learn 1.9")
    assert bring(tmp_path, table) == 0
    [record] = records(tmp_path)
    dataset, train, test = data("sinc")
    y, residual = dataset.y[test], dataset.y[test] - table["mean"].to_numpy()
    expected = {
        "rmse": np.sqrt(np.mean(residual**2)),
        "test_ll": norm.logpdf(residual, scale=np.sqrt(0.05)).mean(),
        "nmse": np.mean(residual**2) / np.var(y),
        "rmse_std": np.sqrt(np.mean(residual**2)) / dataset.y[train].std(),
        "coverage95": np.mean(np.abs(residual) <= 1.959964 * np.sqrt(0.05)),
        "width95": 2 * 1.959964 * np.sqrt(0.05),
    }
    assert {name: record.metrics[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert record.seconds == {"train": record.cpu_seconds} == {"train": 2.5} and record.held_out is True
    assert record.versions == {"theirs": "1.0rc2", "scikit-learn": "1.9"}
    assert (record.device, record.commit, record.split, record.method) == (None, None, 0, "theirs")
    checksum = hashlib.sha256((tmp_path / "theirs.parquet").read_bytes()).hexdigest()
    assert (record.imported, record.source, record.source_checksum) == (True, "theirs.parquet", checksum)
    assert Store(tmp_path / "results").config(record.id)["method"]["name"] == "theirs"


def test_order_of_rows_file_format_and_logarithms_do_not_matter(tmp_path):
    table = classification()
    logs = table.assign(log_prob_0=np.log(table["prob_0"]), log_prob_1=np.log(table["prob_1"]))
    variants = {
        "a.parquet": table,
        "b.csv": table.sample(frac=1.0, random_state=0),
        "c.parquet": logs.drop(columns=["prob_0", "prob_1"]),
        "d.parquet": table.astype({"prob_0": "float32", "prob_1": "float32", "row": "float64"}),
    }
    scores = []
    for name, variant in variants.items():
        folder = tmp_path / name[0]
        folder.mkdir()
        assert bring(folder, variant, name=name) == 0
        [record] = records(folder)
        scores.append(record.metrics)
        np.testing.assert_array_equal(Store(folder / "results").predictions(record.id)["row"], data("moons")[2])
    for other in scores[1:]:
        assert other == pytest.approx(scores[0], rel=1e-6)


def test_our_own_predictions_score_as_they_did_in_our_run(tmp_path):
    """A run of ours, sent through a file: the same metrics, to the float32 of predictions predictions."""
    words = ["dataset=friedman", "method=linear", "split=3", f"run.results={tmp_path / 'ours'}", "run.progress=false"]
    assert main(["run", *words]) == 0
    [ours] = Store(tmp_path / "ours").all()
    predictions = Store(tmp_path / "ours").predictions(ours.id)
    table = pd.DataFrame(
        {"dataset": "friedman", "split": 3, "method": "theirs"}
        | {n: predictions[n] for n in ("row", "mean", "variance")}
    )
    assert bring(tmp_path, table) == 0
    [theirs] = records(tmp_path)
    shared = theirs.metrics.keys() & ours.metrics.keys()
    assert {"rmse", "test_ll", "crps", "width95", "rmse_std", "ll_std"} <= shared
    assert {n: theirs.metrics[n] for n in shared} == pytest.approx({n: ours.metrics[n] for n in shared}, rel=1e-5)
    assert theirs.data_checksum == ours.data_checksum and theirs.id != ours.id


def test_several_files_are_recorded_together_or_not_at_all(tmp_path, refused):
    files = []
    for number, some in enumerate([(0,), (1,), (2, 3), (3,)]):
        files.append(str(tmp_path / f"{number}.parquet"))
        pd.concat([regression(split) for split in some]).to_parquet(files[-1])
    words = ["--results", str(tmp_path / "results")]
    assert main(["import", *files[:2], *words]) == 0
    assert [record.split for record in records(tmp_path)] == [0, 1]
    assert f"{files[3]}: theirs on sinc split 3 is in {files[2]} too" in refused("import", *files[2:], *words)
    (tmp_path / "other").mkdir()
    shutil.copy(files[2], other := tmp_path / "other" / "2.parquet")
    assert f"{other}: theirs on sinc split 2 is in {files[2]} too" in refused("import", files[2], other, *words)
    assert refused("import", files[2], files[2], *words) == f"gpbench: {files[2]} is named twice: leave it out once\n"
    assert len(records(tmp_path)) == 2


def test_the_same_file_twice_is_one_record_and_another_is_refused_unless_again(tmp_path, capsys):
    assert bring(tmp_path, regression()) == bring(tmp_path, regression()) == 0
    assert "1 of 1 were there already" in capsys.readouterr().out
    [first] = records(tmp_path)
    other = regression(variance=0.1)
    assert bring(tmp_path, other, name="new.parquet") == 2
    assert "theirs on sinc split 0 is recorded from another file (theirs.parquet)" in capsys.readouterr().err
    assert records(tmp_path) == [first]
    assert bring(tmp_path, other, "--again", name="new.parquet") == 0
    [second] = records(tmp_path)
    assert second.id == first.id and second.metrics != first.metrics and second.source == "new.parquet"


def test_setting_protocol_precision_and_split_set_are_part_of_the_identity(tmp_path):
    variants = [(regression(), []), (regression(setting="m=10"), [])]
    variants += [(regression(), words) for words in (["--protocol", "hl2016"], ["--precision", "float32"])]
    ids = set()
    for k, (table, words) in enumerate(variants):
        (tmp_path / str(k)).mkdir()
        assert bring(tmp_path / str(k), table, *words) == 0
        [record] = records(tmp_path / str(k))
        ids.add((record.id, record.cell))
    assert len({id for id, _ in ids}) == len({cell for _, cell in ids}) == len(variants)


def test_tasks_may_be_mixed_in_a_file(tmp_path):
    assert bring(tmp_path, pd.concat([regression(), classification()], ignore_index=True), name="both.csv") == 0
    by_dataset = {record.dataset: record.metrics for record in records(tmp_path)}
    assert "rmse" in by_dataset["sinc"] and "auc" in by_dataset["moons"] and "rmse" not in by_dataset["moons"]


def test_a_setting_and_a_method_are_texts_in_a_csv_file_too(tmp_path):
    both = pd.concat([regression(setting="0.10", method="1E2"), regression(setting="0.1", method="100")])
    assert bring(tmp_path, both, name="both.csv") == 0
    assert {(record.setting, record.method) for record in records(tmp_path)} == {("0.10", "1E2"), ("0.1", "100")}


DATASET, TRAIN, TEST = data("diabetes")
CENTRE, SPREAD = DATASET.y[TRAIN].mean(), DATASET.y[TRAIN].std()
RESIDUAL = 55.0 * np.random.default_rng(0).normal(size=len(TEST))
MEAN, STD = DATASET.y[TEST] - RESIDUAL, 55.0
SCALED = (MEAN - CENTRE) / SPREAD
CASES = {
    "right": (MEAN, STD**2, None),
    "rough, and too sure by a factor of 5": (MEAN, STD**2 / 5, None),
    "standard deviations": (MEAN, STD, "deviations"),
    "scaled variances": (MEAN, STD**2 / SPREAD**2, "scaled_variances"),
    "scaled means": (SCALED, STD**2, "scaled_means"),
    "all scaled": (SCALED, STD**2 / SPREAD**2, "scaled_variances"),
    "scaled means, standard deviations": (SCALED, STD, "deviations"),
    "the mean of the training rows": (np.full(len(TEST), CENTRE), SPREAD**2, None),
    "exact": (DATASET.y[TEST], 1.0, None),
    "far off, in any unit": (-MEAN, STD**2, None),
}
OF_UNITS = {"scaled_means", "deviations", "scaled_variances"}


@pytest.mark.parametrize(("mean", "variance", "doubt"), CASES.values(), ids=CASES)
def test_wrong_units_are_a_warning_of_a_line_and_right_ones_are_none(mean, variance, doubt, tmp_path, capsys):
    rows = {"dataset": "diabetes", "split": 0, "method": "theirs", "row": TEST, "mean": mean, "variance": variance}
    assert bring(tmp_path, pd.DataFrame(rows)) == 0
    (record,) = records(tmp_path)
    found = OF_UNITS & (record.diagnostics or {}).keys()
    assert found == ({doubt} if doubt else set()) | ({"scaled_means"} if mean is SCALED else set())
    lines = [line for line in capsys.readouterr().err.splitlines() if "with --again" in line]
    assert len(lines) == len(found) and all(line.startswith("gpbench: warning: diabetes theirs: ") for line in lines)


def test_the_doubts_of_our_own_runs_are_those_of_imported_ones_too(tmp_path, capsys):
    table = {"dataset": "diabetes", "split": 0, "method": "theirs", "row": TEST, "mean": 1e4, "variance": 1.0}
    assert bring(tmp_path, pd.DataFrame(table)) == 0
    assert records(tmp_path)[0].diagnostics["excess_rmse"] > 100
    assert "times that of method=constant, or of one standard deviation of the targets" in capsys.readouterr().err


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
    "no variance": (
        lambda t: t.drop(columns="variance"),
        "no column variance with numbers; a regression data set needs mean",
    ),
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


def test_a_file_that_is_no_such_table_or_no_file_of_predictions_is_one_line(tmp_path, capsys, refused):
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
        error = refused("import", tmp_path / file, "--results", tmp_path, code=code)
        assert error.count("\n") == 1 and line in error


def test_the_line_of_a_csv_file_is_that_of_an_editor(tmp_path, refused):
    file = tmp_path / "theirs.csv"
    for column, value in (("mean", "much"), ("row", "a"), ("method", "")):
        table = regression().astype({column: object})
        table.loc[2, column] = value
        table.to_csv(file, index=False)
        assert file.read_text().splitlines()[3].count(value)
        error = refused("import", file, "--results", tmp_path, code=3)
        assert f"theirs.csv: line 4: {'no ' if column == 'method' else ''}" in error
