"""An error in a user's own method or kernel is one line with its file and line; in gpbench's own it stays."""

import re
import sys

import jax
import jax.numpy as jnp
import pytest
from toys import Walk, quiet

from gpbench import targets
from gpbench.config.compose import compose
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError, GpbenchError, Stopped
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.train.faults import one_line_if_users_code, predictions
from gpbench.train.job import run_job
from gpbench.train.stop import StopRequest

MODULE = """
import jax
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

steps = []

class Counting(Short):
    def step(self, state, batch, *, key):
        jax.debug.callback(lambda: steps.append(1))
        return super().step(state, batch, key=key)

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
def folder(tmp_path_factory, new_file):
    folder = tmp_path_factory.mktemp("own")
    (folder / "faulty_classes.py").write_text(MODULE)
    for name in ("Good", "Crash", "Shape", "Array", "Counting"):
        text = f"# {name}\n_target_: faulty_classes.{name}\nname: {name.lower()}\nsteps: 2\n"
        new_file(folder / "method" / f"{name.lower()}.yaml", text)
    targets.add_folders([folder])
    return folder


def train(folder, results, *words):
    plan = RunPlan.from_config(compose(["dataset=sinc", *words, f"run.results={results}"], [folder]))
    return run_job(plan, store=Store(results), progress=quiet(), stop=StopRequest())


FAILING = {
    "crash": rf"method crash \(\S*faulty_classes.py, line {CRASH}\): KeyError: 'v'; `gpbench check crash --",
    "shape": r"method shape \(\S*faulty_classes.py\): TypeError: Gradient only defined for scalar-output",
    "array": "method array: predict returns an array: return a gpbench.core.predictive.Predictive",
    "gpr": r"method gpr with faulty_classes.Kernel \(\S*faulty_classes.py\): ValueError: .* with the same sett",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_users_class_that_fails_is_one_line(name, folder, tmp_path, one_line):
    words = ["method.kernel={_target_: faulty_classes.Kernel}"] if name == "gpr" else []
    with one_line(ConfigError, match=FAILING[name]):
        train(folder, tmp_path, f"method={name}", *words)


N = 5
NUMBERS = {name: jnp.ones(N) for name in ("log_prob", "mean", "var", "cdf", "crps", "low95", "high95")}
CLASSES = {"log_prob": jnp.ones(N), "log_probs": jnp.ones((N, 3))}
FAULTY = {
    "one variance for all rows": (NUMBERS | {"var": jnp.ones(())}, "returns var of shape () for 5 rows: its shape"),
    "no variance": (NUMBERS | {"var": None}, "returns var None for 5 rows: its shape must be (5,)"),
    "a column": (NUMBERS | {"mean": jnp.ones((N, 1))}, "returns mean of shape (5, 1) for 5 rows"),
    "a row less": (NUMBERS | {"cdf": jnp.ones(N - 1)}, "returns cdf of shape (4,) for 5 rows"),
    "float32": (NUMBERS | {"crps": jnp.ones(N, "float32")}, "predicts crps in float32 from data in float64: use the"),
    "a density alone": ({"log_prob": jnp.ones(N)}, "returns Given, which has no cdf: return one that has, such as Ga"),
    "numbers for classes": (NUMBERS, "returns Given, which has no log_probs: return one that has"),
    "a class less": (CLASSES | {"log_probs": jnp.ones((N, 2))}, "log_probs of shape (5, 2) for 5 rows: its shape must"),
}


class Given(Predictive):
    known: dict

    def log_prob(self, y):
        return self.known["log_prob"]

    def summary(self):
        return {name: self.known[name] for name in ("mean", "var", "log_probs") if name in self.known}

    def pointwise(self, y):
        return self.known


class Own(Walk):
    """Its state is what it predicts."""

    def predict(self, state, X, *, key):
        return Given(state)


def predicted(arrays: dict, classes: int) -> dict:
    return predictions(Own(name="own"), classes, arrays, jnp.ones((N, 2)), jnp.ones(N), key=jax.random.key(0))


@pytest.mark.parametrize(("arrays", "line"), FAULTY.values(), ids=FAULTY)
def test_predictions_that_no_metric_could_take_are_a_line(arrays, line):
    with pytest.raises(GpbenchError, match=f"^method own.*{re.escape(line)}"):
        predicted(arrays, classes=3 if "log_probs" in line else 0)


@pytest.mark.parametrize("words", [[], ["run.trace_every=2"]])
def test_wrong_predictions_are_said_before_the_first_step(words, folder, tmp_path):
    with pytest.raises(ConfigError, match="method counting: predict returns mean of shape"):
        train(folder, tmp_path, "method=counting", *words)
    assert sys.modules["faulty_classes"].steps == []
    assert train(folder, tmp_path, "method=good", *words)[0].status == "done"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError, Stopped])
def test_what_is_no_fault_of_the_class_passes(error):
    with pytest.raises(error) as caught, one_line_if_users_code(CFG):
        raise error("as it was")
    assert str(caught.value) == "as it was"


def test_an_error_of_our_own_classes_stays_what_it_is_and_an_author_can_have_the_traceback(monkeypatch, refused):
    method = {"_target_": "gpbench.methods.vi.svi.SVI", "optimiser": {"_target_": "optax.adam"}}
    cfg = {"method": method, "config_dirs": []}
    with pytest.raises(KeyError), one_line_if_users_code(cfg):
        raise KeyError("a bug")
    monkeypatch.setenv("GPBENCH_TRACEBACK", "1")
    err = refused("rn")
    assert err.startswith("Traceback") and re.search(r"\ngpbench: no verb 'rn'.*\n$", err)
