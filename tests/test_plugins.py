"""Methods of other packages: one in a folder on Python's path, as pip lays it there."""

import json
import subprocess
import sys
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
FILES = {
    "median_method/__init__.py": MODULE,
    "median_method/method/median.yaml": YAML,
    "median_method/references.bib": BIB,
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: gpbench-median\nVersion: 1.0\n",
    f"{INFO}/entry_points.txt": "[gpbench.methods]\nmedian = median_method\nlost = no_such_package\n",
}
"""A folder of installed packages; one of its two entry points leads nowhere."""


@pytest.fixture
def gpbench(tmp_path, monkeypatch):
    """Runs the command with that folder on the path; its last stderr is `gpbench.said`."""
    for name, text in FILES.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path / 'site'}")
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "results"))

    def run(*words):
        done = subprocess.run([sys.executable, "-m", "gpbench", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run.said = done.stderr
        return done.stdout

    return run


def test_an_installed_packages_method_is_listed_cited_and_run_and_one_that_leads_nowhere_is_named(gpbench):
    listed = {item["name"]: item["description"] for item in json.loads(gpbench("ls", "methods", "--json"))}
    assert listed["median"] == "The median of the targets" and "sep" in listed
    assert gpbench.said.count("\n") == 1 and "no_such_package is no package" in gpbench.said
    assert gpbench("cite", "median") == BIB
    printed = json.loads(gpbench("run", "--json", "dataset=sinc", "method=median"))
    assert printed["records"][0]["method"] == "median" and printed["records"][0]["status"] == "done"
