"""The Python interface makes the same records and says the same as the command line."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from committed import share
from samples import sample

import gpbench
from gpbench.api.runs import Runs
from gpbench.api.words import words
from gpbench.cli import main
from gpbench.config.compose import compose
from gpbench.records.collection import open_store

ROOT = Path(__file__).resolve().parents[2]
SEP = ROOT / "results" / "sep" / "records.parquet"
LINEAR = {"method": "linear", "dataset": "sinc", "run__device": "cpu"}


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Reading the committed records costs more than most of these tests."""
    share(monkeypatch)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with two saved runs of a linear model, and one of a logistic model."""
    folder = tmp_path_factory.mktemp("results")
    gpbench.run(**LINEAR, split=[0, 1], run__save=True, results=folder)
    gpbench.run(method="logistic", dataset="wdbc", run__save=True, run__device="cpu", results=folder)
    return folder


def output(capsys, *argv) -> str:
    capsys.readouterr()
    assert main(list(map(str, argv))) in (0, 1)
    return capsys.readouterr().out.rstrip("\n")


def test_a_run_from_python_has_the_record_and_the_text_of_the_command_line(results, tmp_path, capsys):
    runs = gpbench.run(**LINEAR, split=[0, 1], results=results)
    text = output(capsys, "run", "dataset=sinc", "method=linear", "split=[0,1]", f"run.results={tmp_path}", "--json")
    records = json.loads(text.splitlines()[-1])["records"]
    assert [record.id for record in runs] == [record["id"] for record in records]
    assert [record.metrics for record in runs] == [record["metrics"] for record in records]
    words = ["run", "dataset=sinc", "method=linear", "split=[0,1]", f"run.results={results}", "run.device=cpu"]
    inputs, _, rest = output(capsys, *words).partition("\n")
    assert inputs.startswith("inputs x1") and rest == str(runs)


def test_recorded_runs_are_not_trained_again(results):
    runs = gpbench.run(**LINEAR, split=[0, 1], results=results)
    assert runs.recorded_before == 2 and len(runs) == 2 and len(runs[:1]) == 1
    assert "2 of 2 were there already" in str(runs) and "rmse" in str(runs)
    assert runs.mean("rmse") == pytest.approx(runs.frame["metrics.rmse"].mean())
    with pytest.raises(gpbench.ConfigError, match="no run has the metric 'rmsee'; did you mean"):
        runs.mean("rmsee")


def test_a_table_that_was_edited_is_other_data_and_a_results_folder_may_be_no_utf8(tmp_path, capsys):
    table, made = tmp_path / "mine.csv", []
    for noise in (0.1, 1.0):
        x, rest = np.random.default_rng(0).normal(size=(2, 60))
        pd.DataFrame({"x": x, "y": x + noise * rest}).to_csv(table, index=False)
        made += gpbench.run(**LINEAR | {"dataset": table}, target="y", results=tmp_path / "results")
    assert made[0].id != made[1].id and made[0].data_checksum != made[1].data_checksum
    assert made[0].metrics["rmse"] < 0.3 < made[1].metrics["rmse"]
    results = tmp_path / os.fsdecode(b"r\xff")
    (run,) = gpbench.run(**LINEAR, run__save=True, results=results)
    assert gpbench.load_run(run.id, results=results).predict([[0.5]]).shape == (1,)
    output(capsys, "collect", results, "--out", results / "all.parquet")
    assert [record.id for record in open_store(results / "all.parquet").all()] == [run.id]
    assert capsys.readouterr().err == ""


def test_seeds_and_outputs_are_averaged_before_splits_and_a_run_without_a_number_is_left_out():
    grid = [(split, seed) for split in (0, 1) for seed in (0, 1, 2)]
    records = [sample(f"{k}{seed}", split=k, seed=seed, metrics={"nll": k + 0.1 * seed}) for k, seed in grid]
    runs = Runs(records, "results")
    (row,) = runs.table("nll").data
    assert runs.mean("nll") == pytest.approx(row["mean"]) and runs.stderr("nll") == pytest.approx(row["stderr"])
    assert "0.6000 ± 0.5000" in str(runs) and "6, of 3 seeds" in str(runs)
    assert np.isnan(runs[:3].stderr("nll"))  # a single split
    grid = [(split, output) for split in (0, 1) for output in ("x", "y", "z")]
    records = [sample(f"{k}{o}", split=k, output=o, metrics={"rmse": k + (o == "x")}) for k, o in grid]
    runs = Runs(records, "results")
    assert runs.mean("rmse") == pytest.approx(5 / 6) and runs.stderr("rmse") == pytest.approx(0.5)
    assert "0.8333 ± 0.5000" in str(runs) and "6, of 3 outputs" in str(runs)
    assert np.isnan(runs[:3].stderr("rmse")) and "±" not in str(runs[:3])
    runs = Runs([sample(str(k), split=k, metrics={"nll": k or None}) for k in range(3)], "results")
    (row,) = runs.table("nll").data
    assert runs.mean("nll") == row["mean"] == 1.5 and "1.5000 ± 0.5000, 1 run not finite" in str(runs)
    assert np.isnan(runs[:1].mean("nll"))
    lost = sample("a", status="failed", metrics={}, seconds={})
    text = str(Runs([lost, sample("b", split=1, metrics={"nll": 0.5}, seconds={"train": 2.0})], "results"))
    assert "0.5000" in text and "train s  2.00" in text and "splits   1 of 2" in text


def test_a_multirun_is_every_combination_and_has_the_same_records_in_a_thread(results, tmp_path):
    runs = gpbench.multirun(**LINEAR, split=[0, 1], overrides=["seed=0"], results=results)
    assert [record.split for record in runs] == [0, 1]
    with pytest.raises(gpbench.ConfigError, match=r"method=\[\]: give at least one value"):
        gpbench.multirun(dataset="sinc", method=[], results=results)
    with ThreadPoolExecutor(1) as pool:  # signals are the main thread's alone
        runs = pool.submit(gpbench.multirun, **LINEAR, split=0, seed=[0, 7], results=tmp_path).result()
    assert [run.seed for run in runs] == [0, 7] and runs[0].id == gpbench.run(**LINEAR, split=0, results=tmp_path)[0].id


CASES = {
    "table sep/table1_100": lambda: gpbench.table("sep/table1_100", results=SEP),
    "table --dataset heart --metric nll,error": lambda: gpbench.table(dataset="heart", metric="nll,error", results=SEP),
    "rank --setting m=15%": lambda: gpbench.rank(setting="m=15%", results=SEP),
    "compare sep svi --dataset heart": lambda: gpbench.compare("sep", "svi", dataset=["heart"], results=SEP),
    "power sep svi --setting m=15%": lambda: gpbench.power("sep", "svi", setting="m=15%", results=SEP),
    "verify sep/c01": lambda: gpbench.verify("sep/c01", results=SEP),
}


@pytest.mark.parametrize("line", CASES)
def test_both_faces_say_the_same(line, capsys):
    table = CASES[line]()
    argv = [*line.split(), "--results", SEP]
    assert output(capsys, *argv) == str(table)
    assert output(capsys, *argv, "--format", "md") == table.to_markdown()
    assert output(capsys, *argv, "--format", "latex") == table.to_latex()
    assert output(capsys, *argv, "--format", "csv") == table.to_csv()
    data = json.loads(json.dumps(table.data))
    assert json.loads(output(capsys, *argv, "--json")) == data and len(table.frame) == len(table.sheet.rows)


def test_runs_are_one_table_with_a_row_for_each_metric(results):
    one, two = (gpbench.run(**LINEAR, split=splits, results=results) for splits in ([0, 1], [0]))
    html, text = one._repr_html_(), repr(one)
    assert html.count("<table>") == 1 and html.count(">rmse<") == html.count(">sinc linear clean<") == 1
    assert text.splitlines()[0] == "sinc  linear    clean" and text.count("\n  rmse ") == 1 and "± " in html
    both = Runs([*one, *gpbench.run(method="logistic", dataset="wdbc", run__device="cpu", results=results)], results)
    header, *rows = repr(both).splitlines()
    assert header.split("  ")[-2:] == ["sinc linear clean", "wdbc logistic clean"]
    assert len({row[:15] for row in rows}) == len(rows)
    assert f"{two.mean('rmse'):.4f}" in repr(two) and f"{one.mean('rmse'):.4f}" in repr(both)
    assert both._repr_html_().count("<table>") == 1 and Runs([], "x")._repr_html_().count("<table>") == 1


def test_a_run_is_opened_by_its_record_and_runs_predict(results):
    runs = gpbench.run(**LINEAR, split=[0, 1], run__save=True, results=results)
    mean, std = gpbench.load_run(runs[0], results=results).predict([[0.5]], return_std=True)
    np.testing.assert_array_equal(runs[:1].predict([[0.5]], return_std=True), (mean, std))
    with pytest.raises(gpbench.ConfigError, match=r"is not in .*: name its folder, as in results=runs\.results"):
        gpbench.load_run(runs[0], results=SEP)
    line = r"predict is of one run, and these are 2: choose it, as in runs\[:1\]"
    with pytest.raises(gpbench.ConfigError, match=line):
        runs.predict([[0.5]])


def test_lists_are_those_of_the_command_line(results, capsys):
    for kind in ("methods", "datasets", "protocols", "experiments"):
        assert gpbench.ls(kind).data == json.loads(output(capsys, "ls", kind, "--json"))
    methods = gpbench.ls("methods")
    assert methods.frame.set_index("name").loc["linear", "description"] in methods._repr_html_()
    runs = gpbench.ls("runs", results=results)
    assert [row["id"] for row in runs.data] == [record.id for record in runs.records] and len(runs.records) == 3
    with pytest.raises(gpbench.ConfigError, match="no list of 'method'; did you mean methods"):
        gpbench.ls("method")


def test_keywords_are_the_words_of_the_command_line_and_notebooks_show_a_picture():
    picture = gpbench.rank(method=["sep", "svi"], setting="m=15%", results=SEP).figure()._repr_png_()
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000
    assert gpbench.rank(setting="m=15%", results=SEP).has_figure
    with pytest.raises(gpbench.ConfigError, match="no picture"):
        gpbench.verify("sep/c01", results=SEP).figure()
    for keys, line in (
        ({"split": [0, 3]}, "split=[0,3]"),
        ({"method": "svi", "method__inducing": np.int64(5)}, "method=svi method.inducing=5"),
        ({"method.inducing": 0.25}, "method.inducing=0.25"),
        ({"run__results": Path("it's here"), "run__save": True}, r"run.results='it\'s here' run.save=true"),
        ({"run__time_limit": None, "split": "all"}, "run.time_limit=null split=all"),
    ):
        assert compose(words(keys)) == compose(re.split(r" (?=\w+[.=])", line))


def test_a_split_is_scaled_can_be_undone_and_is_printed_by_its_shapes():
    data = gpbench.load("sinc")
    split = data.split(3)
    np.testing.assert_allclose(split.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(split.original_inputs(split.X), data.X[split.train_rows])
    np.testing.assert_allclose(split.original_targets(split.y_test), data.y[split.test_rows])
    np.testing.assert_allclose(split.scale_inputs(data.X[split.test_rows]), split.X_test)
    assert not {*split.train_rows} & {*split.test_rows} and data.splits == 20
    assert [*data.frame.columns] == [*data.columns, split.target]
    assert "X=float64[180, 1], y=float64[180]" in repr(data.split(0)) and len(repr(data.split(0))) < 500
    assert "X=float64[200, 1]" in repr(data.rows)


def test_a_saved_run_predicts_its_test_rows_and_a_saved_classifier_names_classes(results):
    run = gpbench.load_run(gpbench.run(**LINEAR, results=results)[0].id, results=results)
    kept, data = run.test_predictions, gpbench.load("sinc")
    mean, std = run.predict(data.X[kept["row"]], return_std=True)
    np.testing.assert_allclose(mean, kept["mean"], rtol=1e-5)
    np.testing.assert_allclose(std**2, kept["variance"], rtol=1e-5)
    frame = pd.DataFrame(data.X[:3])
    np.testing.assert_allclose(run.predict_frame(frame)["mean"], run.predict(data.X[:3]))
    with pytest.raises(gpbench.DataError, match=r"X has the shape \(4,\)"):
        run.predict(data.X[:4, 0])
    with pytest.raises(gpbench.ConfigError, match="is for classes"):
        run.predict_proba(data.X[:4])
    run, data = gpbench.load_run(results=results), gpbench.load("wdbc")
    probabilities = run.predict_proba(data.frame[list(data.columns)[::-1]].head(50))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(run.predict(data.X) == data.frame[data.rows.target]) > 0.9
    with pytest.raises(gpbench.ConfigError, match="use predict_proba"):
        run.predict(data.X, return_std=True)


def test_a_run_that_was_not_saved_says_how_to_save_it(tmp_path):
    gpbench.run(**LINEAR, results=tmp_path)
    run = gpbench.load_run(results=tmp_path)
    assert run.record.dataset == "sinc" and run.config["method"]
    line = "has no saved state: train it again with run__save=True run__again="
    for predict in (run.predict, gpbench.run(**LINEAR, results=tmp_path).predict):
        with pytest.raises(gpbench.ConfigError, match=line):
            predict([[0.0]])


def test_jax_with_other_settings_trains_in_a_process_of_its_own_whose_error_is_raised_here(tmp_path):
    code = (
        "import jax, gpbench; assert not jax.config.read('jax_enable_x64'); "
        f"print(gpbench.run(method='linear', dataset='sinc', results={str(tmp_path)!r}).mean('rmse'))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "JAX_ENABLE_X64"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and float(done.stdout) > 0, done.stderr
    assert "os.fork" not in done.stderr  # JAX warns of it
    with pytest.raises(gpbench.ConfigError, match="method linear is for regression data, and wdbc is binary"):
        gpbench.run(method="linear", dataset="wdbc", run__cores=1, results=tmp_path)
