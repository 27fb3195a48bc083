"""Odd columns from the table to the record: part codes, and rows that lack one of two outputs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpbench

PARTS = ["1E2", "100", "1E3", "20B"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()


def test_part_codes_train_and_predict_as_levels_of_their_own():
    rng = np.random.default_rng(0)
    part, load = np.arange(60) % 4, rng.normal(size=60).round(3)
    wear = (2 * load + np.array([0.0, 2, 7, 9])[part] + rng.normal(scale=0.3, size=60)).round(3)
    frame = pd.DataFrame({"part": np.array(PARTS)[part], "load": load, "wear": wear})
    frame.to_csv("k.csv", index=False)
    runs = gpbench.run(method="linear", dataset="k.csv", target="wear", run__save=True, results="results")
    split = gpbench.load("k", config_dir=".").split(0)
    A = np.column_stack([np.eye(4)[part], load])
    weights = np.linalg.lstsq(A[split.train_rows], wear[split.train_rows], rcond=None)[0]
    rest = (A @ weights - wear)[split.test_rows]
    assert runs.mean("rmse") == pytest.approx(np.sqrt(np.mean(rest**2)), rel=1e-3)
    run = gpbench.load_run(runs[0].id, results="results", config_dir=".")
    for rows in (frame, frame[["load", "part"]], frame.iloc[:1], frame.iloc[1:2]):
        expected = (A @ weights)[rows.index]
        np.testing.assert_allclose(run.predict(rows), expected, atol=0.01)


def test_a_run_of_an_output_has_the_rows_that_have_it_and_defaults_within_them():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)).round(3)
    lift, drag = [*map(str, x[:, 0])], [*map(str, x[:, 1])]
    lift = [cell if k % 4 == 0 else "" for k, cell in enumerate(lift)]
    pd.DataFrame({"x": x.sum(axis=1), "lift": lift, "drag": drag}).to_csv("own.csv", index=False)
    source = "[{kind: file, path: own.csv, target: [lift, drag]}]"
    card = f"name: own\ntask: regression\noutputs: 2\nincomplete: drop\nsources: {source}\n"
    Path("dataset/own.yaml").write_text(card)
    own = {"dataset": "own", "config_dir": ".", "results": "results"}
    records = [*gpbench.run(method="linear", split=[0, 1], run__together=True, **own)]
    data = gpbench.load("own", config_dir=".")
    for record in records:
        split = data.split(record.split, output=["lift", "drag"].index(record.output))
        assert (record.train_rows, record.test_rows) == (len(split.y), len(split.y_test))
        assert record.train_rows + record.test_rows == {"lift": 100, "drag": 400}[record.output]
    (run, _) = gpbench.run(method="svi", method__steps=2, **own)  # 50 % of the rows as inducing points
    assert run.train_rows < 100 and run.status == "done"
    few = gpbench.run(method="svgp", method__steps=2, **own)  # 512 inducing points
    fewest = min(len(data.split(k, output=0).y) for k in range(20))
    assert {record.setting.split(",")[0] for record in few} == {f"m={fewest}"}
