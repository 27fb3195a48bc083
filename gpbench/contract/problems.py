"""Small data on which a method is checked, two splits of one shape for every task, and comparisons of its states."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr
from jaxtyping import Array

from gpbench import errors
from gpbench.core.predictive import Predictive
from gpbench.data.splits import Member
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.protocols import State
from gpbench.train import batches
from gpbench.train.batches import prediction_key, take_step
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.faults import predictive
from gpbench.train.group import Fit, Group, initial
from gpbench.train.loop import Cadence, fit
from gpbench.train.programs import Programs
from gpbench.train.stop import StopRequest

CLASSES = {"binary": 2, "multiclass": 3, "regression": 0, "count": 1}
TEST_ROWS, INPUTS = 15, 2


class Problem:
    """A method on two splits of a task, with arrays as the loop would hand them over."""

    def __init__(self, method: Method, task: str, rows: int, precision: str = "float64"):
        self.method, self.task, self.rows, self.precision = method, task, rows, precision
        self.programs = Programs(method)
        self.tracings: list[list[str]] = []
        splits = zip(*(_split(task, rows, seed) for seed in (0, 1)))
        X, y, X_test, y_test = (np.stack(arrays).astype(precision) for arrays in splits)
        keys = jax.random.split(jax.random.key(0), 4)
        self.both = Group([Member(0), Member(1)], X, y, X_test, y_test, CLASSES[task], keys[:2], keys[2:])

    def alone(self, k: int) -> Group:
        """Split k as a group of its own."""
        g, k_ = self.both, slice(k, k + 1)
        arrays = (g.X[k_], g.y[k_], g.X_test[k_], g.y_test[k_])
        return Group([Member(k)], *arrays, g.classes, g.init_keys[k_], g.step_keys[k_])

    def data(self, k: int = 0, *, group: Group | None = None) -> Batch:
        """All training rows of split k of `both`, or of another group."""
        group = group or self.both
        return batches.whole(jnp.asarray(group.X[k]), jnp.asarray(group.y[k]), group.classes, rows=group.rows)

    def start(self, k: int = 0) -> State:
        return self.method.init(self.data(k), key=self.both.init_keys[k])

    @cached_property
    def first(self) -> list[State]:
        return [self.start(0), self.start(1)]

    def step(self, state: State, X: Array, y: Array, key: Array, *, rows: int | None = None) -> tuple[State, Info]:
        """The loop's first step on these rows, of which the first `rows` count: the next state and what is reported."""
        data = batches.whole(X, y, self.both.classes, rows=rows)
        return take_step(self.method, state, data, jnp.asarray(0), key=key)

    @cached_property
    def compiled(self) -> Callable[..., tuple[State, Info]]:
        """`step`, compiled; every tracing adds to `tracings` the places of its state that it changes."""

        def counted(state, X, y, key):
            before = jax.tree_util.tree_leaves_with_path(state)
            stepped = self.step(state, X, y, key)
            now = jax.tree.leaves(state)
            self.tracings.append([keystr(path) for (path, old), new in zip(before, now) if old is not new])
            return stepped

        return jax.jit(counted)

    @cached_property
    def stepped(self) -> list[tuple[State, Info]]:
        return [self.compiled(self.first[k], *self.rows_of(k)) for k in (0, 1)]

    @cached_property
    def first_by_the_loop(self) -> tuple[State, Array]:
        """State and objective after split 0's first step in the loop's program, which traces it anew."""
        run = Fit(jax.jit(partial(jax.tree.map, lambda leaf: leaf[None]))(self.first[0]))
        objective, _ = self.programs.advance(self.alone(0), run, 1)
        return first_member(run.state), jnp.asarray(objective[0])

    @cached_property
    def padded(self) -> Group:
        """Both splits with their first three rows once more at the end, of weight 0."""
        X, y = (np.concatenate([rows, rows[:, :3]], axis=1) for rows in (self.both.X, self.both.y))
        return dataclasses.replace(self.both, X=X, y=y, rows=self.rows)

    @cached_property
    def padded_side_by_side(self) -> tuple[State, Info]:
        """The first step of both padded splits, mapped over them: two claims in one program."""
        return self.side_by_side(self.padded)

    def side_by_side(self, group: Group) -> tuple[State, Info]:
        """The first step of a group's splits, mapped over them."""
        step = partial(self.step, rows=group.rows)
        return jax.jit(jax.vmap(step))(initial(self.method, group), group.X, group.y, group.step_keys)

    @cached_property
    def log_prob(self) -> Callable[[State, Any, Any], Array]:
        """The log probability of targets at inputs, compiled as the loop would."""
        return jax.jit(lambda state, X, y: predictive(self.method, state, X, key=self.key).log_prob(y))

    @cached_property
    def predictive(self) -> Predictive:
        return jax.jit(lambda state, X: self.method.predict(state, X, key=self.key))(self.state, self.both.X_test[0])

    @property
    def key(self) -> Array:
        """Random key of the predictions of split 0."""
        return prediction_key(self.both.step_keys[0])

    @cached_property
    def tolerance(self) -> float:
        """The relative difference up to which numbers computed in another order count as the same: 1e-6, or 100 times
        what a change of the inputs in their last digits makes of one step, which ill-conditioned matrices magnify."""
        X, y, key = self.rows_of()
        signs = np.where(np.random.default_rng(0).random(X.shape) > 0.5, 1.0, -1.0)
        moved = self.compiled(self.first[0], (X * (1 + 4 * np.finfo(X.dtype).eps * signs)).astype(X.dtype), y, key)
        return max(1e-6, 100 * largest_difference(self.stepped[0], moved)[0])

    def rows_of(self, k: int = 0) -> tuple[np.ndarray, np.ndarray, Array]:
        """Arguments of `step` beside the state."""
        return np.asarray(self.both.X[k]), np.asarray(self.both.y[k]), self.both.step_keys[k]

    def train(self, group: Group, *, checkpoint: Checkpoint | None = None, halfway: bool = False) -> Fit:
        """Trained by the loop to the last step; or `halfway`, where it raises Stopped."""
        cadence, stop = Cadence(max(1, self.method.steps // 2), None), StopRequest(0.0 if halfway else None)
        return fit(self.programs, group, cadence=cadence, checkpoint=checkpoint, stop=stop)

    @cached_property
    def trained(self) -> Fit:
        return self.train(self.alone(0))

    @cached_property
    def state(self) -> State:
        return first_member(self.trained.state)


@jax.jit
def first_member(stacked: State) -> State:
    """The first of the states, or of whatever else, that `stacked` has along a leading axis; in one program."""
    return jax.tree.map(lambda leaf: leaf[0], stacked)


def _split(task: str, rows: int, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows of a smooth function with noise, targets as a run would have them."""
    rng = np.random.default_rng(seed)
    n = rows + TEST_ROWS
    X = rng.normal(size=(n, INPUTS))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    y = {
        "regression": (f - f.mean()) / f.std(),
        "binary": np.where(f > np.median(f), 1.0, -1.0),
        "count": np.floor(np.exp(f)),
        "multiclass": np.searchsorted(np.quantile(f, [1 / 3, 2 / 3]), f).astype(float),
    }[task]
    return X[:rows], y[:rows], X[rows:], y[rows:]


class Broken(Exception):
    """The claim does not hold; the text says what was seen and how to mend it."""


class Doubtful(Exception):
    """The claim may not hold: worth a look, but the loop does not count on it."""


def leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a pytree with their places, `.hyper.Z`; random keys as the numbers behind them."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        yield jax.tree_util.keystr(path), jax.random.key_data(leaf) if is_key else leaf


def kind(value: Any) -> str:
    """`float64[3,2]` of an array, the name of its class of anything else."""
    if not isinstance(value, jax.Array | np.ndarray):
        return type(value).__name__
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def largest_difference(old: Any, new: Any) -> tuple[float, str]:
    """The largest difference of two pytrees, relative to its leaf's largest entry or 1, and where it is.  NaN agrees
    with NaN; infinite where structure, shapes or what is not finite differ."""
    if jax.tree.structure(old) != jax.tree.structure(new):  # type: ignore[operator]
        return np.inf, "in structure or static fields"
    worst, position = 0.0, ""
    for (location, a), (_, b) in zip(leaves(old), leaves(new)):
        suffix = f" in {location}" if location else ""
        if np.shape(a) != np.shape(b):
            return np.inf, f"in shape, {kind(a)} and {kind(b)}{suffix}"
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        finite = np.isfinite(a)
        gap = np.inf
        if np.array_equal(a[~finite], b[~finite], equal_nan=True):
            scale = max(1.0, np.abs(a[finite]).max(initial=0.0))
            gap = float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale
        if not gap <= worst:
            worst, position = gap, f"by {gap:.2g}{suffix}"
    return worst, position


require = partial(errors.require, error=Broken)
"""Raises Broken, or another `error`, with what was seen and how to mend it, unless a claim is good."""
