"""An error in a user's own method or kernel is one line with its file and line; in gpbench's own it stays."""

import re

import pytest
from toys import quiet

from gpbench import cli, targets
from gpbench.config.compose import compose
from gpbench.errors import ConfigError, Stopped
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.train.faults import one_line_if_users_code
from gpbench.train.job import run_job
from gpbench.train.stop import StopRequest

MODULE = """
import jax.numpy as jnp
from gpbench.core.kernels import AmplitudeFamily, log_scalar
from gpbench.core.predictive import GaussianPredictive
from gpbench.methods import GradientMethod

class Good(GradientMethod):
    "One weight for each input."
    tasks = frozenset({"regression"})
    def init_parameters(self, data, *, key):
        return {"w": jnp.zeros(data.X.shape[1], data.X.dtype)}
    def loss(self, parameters, batch, *, key):
        return batch.sum((batch.X @ parameters["w"] - batch.y) ** 2), None
    def predict(self, state, X, *, key):
        return GaussianPredictive(X @ state.parameters["w"], jnp.ones(len(X)))

class Crash(Good):
    def loss(self, parameters, batch, *, key):
        return parameters["v"], None

class Shape(Good):
    def loss(self, parameters, batch, *, key):
        return batch.X @ parameters["w"] - batch.y, None

class Array(Good):
    def predict(self, state, X, *, key):
        return X

class Short(Good):
    def predict(self, state, X, *, key):
        return GaussianPredictive(jnp.zeros(3), jnp.ones(3))

class Kernel(AmplitudeFamily):
    log_amplitude: object
    def cross(self, X, Y):
        return jnp.ones(3)
    @classmethod
    def initial(cls, X, *, start, amplitude, **options):
        return cls(log_scalar(amplitude, X))
"""
CRASH = MODULE[: MODULE.index('parameters["v"]')].count("\n") + 1
CFG = {"method": {"_target_": "own.Method", "name": "own"}, "config_dirs": ["here"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "faulty_classes.py").write_text(MODULE)
    (folder / "method").mkdir()
    for name in ("Good", "Crash", "Shape", "Array", "Short"):
        text = f"# {name}\n_target_: faulty_classes.{name}\nname: {name.lower()}\nsteps: 2\n"
        (folder / "method" / f"{name.lower()}.yaml").write_text(text)
    targets.add_folders([folder])
    return folder


def train(folder, results, *words):
    plan = RunPlan.from_config(compose(["dataset=sinc", *words, f"run.results={results}"], [folder]))
    return run_job(plan, store=Store(results), progress=quiet(), stop=StopRequest())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["method=crash"],
            rf"method crash \(\S*faulty_classes.py, line {CRASH}\): KeyError: 'v'; `gpbench check crash --",
        ),
        (
            ["method=shape"],
            r"method shape \(\S*faulty_classes.py\): TypeError: Gradient only defined for scalar-output",
        ),
        (["method=array"], "method array: predict returns an array: return a gpbench.core.predictive.Predictive"),
        (["method=short"], r"method short: predict returns mean of shape \(3,\) for 20 rows: return one for each"),
        (
            ["method=gpr", "method.kernel={_target_: faulty_classes.Kernel}"],
            r"method gpr with faulty_classes.Kernel \(\S*faulty_classes.py\): ValueError: .* with the same sett",
        ),
    ],
)
def test_a_users_class_that_fails_is_one_line(words, line, folder, tmp_path):
    with pytest.raises(ConfigError, match=line) as caught:
        train(folder, tmp_path, *words)
    assert "\n" not in str(caught.value)


def test_a_users_class_without_a_fault_is_recorded(folder, tmp_path):
    assert train(folder, tmp_path, "method=good")[0].status == "done"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError, Stopped])
def test_what_is_no_fault_of_the_class_passes(error):
    with pytest.raises(error) as caught, one_line_if_users_code(CFG):
        raise error("as it was")
    assert str(caught.value) == "as it was"


def test_an_error_of_our_own_classes_stays_what_it_is_with_an_optimiser_of_optax_too():
    method = {"_target_": "gpbench.methods.vi.svi.SVI", "optimiser": {"_target_": "optax.adam"}}
    cfg = {"method": method, "config_dirs": []}
    with pytest.raises(KeyError), one_line_if_users_code(cfg):
        raise KeyError("a bug")


def test_an_author_can_have_the_traceback(monkeypatch, capsys):
    monkeypatch.setenv("GPBENCH_TRACEBACK", "1")
    assert cli.main(["rn"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback") and re.search(r"\ngpbench: no verb 'rn'.*\n$", err)
