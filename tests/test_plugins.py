"""Methods of other packages: a real one, installed into a folder on Python's path."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MODULE = '''
"""The median."""
import jax.numpy as jnp
from gpbench.core.predictive import GaussianPredictive
from gpbench.methods.base import Info, Method


class Median(Method):
    """The median of the training targets, with variance one."""

    tasks = frozenset({"regression"})

    def init(self, data, *, key):
        return jnp.zeros((), data.X.dtype)

    def step(self, state, batch, *, key):
        return jnp.median(batch.y), Info(-jnp.abs(batch.y).mean())

    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.full(len(X), state), jnp.ones(len(X), X.dtype))
'''
YAML = "# The median of the targets\n# cite: Laplace (1774)\n_target_: median_method.Median\nname: median\n"
BIB = "@misc{laplace1774,\n  title = {On the probability of causes},\n  year = {1774}\n}\n"
INFO = "gpbench_median-1.0.dist-info"
WHEEL = {
    "median_method/__init__.py": MODULE,
    "median_method/method/median.yaml": YAML,
    "median_method/references.bib": BIB,
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: gpbench-median\nVersion: 1.0\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[gpbench.methods]\nmedian = median_method\n",
    f"{INFO}/RECORD": "",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip installed the package into."""
    wheel = tmp_path_factory.mktemp("wheel") / "gpbench_median-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in WHEEL.items():
            file.writestr(name, text)
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel]
    subprocess.run(pip, check=True)
    return site


@pytest.fixture
def gpbench(installed, tmp_path, monkeypatch):
    """Runs the command with that folder on the path."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{installed}")
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "results"))

    def run(*words):
        done = subprocess.run([sys.executable, "-m", "gpbench", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_an_installed_packages_method_is_listed_and_cited(gpbench):
    listed = {item["name"]: item["description"] for item in json.loads(gpbench("ls", "methods", "--json"))}
    assert listed["median"] == "The median of the targets" and "sep" in listed
    assert gpbench("cite", "median") == BIB


def test_an_installed_packages_method_runs(gpbench):
    printed = json.loads(gpbench("run", "--json", "dataset=sinc", "method=median"))
    assert printed["records"][0]["method"] == "median" and printed["records"][0]["status"] == "done"


def test_an_entry_point_that_leads_nowhere_is_named_and_stops_nothing(tmp_path, monkeypatch):
    info = tmp_path / "lost-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gpbench.methods]\nlost = no_such_package\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    done = subprocess.run([sys.executable, "-m", "gpbench", "ls", "methods"], capture_output=True, text=True)
    assert done.returncode == 0 and "sep" in done.stdout
    assert done.stderr.count("\n") == 1 and "no_such_package is no package" in done.stderr
