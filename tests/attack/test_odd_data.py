"""Odd data end in metrics, in metrics with a doubt, in one line or in a divergence: never in absurd ones unsaid."""

import io
import random
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pytest

from gpbench import metrics
from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.data.dataset import Dataset
from gpbench.data.scaled import prepare
from gpbench.data.splits import Member
from gpbench.errors import GpbenchError
from gpbench.methods.base import Method
from gpbench.train import progress, result
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.doubts import doubts
from gpbench.train.group import Group
from gpbench.train.loop import Cadence, fit
from gpbench.train.programs import Programs
from gpbench.train.stop import StopRequest

_KINDS = """
plain constant_input constant_in_training outlier outlier_in_test far_from_zero constant_targets duplicates one_row
two_of_a_class tiny huge far_test_rows no_noise
"""
KINDS = tuple(_KINDS.split())
SHAPES = ((5, 2), (5, 8), (12, 2))
"""Numbers of training rows and inputs."""
TEST_ROWS = 4
SMALL = {"steps": 20, "warmup": 30, "hidden": [3], "samples": 8, "frequencies": 20, "basis": 200, "basis_batch": 50}
SMALL |= {"block": 10, "dense_columns": 2, "mean_basis": 5, "covariance_basis": 3, "growth": 5, "columns": 4}
SMALL |= {"rates": [], "batch_size": None, "chains": 2, "max_doublings": 3, "inner_steps": 4, "members": 2}
"""Settings that make training quick, of the methods that have them."""


@dataclass(frozen=True)
class Problem:
    """Odd data of a kind, for a task.  Rows from `rows` on are test rows."""

    kind: str
    task: str
    rows: int = 5
    inputs: int = 2
    seed: int = 0

    @property
    def dataset(self) -> Dataset:
        """The arrays, the same for the same problem."""
        n, regression = self.rows, self.task == "regression"
        rng = np.random.default_rng(zlib.crc32(repr(self).encode()))
        X = rng.normal(size=(n + TEST_ROWS, self.inputs))
        f = X[:, 0] + np.sin(2 * X[:, -1]) + 0.3 * rng.normal(size=len(X))
        classes = {"regression": 0, "count": 0, "binary": 2, "multiclass": 3}[self.task]
        codes = np.argsort(np.argsort(f)) * classes // len(f)
        y = f if regression else 2.0 * codes - 1.0 if classes == 2 else codes.astype(float)
        if self.task == "count":
            y = rng.poisson(np.exp(f)).astype(float)
        match self.kind:
            case "constant_input":
                X[:, 1] = 3.7
            case "constant_in_training":
                X[:n, 1] = 3.7
            case "outlier" | "outlier_in_test":
                (X[:, 0] if classes else y)[1 if self.kind == "outlier" else n + 1] = 1e6
            case "far_from_zero":
                X, y = X + 1e8, y + 1e8 * regression
            case "constant_targets":
                y[:n] = y[0]
            case "duplicates":
                X[n // 2 : n], y[n // 2 : n] = X[: n - n // 2], y[: n - n // 2]
            case "one_row":
                X[:n] = X[0]
            case "two_of_a_class" if not regression:
                y[:n], y[:2] = y.min(), y.max()
            case "tiny" | "huge":
                scale = 1e-12 if self.kind == "tiny" else 1e12
                X, y = X * scale, y * scale if regression else y
            case "far_test_rows":
                X[n:] += 1e3
            case "no_noise" if regression:
                y = X[:, 0].copy()
        names = tuple("abc"[:classes])
        columns = tuple(f"x{i + 1}" for i in range(self.inputs))
        return Dataset(name=self.kind, task=self.task, X=X, y=y, columns=columns, classes=names, checksum="")


def small(name: str) -> Method:
    """The method of this name with settings that make it quick."""
    shipped = compose([f"method={name}", "dataset=boston"])["method"]
    words = [f"method.{key}={_word(value)}" for key, value in SMALL.items() if shipped.get(key) not in (None, 0)]
    return build_method(compose([f"method={name}", "dataset=boston", *words])["method"])


def _word(value) -> str:
    return "null" if value is None else str(value).replace(" ", "")


def end(method: Method, programs: Programs, problem: Problem) -> tuple[str, dict[str, float], dict[str, float]]:
    """How a method ends on a problem: "done", "diverged" or the line of a refusal; its metrics, and its doubts."""
    rows, n = np.arange(problem.rows + TEST_ROWS), problem.rows
    try:
        prepared = prepare(problem.dataset, rows[:n], rows[n:])
        trained = _train(programs, prepared)
    except GpbenchError as error:
        return str(error), {}, {}
    objective = trained.trace["objective"][-1][0] if "objective" in trained.trace else 0.0
    if not np.isfinite(trained.predictions["log_prob"]).all() or not np.isfinite(objective):
        return "diverged", {}, {}
    test_set = result.scored(prepared, trained.predictions, 0)
    state = jax.tree.map(lambda leaf: leaf[0], trained.state)
    values = metrics.score(problem.task, test_set) | {"loss": -float(np.mean(test_set.log_prob))}
    return "done", values, doubts(prepared, test_set, state)


def _train(programs: Programs, prepared):
    keys = jax.random.split(jax.random.key(0), 2)
    arrays = (array[None] for array in (prepared.X, prepared.y, prepared.X_test, prepared.y_test))
    group = Group([Member(0)], *arrays, prepared.classes, keys[:1], keys[1:], rows=len(prepared.y))
    silent = progress.make(False, io.StringIO())
    silent.begin("", programs.method.steps, "")
    with tempfile.TemporaryDirectory() as folder:
        fields = {"checkpoint": Checkpoint(Path(folder), "none"), "progress": silent, "stop": StopRequest()}
        cadence = Cadence(max(1, programs.method.steps), None)
        return fit(programs, group, cadence=cadence, score=lambda predictions: {}, **fields)


def is_absurd(task: str, values: dict[str, float]) -> bool:
    """Tests whether metrics are far beyond any that a method should report without a warning."""
    loss, rmse = values["loss"], values.get("rmse_std", 0.0)
    return not (np.isfinite(loss) and np.isfinite(rmse)) or loss > 20.0 or rmse > 10.0


QUICK = {"linear": "regression", "gpr": "regression", "logistic": "binary", "sep": "binary"}
"""Methods of `make test`, for 40 problems; `ALL` have 9 each."""
ALL = sorted(file.stem for file in (Path(__file__).parents[2] / "conf" / "method").glob("*.yaml"))


def check(name: str, problems: list[Problem]) -> None:
    """Fails for a problem that ends in a traceback, in more than a line, or absurdly without a doubt."""
    method = small(name)
    programs = Programs(method)
    for problem in problems:
        status, values, doubts = end(method, programs, problem)
        assert "\n" not in status, problem
        if status == "done":
            assert doubts or not is_absurd(problem.task, values), (problem, values)


@pytest.mark.parametrize("name", QUICK)
def test_no_method_is_absurd_without_a_word(name):
    kinds = KINDS if name == "linear" else random.Random(name).sample(KINDS, 8 if name != "sep" else 2)
    check(name, [Problem(kind, QUICK[name]) for kind in kinds])


@pytest.mark.parametrize("name", ALL)
def test_no_method_is_absurd_on_any_kind_of_data(name):
    choice = random.Random(f"all {name}")
    task = choice.choice(sorted(small(name).tasks))
    rows, inputs = choice.choice(SHAPES)
    problems = [Problem(kind, task, rows, inputs, seed) for seed in range(3) for kind in KINDS]
    check(name, choice.sample(problems, 9))
