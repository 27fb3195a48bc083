"""Methods of other packages, and custom kernels and likelihoods, which are named like built-in ones."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpbench import plugins, registry
from gpbench.core.kernels import kernel_spec
from gpbench.core.likelihoods import likelihood_spec
from gpbench.errors import ConfigError

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
    f"{INFO}/entry_points.txt": "[gpbench.methods]\nmedian = median_method\nlost = no_such_package\n\n"
    "[gpbench.loggers]\nlost = no_such_package:Tracker\n",
}
"""A folder of installed packages; two of its three entry points lead nowhere."""


@pytest.fixture
def gpbench(tmp_path, monkeypatch, new_file):
    """Runs the command with that folder on the path; its last stderr is `gpbench.said`."""
    for name, text in FILES.items():
        new_file(tmp_path / "site" / name, text)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path / 'site'}")
    for name in ("results", "store"):
        monkeypatch.setenv(f"GPBENCH_{name.upper()}", str(tmp_path / name))

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
    printed = json.loads(gpbench("run", "--json", "-v", "dataset=sinc", "method=median"))
    assert all(f"gpbench: {what} " in gpbench.said for what in ("read", "made sinc of", "compiled", "recording"))
    assert printed["records"][0]["method"] == "median" and printed["records"][0]["status"] == "done"
    gpbench("run", "-m", "dataset=sinc", "method=median", "seed=1,2", "run.jobs=2", "run.log=lost")
    line = "run.log=lost: ModuleNotFoundError: No module named 'no_such_package'; training goes on without it"
    assert gpbench.said.count(line) == 1


def test_the_options_and_tasks_of_the_table_are_those_of_the_class():
    for kind, table in registry.KINDS.items():
        for name, entry in table.items():
            cls = registry.load(kind, name)
            assert dict(entry.options) == registry.options_of(cls), name
            assert set(entry.tasks) == set(getattr(cls, "tasks", ())), name
            assert kind == "likelihood" or cls.family == name


def test_files_and_entry_points_name_kernels_and_likelihoods(tmp_path, monkeypatch, new_file):
    new_file(tmp_path / "kernel" / "mine.yaml", "_target_: mine.Kernel\nperiod: 2.0\n")
    own = {"_target_": "mine.Kernel", "period": 2.0}
    assert registry.expand("kernel", "mine", [tmp_path]) == own
    assert registry.expand("kernel", {"mine": {"period": 3.0}}, [tmp_path]) == {**own, "period": 3.0}
    assert registry.expand("kernel", {"sum": ["mine", "linear"]}, [tmp_path]) == {"sum": [own, "linear"]}
    assert registry.expand("kernel", "linear", [tmp_path]) == "linear"
    (tmp_path / "kernel" / "linear.yaml").write_text("_target_: mine.Kernel\n")
    with pytest.raises(ConfigError, match="the name linear is built in"):
        registry.expand("kernel", "linear", [tmp_path])
    (tmp_path / "kernel" / "mine.yaml").write_text("period: 2.0\n")
    with pytest.raises(ConfigError, match="must be a mapping with a line `_target_"):
        registry.expand("kernel", "mine", [tmp_path])
    points = {"gpbench.likelihoods": [importlib.metadata.EntryPoint("mine", "mine:Likelihood", "gpbench.likelihoods")]}
    monkeypatch.setattr(plugins, "points", lambda group: points.get(group, []))
    assert registry.expand("likelihood", "mine") == {"_target_": "mine.Likelihood"}
    assert registry.expand("kernel", "mine") == "mine"


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (kernel_spec, {"_target_": "Kernel"}, "write MODULE.NAME"),
        (kernel_spec, {"_target_": "nowhere.Kernel"}, "cannot import 'nowhere.Kernel'"),
        (kernel_spec, {"_target_": "math.pi"}, "math.pi may not be used: a target is of gpbench"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Kernel"}, "must be a subclass of gpbench.core.kernels.Family"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Family"}, "lacks cross, diag, initial"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Matern52", "isotropic": 1}, "isotropic=1: must be true or"),
        (likelihood_spec, {"_target_": "gpbench.core.likelihoods.Probit", "node": 1}, "has no option 'node'"),
        (likelihood_spec, {"_target_": "optax.adam"}, "must be a subclass of gpbench.core.likelihoods.Likelihood"),
    ],
)
def test_a_wrong_class_of_ones_own_is_one_line(parse, value, message):
    with pytest.raises(ConfigError, match=message):
        parse(value)
