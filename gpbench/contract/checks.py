"""Checks of `init`, `step` and `predict`.  A check's docstring is the claim; it raises Broken, or Doubtful."""

import inspect
import tempfile
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.contract import problems
from gpbench.contract.problems import Doubtful, Problem, kind, largest_difference, leaves, require
from gpbench.core.predictive import Predictive
from gpbench.errors import Stopped
from gpbench.methods.base import Info
from gpbench.methods.protocols import HasObjective
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.faults import predictions


def _describes_itself(problem: Problem) -> None:
    """the class has a docstring, and `label` is a text"""
    cls, label = type(problem.method), problem.method.label
    text = cls.__dict__.get("__doc__") or ""
    is_written = text.strip() and not text.startswith(f"{cls.__name__}(")  # dataclasses write a signature there
    require(is_written, f"{cls.__name__} has no docstring: say what it is and where it is from")
    require(isinstance(label, str), f"label is of type {kind(label)}: return a text such as 'm=15%'")


def _starts_with_arrays(problem: Problem) -> None:
    """init gives a pytree of arrays in the precision of the data, without NaN"""
    _require_arrays(problem.start(), problem.precision)


def _starts_reproducibly(problem: Problem) -> None:
    """init gives the same from the same data and key"""
    fault = "two first states differ {}: take all randomness from `key`"
    _require_same(problem.first[0], problem.start(), 0.0, fault)


def _keeps_its_shape(problem: Problem) -> None:
    """step keeps the structure, shapes and types of the state, and reports one number"""
    state, (new, info) = problem.first[0], problem.stepped[0]
    is_number = isinstance(info, Info) and jnp.shape(info.objective) == ()
    reported = kind(getattr(info, "objective", info))
    require(is_number, f"step reports {reported}: return Info(objective) with one number")
    is_same = jax.tree.structure(state) == jax.tree.structure(new)  # type: ignore[operator]
    require(is_same, "step changes the structure of the state, or one of its static fields")
    for (path, old), (_, now) in zip(leaves(state), leaves(new)):
        is_same = (jnp.shape(old), jnp.result_type(old)) == (jnp.shape(now), jnp.result_type(now))
        require(is_same, f"step changes state{path} from {kind(old)} to {kind(now)}")


def _predicts_one_number_a_row(problem: Problem) -> None:
    """predictions have a number for each row, or each class of it, in the dtype of the data"""
    state, X, y = problem.first[0], problem.both.X_test[0], problem.both.y_test[0]
    jax.eval_shape(partial(predictions, problem.method, problem.both.classes, key=problem.key), state, X, y)


def _steps_purely(problem: Problem) -> None:
    """step is pure: the same from the same, however often it is traced, and its arguments are left alone"""
    state, info = problem.stepped[0]
    changed = problem.tracings[0]
    require(not changed, f"step changes the state that it is given (at {', '.join(changed[:1])}): return a new one")
    mend = "take all randomness from `key`, and keep nothing outside the state"
    fault = f"a second step from the same, traced anew, differs {{}}: {mend}"
    _require_same(problem.first_by_the_loop, (state, info.objective), problem.tolerance, fault)


def _compiles_once(problem: Problem) -> None:
    """a second split of the same shape needs no second compilation"""
    fault = "the states of two splits differ in structure, shapes or static fields"
    is_retraced = problem.stepped and len(problem.tracings) > 1
    require(not is_retraced, f"{fault}: keep numbers that come from the data in arrays")


def _heeds_weights(problem: Problem) -> None:
    """rows of weight 0 count for nothing, so that rows can be shared out equally over devices"""
    rows = problem.both.X_test[0], problem.both.y_test[0]
    numbers = lambda state, info: (info.objective, problem.log_prob(state, *rows))
    plain = numbers(*problem.stepped[0])
    gap, _ = largest_difference(numbers(*problems.first_member(problem.padded_side_by_side)), plain)
    if gap <= problem.tolerance:
        return
    # Either claim may be the broken one: without the map, this one alone.
    padded, key = problem.padded, problem.both.step_keys[0]
    state = problem.method.init(problem.data(group=padded), key=problem.both.init_keys[0])
    step = jax.jit(partial(problem.step, rows=padded.rows))
    mend = "have `batch.weight` as a factor in every sum over rows, and take N from `batch.total`"
    fault = f"with three rows of weight 0 more, objective and log_prob differ {{}}: {mend}"
    _require_same(numbers(*step(state, padded.X[0], padded.y[0], key)), plain, problem.tolerance, fault)


def _trains_side_by_side(problem: Problem) -> None:
    """a step of two splits side by side gives what each gives alone"""
    alone = jax.jit(partial(jax.tree.map, lambda *parts: jnp.stack(parts)))(*problem.stepped)
    if not largest_difference(alone, problem.padded_side_by_side)[0] <= problem.tolerance:
        # The rows of weight 0 may be what makes the difference.
        fault = "mapped over both splits (jax.vmap), a step differs {}"
        _require_same(alone, problem.side_by_side(problem.both), problem.tolerance, fault)


def _goes_on_from_a_checkpoint(problem: Problem) -> None:
    """stopped at a checkpoint and gone on, it ends with the same numbers"""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder), "check")
        try:
            problem.train(problem.alone(0), checkpoint=checkpoint, halfway=True)
        except Stopped:
            resumed, whole = problem.train(problem.alone(0), checkpoint=checkpoint), problem.trained
        else:
            return  # a single step cannot be stopped half-way
    is_resumed = resumed.step == whole.step and len(resumed.trace["step"]) == len(whole.trace["step"])
    require(is_resumed, "the checkpoint was not gone on from: its state does not fit that of init")
    fault = "after a checkpoint the predictions differ {}: keep all that training needs in the state"
    _require_same(whole.predictions, resumed.predictions, 0.0, fault)


def _has_a_finite_objective(problem: Problem) -> None:
    """the objective is finite"""
    reported = problem.trained.trace.get("objective", np.zeros(1))
    require(np.isfinite(reported).all(), f"step reports {', '.join(f'{value:g}' for value in np.ravel(reported))}")
    if isinstance(problem.method, HasObjective):
        value = jax.jit(problem.method.objective)(problem.state, problem.data())
        is_good = jnp.shape(value) == () and np.isfinite(value)
        require(is_good, f"objective gives {kind(value)} {value}: it must be one finite number")


def _improves(problem: Problem) -> None:
    """the objective grows"""
    values = np.ravel(problem.trained.trace.get("objective", np.zeros(1)))
    fault = f"from {values[0]:.6g} to {values[-1]:.6g} in {problem.method.steps} steps; larger is better"
    require(not values[-1] < values[0] or np.isclose(values[-1], values[0], rtol=1e-6), fault, error=Doubtful)


def _predicts_finitely(problem: Problem) -> None:
    """predictions have a finite log probability for every test row"""
    y = problem.both.y_test[0]
    log_prob = np.asarray(problem.log_prob(problem.state, problem.both.X_test[0], y))
    require(log_prob.shape == y.shape, f"log_prob gives {kind(log_prob)} for {len(y)} test rows")
    failures = int((~np.isfinite(log_prob)).sum())
    require(not failures, f"log_prob is not finite in {failures} of {len(y)} test rows")


def _predicts_distributions(problem: Problem) -> None:
    """the probabilities of all targets sum to one, and to the cdf up to any target"""
    returned = problem.predictive
    fault = f"predict returns {kind(returned)}: return a gpbench.core.predictive.Predictive"
    require(isinstance(returned, Predictive), fault)
    mass, cdf = _mass(problem)
    worst = float(mass[-1, np.argmax(np.abs(mass[-1] - 1))])
    require(abs(worst - 1) < 1e-3, f"exp(log_prob) sums to {worst:.4g} over all targets of a test row")
    if cdf is not None:
        _require_same(mass, cdf, 1e-3, "cdf differs from the integral of exp(log_prob) {}")


def _predicts_row_by_row(problem: Problem) -> None:
    """a row's prediction depends on that row and the key alone: not on other test rows, their order, or a target"""
    state, X, y = problem.state, problem.both.X_test[0], problem.both.y_test[0]
    log_prob, tolerance = problem.log_prob(state, X, y), problem.tolerance
    fault = "traced again, with the same key, the predictions differ {}: take all randomness from `key`"
    _require_same(log_prob, problem.predictive.log_prob(jnp.asarray(y)), tolerance, fault)
    order = np.random.default_rng(2).permutation(len(y))
    mend = "random numbers must be shared by all rows, or made from each row"
    fault = f"with the test rows in another order the predictions differ {{}}: {mend}"
    _require_same(log_prob[order], problem.log_prob(state, X[order], y[order]), tolerance, fault)
    same, others = np.repeat(X[:1], len(X), axis=0), np.repeat(y[:1], len(y))
    fault = "with other rows beside it a row's log_prob differs {}"
    _require_same(log_prob[:1], problem.log_prob(state, same, y)[:1], tolerance, fault)
    fault = "with other targets of the other test rows a row's log_prob differs {}"
    _require_same(log_prob[:1], problem.log_prob(state, X, others)[:1], tolerance, fault)


def _works_in_float32(problem: Problem) -> None:
    """data in float32 give objectives and predictions in float32, and finite ones"""
    single = Problem(problem.method, problem.task, problem.rows, "float32")
    new, info = single.stepped[0]
    _require_arrays(new)  # optax has float64 in a corner of its L-BFGS: what counts is what comes out
    log_prob = single.log_prob(new, single.both.X_test[0], single.both.y_test[0])
    for name, value in {"the objective": info.objective, "log_prob": log_prob}.items():
        require(jnp.result_type(value) == jnp.float32, f"{name} is {kind(value)}: use the dtype of the data")
        require(np.isfinite(value).all(), f"{name} is not finite")


CHECKS: tuple[Callable[[Problem], None], ...] = tuple(
    check for check in list(globals().values()) if inspect.isfunction(check) and check.__module__ == __name__
)
"""All checks above, in their order."""

_TARGETS = 5.0 * np.sinh(np.linspace(-8.0, 8.0, 6001)) / np.sinh(1.0)
"""Distances from the mean, in standard deviations, for the integral of a regression's density: dense, and far out."""


def _mass(problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
    """Every test row's probability, or integral, up to each target in rising order (Q, T); in regression, its cdf."""
    pointwise = jax.jit(jax.vmap(lambda y: problem.predictive.pointwise(y)))
    if problem.task != "regression":
        codes = {"binary": [-1.0, 1.0], "count": range(400)}.get(problem.task, range(problems.CLASSES[problem.task]))
        targets = np.tile(np.array(codes, problem.precision)[:, None], (1, problems.TEST_ROWS))
        return np.cumsum(np.exp(pointwise(targets)["log_prob"]), axis=0), None
    mean, var = map(np.asarray, jax.jit(lambda: itemgetter("mean", "var")(problem.predictive.summary()))())
    std = np.sqrt(np.where(np.isfinite(var), var, 1.0))  # some densities have none
    targets = mean + std * _TARGETS[:, None]
    at_targets = pointwise(targets)
    values = np.exp(at_targets["log_prob"])
    parts = 0.5 * (values[1:] + values[:-1]) * np.diff(targets, axis=0)
    integral = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    return integral, np.asarray(at_targets["cdf"])


def _require_same(old: Any, new: Any, tolerance: float, fault: str) -> None:
    """Raises Broken where two pytrees differ by more than `tolerance`; {} in the fault stands for the position."""
    gap, position = largest_difference(old, new)
    require(gap <= tolerance, fault.format(position))


def _require_arrays(state: Any, precision: str | None = None) -> None:
    """Raises Broken unless all leaves are arrays without NaN, and of `precision`, if given, where floating point."""
    for location, leaf in leaves(state):
        is_array = isinstance(leaf, jax.Array | np.ndarray)
        require(is_array, f"state{location} is of type {kind(leaf)}: make it an array, or a static field")
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            fault = f"state{location} is {kind(leaf)} where the data are {precision}: use the dtype of the data"
            require(precision in (None, leaf.dtype), fault)
            missing = int(np.isnan(np.asarray(leaf)).sum())
            require(not missing, f"state{location} has NaN in {missing} of {leaf.size} places")
