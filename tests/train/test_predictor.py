"""`run.save` and `gpbench predict`: a saved run predicts its own test rows as it was scored on them."""

import numpy as np
import pandas
import pytest

from gpbench.cli import main
from gpbench.data import load as load_data
from gpbench.data.cards import read
from gpbench.records.store import Store

FAST = {"sinc": ["method=svi", "method.inducing=5", "method.steps=3"], "wdbc": ["method=logistic"]}


def run(results, *words) -> dict:
    assert main(["run", f"run.results={results}", "run.save=true", "run.predictions=true", *words]) == 0
    return Store(results).last()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of results with a saved run."""
    results = tmp_path_factory.mktemp("saved")
    run(results, "dataset=sinc", "method=linear")
    return results


@pytest.mark.parametrize("name", FAST)
def test_the_test_rows_are_predicted_as_they_were_scored(tmp_path, name, capsys, printed):
    record = run(tmp_path, f"dataset={name}", "split=2", *FAST[name])
    kept, data = Store(tmp_path).predictions(record.id), load_data(read(name))
    frame = pandas.DataFrame(data.X[kept["row"]], columns=data.columns or None)
    by_name = data.columns and frame[list(data.columns)[::-1]].assign(more="ignored")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    capsys.readouterr()
    words = ["--data", str(tmp_path / "rows.csv"), "--results", str(tmp_path)]
    assert main(["predict", record.id[:8], *words, "--out", str(tmp_path / "out.csv")]) == 0
    ours = pandas.read_csv(tmp_path / "out.csv")
    if data.task == "regression":
        np.testing.assert_allclose(ours["mean"], kept["mean"], rtol=1e-9)
        np.testing.assert_allclose(ours["variance"], kept["variance"], rtol=1e-6)
    else:
        assert list(ours) == [f"probability of {c}" for c in data.classes]
        np.testing.assert_allclose(np.log(ours.iloc[:, 1]), kept["log_prob_1"], rtol=1e-5, atol=1e-6)
    if data.columns:
        by_name.to_csv(tmp_path / "rows.csv", index=False)
        assert printed("predict", "--last", *words) == (tmp_path / "out.csv").read_text()


def test_an_output_that_cannot_be_written_is_one_line_with_the_reason(saved, tmp_path, refused):
    (tmp_path / "rows.csv").write_text("1\n")
    rows = tmp_path / "rows.csv"
    words = ["predict", "--last", "--results", saved, "--data", rows, "--no-header", "--out"]
    assert "rows.csv is a file, and a folder is needed there" in refused(*words, rows / "p.csv", code=5)
    line = "p.pdf: predictions are csv: choose a file that ends in .csv"
    assert line in refused(*words, tmp_path / "p.pdf") and "that is the table of --data" in refused(*words, rows)
    assert rows.read_text() == "1\n"


@pytest.mark.parametrize(
    "text, says",
    [
        ("x\n1\n", "no column 'x1'; the table has x"),
        ("1,2\n3,4\n", "--no-header"),
        ("x1\n1\n\n2\nnan\n", "1 missing or infinite"),
    ],
)
def test_what_cannot_be_predicted_is_one_line(saved, tmp_path, text, says, refused):
    (tmp_path / "rows.csv").write_text(text)
    error = refused("predict", "--last", "--results", saved, "--data", tmp_path / "rows.csv", code=3).strip()
    assert says in error and "\n" not in error and "rows.csv" in error


def test_a_run_without_its_state_says_how_to_get_it_and_gets_it(tmp_path, capsys):
    words = [f"run.results={tmp_path}", "dataset=sinc", "method=linear"]
    assert main(["run", *words]) == 0
    (tmp_path / "rows.csv").write_text("x1\n0.5\n")
    predict = ["predict", "--last", "--results", str(tmp_path), "--data", str(tmp_path / "rows.csv")]
    assert main(predict) == 2 and "run.save=true run.again=true" in capsys.readouterr().err
    assert main(["run", *words, "run.save=true"]) == 0  # a record without a state does not count
    assert main(predict) == 0
