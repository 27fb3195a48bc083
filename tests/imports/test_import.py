"""`gpbench import`: predictions are scored as ours are, faults are one line, and imported runs are marked."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from gpbench.cli import main
from gpbench.config.compose import compose
from gpbench.data import configured, splits
from gpbench.records.store import Store
from gpbench.report.site import views


def data(name, split=0):
    cfg = compose([f"dataset={name}"])
    dataset = configured(cfg)
    return dataset, *splits.indices(cfg["dataset"], dataset, split)


def regression(split=0, name="sinc", **columns):
    dataset, train, test = data(name, split)
    mean = 0.9 * dataset.y[test] + 0.1 * dataset.y[train].mean()
    table = {"dataset": name, "split": split, "method": "theirs", "row": test, "mean": mean, "variance": 0.05}
    return pd.DataFrame(table | columns)


def classification(split=0, **columns):
    dataset, _, test = data("moons", split)
    p = np.where(np.random.default_rng(split).random(len(test)) < 0.8, dataset.y[test] > 0, dataset.y[test] < 0)
    p = 0.1 + 0.8 * p
    table = {"dataset": "moons", "split": split, "method": "theirs", "row": test, "prob_0": 1 - p, "prob_1": p}
    return pd.DataFrame(table | columns)


def bring(folder, table, *words, name="theirs.parquet"):
    file = folder / name
    table.to_csv(file, index=False) if name.endswith(".csv") else table.to_parquet(file)
    return main(["import", str(file), "--results", str(folder / "results"), *words])


def records(folder):
    return Store(folder / "results").all()


def test_regression_is_scored_in_original_units(tmp_path):
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
    assert record.seconds == {"train": 2.5} and record.held_out is True
    assert record.versions == {"theirs": "1.0rc2", "scikit-learn": "1.9"}
    assert (record.device, record.commit, record.split, record.method) == (None, None, 0, "theirs")


def test_the_record_names_its_file_and_the_checksum_of_that(tmp_path):
    assert bring(tmp_path, regression()) == 0
    [record] = records(tmp_path)
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
    "seconds that differ": (lambda t: t.assign(seconds=np.arange(20.0)), "has other seconds than the first row"),
    "a program twice": (lambda t: t.assign(versions="a 1, a 2"), "versions 'a 1, a 2' has a program twice"),
    "versions without numbers": (lambda t: t.assign(versions="theirs"), "versions 'theirs': write them as in"),
    "seconds that are no number": (lambda t: t.assign(seconds=pd.Timedelta(2, "s")), "seconds that are no time"),
    "negative seconds": (lambda t: t.assign(seconds=-1.0), "row {first} has seconds that are no time"),
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
        (lambda t: t.assign(mean="much"), "column mean has a value that is not a number"),
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


def test_a_small_variance_that_can_be_scored_is(tmp_path):
    scale = data("sinc")[0].y.var()
    assert bring(tmp_path, regression(variance=1e-29 * scale)) == 0
    [record] = records(tmp_path)
    assert np.isfinite(record.metrics["test_ll"])


def test_one_fault_in_one_split_records_none(tmp_path):
    table = pd.concat([regression(0), with_values(regression(1), 2, variance=-1.0)])
    assert bring(tmp_path, table) == 3
    assert records(tmp_path) == []


def test_several_files_are_recorded_together_or_not_at_all(tmp_path, capsys):
    files = []
    for number, some in enumerate([(0,), (1,), (2, 3), (3,)]):
        files.append(str(tmp_path / f"{number}.parquet"))
        pd.concat([regression(split) for split in some]).to_parquet(files[-1])
    words = ["--results", str(tmp_path / "results")]
    assert main(["import", *files[:2], *words]) == 0
    assert [record.split for record in records(tmp_path)] == [0, 1]
    assert main(["import", *files[2:], *words]) == 2
    assert f"{files[3]}: theirs on sinc split 3 is in {files[2]} too" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    shutil.copy(files[2], other := tmp_path / "other" / "2.parquet")
    assert main(["import", files[2], str(other), *words]) == 2
    assert f"{other}: theirs on sinc split 2 is in {files[2]} too" in capsys.readouterr().err
    assert main(["import", files[2], files[2], *words]) == 2
    assert capsys.readouterr().err == f"gpbench: {files[2]} is named twice: leave it out once\n"
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
    variants = [
        (regression(), []),
        (regression(setting="m=10"), []),
        (regression(), ["--protocol", "hl2016"]),
        (regression(), ["--precision", "float32"]),
    ]
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


@pytest.fixture(scope="module")
def beside_ours(tmp_path_factory):
    """Imported and own runs of two data sets."""
    folder = tmp_path_factory.mktemp("beside")
    for name in ("sinc", "friedman"):
        words = [f"dataset={name}", "method=linear", "split=[0,1]", f"run.results={folder / 'results'}"]
        assert main(["run", *words, "run.progress=false"]) == 0
    assert bring(folder, pd.concat([regression(k, name) for k in (0, 1) for name in ("sinc", "friedman")])) == 0
    return folder / "results"


@pytest.mark.parametrize("verb", [["table"], ["rank"], ["compare", "theirs", "linear"]])
def test_tables_ranks_and_comparisons_mark_them(beside_ours, capsys, verb):
    assert main([*verb, "--results", str(beside_ours)]) == 0
    out = capsys.readouterr().out
    assert "imported: predictions of another program" in out and "theirs (theirs.parquet, SHA-256" in out


def test_comparisons_with_them_have_rows_and_splits(beside_ours, capsys):
    assert main(["compare", "theirs", "linear", "--metric", "test_ll", "--results", str(beside_ours)]) == 0
    assert "friedman: over 2 splits with 200 test rows A - B has the variance" in capsys.readouterr().out


def test_csv_and_json_say_which_are_imported(beside_ours, capsys):
    assert main(["table", "--results", str(beside_ours), "--format", "csv"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.endswith(",imported") and {line.rsplit(",")[-1] for line in lines if "theirs" in line} == {"true"}
    assert main(["table", "--results", str(beside_ours), "--json"]) == 0
    assert {row["method"]: row["imported"] for row in json.loads(capsys.readouterr().out)} == {
        "theirs": True,
        "linear": False,
    }


def test_the_site_has_a_badge_for_them(beside_ours):
    from gpbench.analysis.cells import group_runs

    for cell in group_runs(Store(beside_ours).all()):
        assert (("imported", "imported") in views.badges(cell)) is (cell.method == "theirs")


def test_collected_records_of_them_are_still_marked(beside_ours, tmp_path):
    assert main(["collect", str(beside_ours), "--out", str(tmp_path / "all.parquet")]) == 0
    from gpbench.records.collection import open_store

    assert open_store(tmp_path / "all.parquet").all() == Store(beside_ours).all()


def test_data_rows_exports_the_split(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["data", "rows", "sinc", "--split", "3"]) == 0
    assert "180 training and 20 test rows in sinc-3.npz" in capsys.readouterr().out
    dataset, train, test = data("sinc", 3)
    with np.load("sinc-3.npz") as file:
        for name, expected in (("X", dataset.X), ("y", dataset.y), ("train", train), ("test", test)):
            np.testing.assert_array_equal(file[name], expected)
        assert tuple(file["classes"]) == () and tuple(file["columns"]) == dataset.columns
    assert main(["data", "rows", "sinc", "--split", "20"]) == 2
    assert main(["data", "rows", "sinc", "--split", "0", "--set", "yang"]) == 2


OWN_CARD = """
name: wings
task: regression
outputs: 2
sources: [{kind: file, path: wings.csv, target: [lift, drag]}]
splits: {set: random90, sets: {random90: 3, hla: 3}}
"""


@pytest.fixture
def wings(tmp_path):
    """A user's data set of two outputs and two split sets, its arrays, and predictions for a split of either set."""
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "wings.yaml").write_text(OWN_CARD)
    rows = [f"{i},{i % 7},{i / 2},{-i * i}" for i in range(40)]
    (tmp_path / "dataset" / "wings.csv").write_text("\n".join(["speed,angle,lift,drag", *rows]) + "\n")

    def table(split_set, output):
        cfg = compose(["dataset=wings", f"dataset.splits.set={split_set}"], [tmp_path])
        dataset = configured(cfg)
        _, test = splits.indices(cfg["dataset"], dataset, 1)
        values = {"mean": dataset.y[test, output or 0] + 3.0, "variance": 9.0}
        columns = {"dataset": "wings", "split": 1, "method": "theirs", "row": test, **values}
        return pd.DataFrame(columns if output is None else {**columns, "output": output})

    return tmp_path, table


def test_each_output_is_a_run_of_its_own(wings, capsys):
    folder, table = wings
    both = pd.concat([table("random90", output) for output in (0, 1)])
    assert bring(folder, both, "--config-dir", str(folder)) == 0
    assert {(r.output, r.metrics["rmse"]) for r in records(folder)} == {("lift", 3.0), ("drag", 3.0)}
    assert len({r.cell for r in records(folder)}) == 2
    assert bring(folder, table("random90", None), "--config-dir", str(folder)) == 2
    assert "the outputs of wings are 0 (lift), 1 (drag)" in capsys.readouterr().err


def test_another_split_set_has_other_rows_and_another_id(wings):
    folder, table = wings
    own = ("--config-dir", str(folder))
    assert bring(folder, table("hla", 0), *own) == 3  # not the rows of random90
    assert bring(folder, table("hla", 0), *own, "--set", "hla") == 0
    [record] = records(folder)
    assert record.setting == "set=hla"


def test_the_default_split_set_by_name_is_the_same_run_as_without_a_name(wings):
    folder, table = wings
    for words in ([], ["--set", "random90"]):
        assert bring(folder, table("random90", 0), "--config-dir", str(folder), *words) == 0
    [record] = records(folder)
    assert record.setting == ""


def test_predictions_within_a_budget_are_on_the_leaderboard(tmp_path, capsys):
    assert bring(tmp_path, regression(seconds=15.0), "--budget", "10") == 0
    [record] = records(tmp_path)
    assert (record.budget, record.cpu_seconds, record.setting) == (20, 15.0, "budget=20")
    assert bring(tmp_path, regression(), "--budget", "10", name="other.parquet") == 2
    assert "a budget needs the column seconds, of CPU seconds" in capsys.readouterr().err
    assert bring(tmp_path, regression(seconds=15.0), "--budget", "20") == 2
    assert "no budget of 20 seconds; known are 10, 60, 600" in capsys.readouterr().err


def test_predictions_that_are_late_have_no_scores(tmp_path):
    assert bring(tmp_path, regression(seconds=22.5), "--budget", "10") == 0
    [record] = records(tmp_path)
    assert record.status == "failed" and set(record.metrics.values()) == {None}
    assert set(record.undefined.values()) == {"over time"} and "after 22.5 CPU seconds" in record.message
