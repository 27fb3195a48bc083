"""The examples of the documentation are run as a user would, and are what the pages show."""

import contextlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import forked
import numpy as np
import pandas
import pytest
from test_commands import ROOT, blocks

import gpbench as api
from gpbench.cli import main

EXAMPLES = ROOT / "docs" / "examples"
HOW_TO = ROOT / "docs" / "how-to"


def variables(folder: Path) -> dict[str, str]:
    """Variables of the environment that put results and caches into `folder`."""
    return {f"GPBENCH_{name.upper()}": str(folder / name) for name in ("results", "store", "cache")}


def gpbench(folder: Path, *words: str) -> str:
    """What a process `gpbench WORDS` prints in `folder`, where its results and caches are too."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables(folder)}
    code, out, err = forked.run(words, folder, environment, timeout=900)
    assert code == 0, err
    return out


def call(folder: Path, *words: str) -> str:
    """As `gpbench`, in this process, which has imported JAX already."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.chdir(folder)
        for name, value in variables(folder).items():
            patch.setenv(name, value)
        assert main([*words]) == 0
    return out.getvalue()


def test_a_users_method_on_a_users_data_beats_the_linear_baseline(tmp_path):
    words = ["run", "--config-dir", str(EXAMPLES), "--json", "dataset=coffee"]
    gp, linear = (json.loads(call(tmp_path, *words, f"method={name}")) for name in ("robust_gp", "linear"))
    ours, theirs = gp["records"][0]["metrics"], linear["records"][0]["metrics"]
    assert ours["rmse"] < 0.5 * theirs["rmse"] and ours["test_ll"] > theirs["test_ll"] + 1
    rows = json.loads(call(tmp_path, "table", "--json", "--metric", "rmse"))
    assert {(row["dataset"], row["method"]) for row in rows} == {("coffee", "robust_gp"), ("coffee", "linear")}


def test_a_reader_of_ones_own_reads_a_card_that_names_it(tmp_path):
    assert "Power of a pump" in call(tmp_path, "data", "info", "pump", "--config-dir", str(EXAMPLES))
    words = ["run", "--config-dir", str(EXAMPLES), "--json", "dataset=pump", "method=linear", "split=0"]
    (record,) = json.loads(call(tmp_path, *words))["records"]
    assert record["status"] == "done" and record["metrics"]["nmse"] < 0.5


def test_the_pages_show_the_files_as_they_are():
    for page, language, files in (
        ("own_method", "python", ["robust_gp.py"]),
        ("own_method", "yaml", ["method/robust_gp.yaml"]),
        ("own_data", "python", ["logbook.py"]),
        ("import", "python", ["import_sklearn.py"]),
        *((f"own_{kind}", "python", [f"{name}.py"]) for kind, name in OWN),
        *((f"own_{kind}", "yaml", [f"{kind}/{name}.yaml"]) for kind, name in OWN),
    ):
        assert blocks(HOW_TO / f"{page}.md", language) == [(EXAMPLES / file).read_text() for file in files]
    dataset = HOW_TO / "own_data.md"
    cards = [EXAMPLES / "dataset" / f"{name}.yaml" for name in ("coffee", "pump")]
    assert {path.read_text() for path in cards} <= {*blocks(dataset, "yaml")}
    assert (EXAMPLES / "dataset" / "pump.log").read_text().splitlines()[0] in dataset.read_text()
    first_rows = "".join((EXAMPLES / "dataset" / "coffee.csv").read_text().splitlines(keepends=True)[:2])
    assert first_rows in blocks(dataset)


def test_gaussian_processes_of_scikit_learn_are_imported_as_the_page_says(tmp_path):
    names = ("sinc", "wdbc")
    for name in names:
        gpbench(tmp_path, "data", "rows", name, "--split", "0")
    script = [sys.executable, str(EXAMPLES / "import_sklearn.py"), *(f"{name}-0.npz" for name in names)]
    subprocess.run(script, cwd=tmp_path, check=True, capture_output=True, timeout=240)
    gpbench(tmp_path, "import", "predictions.parquet")
    rows = json.loads(gpbench(tmp_path, "table", "--json", "--metric", "rmse,nll"))
    (nll,) = (row["mean"] for row in rows if row["metric"] == "nll")
    (rmse,) = (row["mean"] for row in rows if row["metric"] == "rmse")
    assert nll < 0.2 and rmse < 0.3 and all(row["imported"] and row["method"] == "sklearn_gp" for row in rows)
    subprocess.run([*script[:1], EXAMPLES / "import_quantiles.py", "sinc-0.npz"], cwd=tmp_path, check=True, timeout=240)
    gpbench(tmp_path, "import", "quantiles.parquet")
    (row,) = json.loads(gpbench(tmp_path, "table", "--json", "--method", "tree_quantiles", "--metric", "crps"))
    assert row["mean"] < 0.1  # method=constant has .153


TABPFN = """
from types import SimpleNamespace
import numpy as np
from scipy.stats import norm

class TabPFNRegressor:
    def __init__(self, random_state): pass
    def fit(self, X, y): return self
    def predict(self, X, output_type):
        borders = np.linspace(-3.0, 3.0, 5001)
        cdf = norm.cdf((borders - 0.1 * np.sin(X[:, :1])) / 0.3)
        return {"logits": np.log(np.diff(cdf, axis=1) + 1e-30) + 7.0, "criterion": SimpleNamespace(borders=borders)}
"""


def test_the_output_of_tabpfn_is_imported_as_bins(tmp_path):
    """Of a stand-in, whose bins are those of Gaussians, which are imported beside them."""
    gpbench(tmp_path, "data", "rows", "sinc", "--split", "0")
    (tmp_path / "tabpfn.py").write_text(TABPFN)
    script, env = EXAMPLES / "import_tabpfn.py", os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, script, "sinc-0.npz"], cwd=tmp_path, env=env, check=True, timeout=240)
    data = np.load(tmp_path / "sinc-0.npz")
    facts = {"dataset": "sinc", "split": 0, "method": "exact", "row": data["test"], "variance": 0.09}
    exact = pandas.DataFrame({**facts, "mean": 0.1 * np.sin(data["X"][data["test"], 0])})
    exact.to_parquet(tmp_path / "exact.parquet")
    gpbench(tmp_path, "import", "tabpfn.parquet", "exact.parquet")
    rows = json.loads(gpbench(tmp_path, "table", "--json", "--metric", "test_ll,crps"))
    for metric in ("test_ll", "crps"):
        ours, theirs = (row["mean"] for row in rows if row["metric"] == metric)
        assert ours == pytest.approx(theirs, abs=0.01), metric  # on 30 rows, bins of 1 % of the range


def test_the_example_of_the_estimators_runs(tmp_path):
    code = "\n".join(blocks(HOW_TO / "estimators.md", "python"))
    names: dict = {}
    exec(code.replace("[5, 20]", "[20]"), names)  # a search over several is test_estimators.py's
    assert names["probabilities"].shape == (40, 2) and names["mean"].shape == names["std"].shape == (40,)
    assert (names["classifier"].predict(names["X"][80:]) == names["labels"][80:]).mean() > 0.8
    assert abs(names["mean"] - names["y"][80:]).mean() < 0.3 and len(names["scores"]) == 3


def test_the_example_of_the_python_interface_runs(tmp_path):
    code, here = blocks(HOW_TO / "python.md", "python")[0], f"results={str(tmp_path)!r}"
    names: dict = {}
    code = code.replace("run__save=True", f"run__save=True, method__steps=50, {here}")
    exec(code.replace("load_run(runs[0])", f"load_run(runs[0], {here})"), names)
    assert names["mean"].shape == names["std"].shape == (20,) and len(names["runs"].frame) == 2


def test_the_example_of_the_leaderboard_says_how_it_is_called_and_refuses_wrong_files(tmp_path):
    np.savez(tmp_path / "rows.npz", X=[[0.0]])
    for line in ("", "forest rows.npz", "random_forest none.npz", "random_forest rows.npz"):
        words = [sys.executable, EXAMPLES / "import_board.py", *line.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, line
        assert "usage: python import_board.py PROGRAM FILE;" in done.stderr and "random_forest" in done.stderr


def test_a_fit_that_is_ended_leaves_a_file_that_says_so(tmp_path):
    gpbench(tmp_path, "data", "rows", "moons", "--split", "0")
    code = (EXAMPLES / "import_board.py").read_text().replace("LIMIT = 1200", "LIMIT = 1")
    (tmp_path / "short.py").write_text(code.replace("values = program(", "while True:\n            program("))
    words = [sys.executable, "short.py", "random_forest", "moons-0.npz"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode < 0  # killed
    gpbench(tmp_path, "import", "random_forest-moons-0.parquet", "--results", str(tmp_path / "to"))
    [record] = (json.loads(path.read_text()) for path in (tmp_path / "to").glob("runs/*/record.json"))
    assert record["metrics"]["nll"] is None and record["undefined"]["nll"] == "over time"
    assert record["message"] == "over time"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_notebooks_print_the_words_that_they_show(path, tmp_path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    (here := tmp_path / "examples").mkdir()
    for name in ("docs", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    code_of = ["".join(cell["source"]) for cell in cells]
    code = "\nprint('<end of a cell>')\n".join(code_of)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GPBENCH_")}
    environment |= {"PYTHONPATH": str(ROOT), "GPBENCH_STORE": str(tmp_path / "store")}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, cwd=here, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    shown = ["".join(line for output in cell["outputs"] for line in output["text"]) for cell in cells]
    of = lambda text: re.findall(r"[a-z]{2,}", text.partition("what was run")[0], re.IGNORECASE)
    printed = done.stdout.split("<end of a cell>")
    assert [*map(of, printed)] == [*map(of, shown)]
    if path.stem in ("paper_table", "records_in_pandas"):  # of shipped records, with the same numbers
        same = [old.split() == new.split() for old, new in zip(shown, printed)]
        assert [
            k for k in range(len(cells)) if not same[k] and "_run" not in code_of[k] and ".run(" not in code_of[k]
        ] == []


FAMILIES = [
    ("kernel", "cosine", ("dataset=sinc", "method=gpr")),
    ("likelihood", "cauchit", ("dataset=wdbc", "method=svi")),
]
OWN = [*(family[:2] for family in FAMILIES), ("metric", "pinball")]


@pytest.mark.parametrize(("kind", "name", "words"), FAMILIES)
def test_a_family_of_ones_own_passes_the_check_and_trains(tmp_path, kind, name, words):
    assert "broken" not in call(tmp_path, "check", f"{kind}:{name}", "--config-dir", str(EXAMPLES))
    run = ["run", "--config-dir", str(EXAMPLES), "--json", *words, f"method.{kind}={name}", "method.steps=5"]
    (record,) = json.loads(call(tmp_path, *run))["records"]
    assert record["status"] == "done" and f"{kind}={name.capitalize()}" in record["setting"]


def test_a_metric_of_ones_own_passes_the_check_and_stands_in_tables_without_its_folder(tmp_path):
    folder = ("--config-dir", str(EXAMPLES))
    assert call(tmp_path, "check", "metric:pinball", *folder).count("kept") == 3
    (ours,) = json.loads(call(tmp_path, "run", *folder, "--json", "dataset=coffee", "method=linear"))["records"]
    assert ours["own_metrics"]["pinball"]["better"] == "lower" and ours["metrics"]["pinball"] > 0
    title = "pinball (pinball loss at 90 %; original units; lower is better)"
    assert title in gpbench(tmp_path, "table", "--metric", "pinball")


def test_the_examples_of_the_interface_run_one_after_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GPBENCH_SHIPPED", raising=False)
    names = "run load load_run multirun ls best rank compare power table verify leaderboard Regressor Classifier"
    space = {"gpbench": api, **{name: getattr(api, name) for name in names.split()}}
    for name in names.split():
        head = inspect.getdoc(getattr(api, name)).partition("Args:")[0]
        example = "\n".join(line[4:] for line in head.splitlines() if line.startswith("    "))
        assert example.count(name), name
        exec(example, space)
    assert space["data"].X.shape[1] == 2 and 0 < space["std"][0] < 1
