"""Small methods, and short ways from a command line to its records, for the tests of training."""

import io
from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from gpbench import targets
from gpbench.config.compose import compose
from gpbench.core.predictive import BernoulliPredictive
from gpbench.data.splits import Member
from gpbench.methods.base import Info, Method
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train import context, progress
from gpbench.train.group import Group
from gpbench.train.job import run_job
from gpbench.train.loop import Cadence, fit
from gpbench.train.programs import Programs
from gpbench.train.stop import StopRequest

HERE = Path(__file__).parent
"""A folder for --config-dir: it has `method=walk` and `method=fragile`, and this module."""
WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "run.together=true"]


@cache
def programs_of(method: Method) -> Programs:
    """The programs of a method, which trainings of equal methods share: they are compiled once for all tests."""
    return Programs(method)


class Trail(eqx.Module):
    w: Float[Array, " D"]
    visits: Float[Array, " N"]


class Walk(Method):
    """Logistic regression by noisy gradient ascent: uses batches, weights and keys, as methods do."""

    tasks = frozenset({"binary"})
    rate: float = eqx.field(static=True, kw_only=True, default=0.1)

    def init(self, data, *, key):
        w = 0.1 * jax.random.normal(key, data.X.shape[1:], data.X.dtype)
        return Trail(w, jnp.zeros(data.total, data.X.dtype))

    def step(self, state, batch, *, key):
        def log_likelihood(w):
            return batch.scale * jnp.sum(batch.weight * jax.nn.log_sigmoid(batch.y * (batch.X @ w)))

        value, slope = jax.value_and_grad(log_likelihood)(state.w)
        noise = 0.01 * jax.random.normal(key, state.w.shape, state.w.dtype)
        visits = state.visits.at[batch.index].add(batch.weight)
        return Trail(state.w + self.rate * slope / batch.total + noise, visits), Info(value)

    def predict(self, state, X, *, key):
        logits = X @ state.w
        return BernoulliPredictive(jax.nn.log_sigmoid(-logits), jax.nn.log_sigmoid(logits))


class Fragile(Walk):
    """NaN from the 15th step on where the first training label is positive."""

    def step(self, state, batch, *, key):
        state, info = super().step(state, batch, key=key)
        visits = state.visits
        lost = (visits[0] >= 15) & (batch.y[0] > 0)
        state, info = jax.tree.map(lambda a: jnp.where(lost, jnp.nan, a), (state, info))
        return eqx.tree_at(lambda s: s.visits, state, visits), info


class Greedy(Walk):
    """Asks for more memory than there is."""

    def step(self, state, batch, *, key):
        much = jnp.sum(jax.random.normal(key, (2**21, 2**21)) @ jnp.ones((2**21, 2**21)))
        return state, Info(much)


class StopAfter(StopRequest):
    """Has a reason to stop once it has been asked n times."""

    def __init__(self, n: int):
        super().__init__()
        self.left = n

    @property
    def reason(self):
        self.left -= 1
        return "SIGTERM" if self.left < 0 else None


def group(splits=(0, 1, 2), n=40, d=3, seed=0) -> Group:
    """Splits of random data, separable but for a tenth of the labels."""
    keys = jnp.stack([jax.random.key(1000 * seed + k) for k in splits])
    random = [np.random.default_rng([seed, k]) for k in splits]
    X = np.stack([r.normal(size=(n + 10, d)) for r in random])
    y = np.sign(X[..., 0] + 0.1) * np.stack([np.where(r.random(n + 10) < 0.1, -1.0, 1.0) for r in random])
    parts = {"X": X[:, :n], "y": y[:, :n], "X_test": X[:, n:], "y_test": y[:, n:]}
    arrays = {name: jnp.asarray(part) for name, part in parts.items()}
    return Group(members=[Member(k) for k in splits], rows=n, **arrays, classes=2, init_keys=keys, step_keys=keys)


def fitted(method: Method, data: Group, checkpoint=None, **more):
    """A fit in chunks of ten steps, by programs that equal methods share."""
    return fit(programs_of(method), data, cadence=Cadence(10, None), checkpoint=checkpoint, **more)


def equal(first, second) -> bool:
    """Whether all leaves of two pytrees are equal, bit by bit."""
    pairs = zip(*map(jax.tree.leaves, (first, second)), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def quiet(stream=None) -> progress.Progress:
    """Progress that writes only its notes."""
    return progress.make(False, stream or io.StringIO())


def job(results: Path, *words: str, store=None, stop=None, stream=None, programs=programs_of) -> list[Record]:
    """The records of `gpbench run WORDS run.results=RESULTS`, made in this process; `Programs` compiles anew."""
    plan = RunPlan.from_config(compose([*words, f"run.results={results}"], [HERE]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "_folders", [*targets._folders, HERE])  # fixtures of a module come before those of tests
        patch.setattr(context, "Programs", lambda method, devices: programs(method))
        return run_job(plan, store=store or Store(results), progress=quiet(stream), stop=stop or StopRequest())


def numbers(records: list[Record]) -> list[tuple]:
    """What must be the same, bit by bit."""
    return [(r.id, r.status, r.steps, r.objective, r.metrics) for r in records]


def close(records, others) -> bool:
    """What must be the same to rounding."""
    return all(
        r.id == o.id
        and np.isclose(r.objective, o.objective, rtol=1e-6)
        and np.allclose(list(r.metrics.values()), list(o.metrics.values()), rtol=1e-6)
        and np.allclose(list(r.row_stderr.values()), list(o.row_stderr.values()), rtol=1e-6)
        for r, o in zip(records, others, strict=True)
    )
