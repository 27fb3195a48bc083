"""Checks of `init`, `step` and `predict`, in the order in which they are made: every public function.

A check's docstring is the claim; it raises Broken, or Doubtful.
"""

import tempfile
from functools import partial
from operator import itemgetter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.contract.compare import Broken, Doubtful, difference, kind, leaves, require_arrays, same_structure
from gpbench.contract.problems import CLASSES, TEST_ROWS, Problem, first_member
from gpbench.core.predictive import Predictive
from gpbench.errors import Stopped
from gpbench.methods.base import Info
from gpbench.methods.protocols import HasObjective
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.faults import predictions


def describes_itself(problem: Problem) -> None:
    """the class has a docstring, and `label` is a text"""
    cls = type(problem.method)
    text = cls.__dict__.get("__doc__") or ""
    if not text.strip() or text.startswith(f"{cls.__name__}("):  # dataclasses write a signature there
        raise Broken(f"{cls.__name__} has no docstring: say what it is and where it is from")
    if not isinstance(problem.method.label, str):
        raise Broken(f"label is of type {kind(problem.method.label)}: return a text such as 'm=15%'")


def starts_with_arrays(problem: Problem) -> None:
    """init gives a pytree of arrays in the precision of the data, without NaN"""
    require_arrays(problem.start(), problem.precision)


def starts_reproducibly(problem: Problem) -> None:
    """init gives the same from the same data and key"""
    if position := difference(problem.first[0], problem.start(), tolerance=0.0):
        raise Broken(f"two first states differ {position}: take all randomness from `key`")


def keeps_its_shape(problem: Problem) -> None:
    """step keeps the structure, shapes and types of the state, and reports one number"""
    state = problem.first[0]
    new, info = problem.stepped[0]
    if not isinstance(info, Info) or jnp.shape(info.objective) != ():
        raise Broken(f"step reports {kind(getattr(info, 'objective', info))}: return Info(objective) with one number")
    if not same_structure(state, new):
        raise Broken("step changes the structure of the state, or one of its static fields")
    for (path, old), (_, now) in zip(leaves(state), leaves(new)):
        if (jnp.shape(old), jnp.result_type(old)) != (jnp.shape(now), jnp.result_type(now)):
            raise Broken(f"step changes state{path} from {kind(old)} to {kind(now)}")


def predicts_one_number_a_row(problem: Problem) -> None:
    """predictions have a number for each row, or each class of it, in the dtype of the data"""
    state, X, y = problem.first[0], problem.both.X_test[0], problem.both.y_test[0]
    jax.eval_shape(partial(predictions, problem.method, problem.both.classes, key=problem.key), state, X, y)


def steps_purely(problem: Problem) -> None:
    """step is pure: the same from the same, however often it is traced, and its arguments are left alone"""
    state, info = problem.stepped[0]
    if changed := problem.tracings[0]:
        raise Broken(f"step changes the state that it is given (at {changed[0]}): return a new one")
    if position := difference(problem.first_by_the_loop, (state, info.objective), problem.tolerance):
        raise Broken(
            f"a second step from the same, traced anew, differs {position}: take all randomness from `key`, and"
            " keep nothing outside the state"
        )


def compiles_once(problem: Problem) -> None:
    """a second split of the same shape needs no second compilation"""
    if problem.stepped and len(problem.tracings) > 1:
        raise Broken(
            "the states of two splits differ in structure, shapes or static fields: keep numbers that come"
            " from the data in arrays"
        )


def heeds_weights(problem: Problem) -> None:
    """rows of weight 0 count for nothing, so that rows can be shared out equally over devices"""
    rows = problem.both.X_test[0], problem.both.y_test[0]
    numbers = lambda state, info: (info.objective, problem.log_prob(state, *rows))
    plain = numbers(*problem.stepped[0])
    filled = numbers(*first_member(problem.padded_side_by_side))
    if not difference(filled, plain, problem.tolerance):
        return
    # Either claim may be the broken one: without the map, this one alone.
    padded, key = problem.padded, problem.both.step_keys[0]
    state = problem.method.init(problem.data(group=padded), key=problem.both.init_keys[0])
    step = jax.jit(partial(problem.step, rows=padded.rows))
    if position := difference(numbers(*step(state, padded.X[0], padded.y[0], key)), plain, problem.tolerance):
        raise Broken(
            f"with three rows of weight 0 more, objective and log_prob differ {position}: have `batch.weight` as"
            " a factor in every sum over rows, and take N from `batch.total`"
        )


def trains_side_by_side(problem: Problem) -> None:
    """a step of two splits side by side gives what each gives alone"""
    alone = jax.jit(partial(jax.tree.map, lambda *parts: jnp.stack(parts)))(*problem.stepped)
    if not difference(alone, problem.padded_side_by_side, problem.tolerance):
        return
    # The rows of weight 0 may be what makes the difference.
    if position := difference(alone, problem.side_by_side(problem.both), problem.tolerance):
        raise Broken(f"mapped over both splits (jax.vmap), a step differs {position}")


def goes_on_from_a_checkpoint(problem: Problem) -> None:
    """stopped at a checkpoint and gone on, it ends with the same numbers"""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder), "check")
        try:
            problem.train(problem.alone(0), checkpoint=checkpoint, halfway=True)
        except Stopped:
            resumed = problem.train(problem.alone(0), checkpoint=checkpoint)
        else:
            return  # a single step cannot be stopped half-way
    if resumed.step != problem.trained.step or len(resumed.trace["step"]) != len(problem.trained.trace["step"]):
        raise Broken("the checkpoint was not gone on from: its state does not fit that of init")
    if position := difference(problem.trained.predictions, resumed.predictions, tolerance=0.0):
        raise Broken(f"after a checkpoint the predictions differ {position}: keep all that training needs in the state")


def has_a_finite_objective(problem: Problem) -> None:
    """the objective is finite"""
    reported = problem.trained.trace.get("objective", np.zeros(1))
    if not np.isfinite(reported).all():
        raise Broken(f"step reports {', '.join(f'{value:g}' for value in np.ravel(reported))}")
    if isinstance(problem.method, HasObjective):
        value = jax.jit(problem.method.objective)(problem.state, problem.data())
        if jnp.shape(value) != () or not np.isfinite(value):
            raise Broken(f"objective gives {kind(value)} {value}: it must be one finite number")


def improves(problem: Problem) -> None:
    """the objective grows"""
    values = np.ravel(problem.trained.trace.get("objective", np.zeros(1)))
    if values[-1] < values[0] and not np.isclose(values[-1], values[0], rtol=1e-6):
        raise Doubtful(f"from {values[0]:.6g} to {values[-1]:.6g} in {problem.method.steps} steps; larger is better")


def predicts_finitely(problem: Problem) -> None:
    """predictions have a finite log probability for every test row"""
    y = problem.both.y_test[0]
    log_prob = np.asarray(problem.log_prob(problem.state, problem.both.X_test[0], y))
    if log_prob.shape != y.shape:
        raise Broken(f"log_prob gives {kind(log_prob)} for {len(y)} test rows")
    if failures := int((~np.isfinite(log_prob)).sum()):
        raise Broken(f"log_prob is not finite in {failures} of {len(y)} test rows")


def predicts_distributions(problem: Problem) -> None:
    """the probabilities of all targets sum to one, and to the cdf up to any target"""
    if not isinstance(problem.predictive, Predictive):
        raise Broken(f"predict returns {kind(problem.predictive)}: return a gpbench.core.predictive.Predictive")
    mass, cdf = _mass(problem)
    worst = float(mass[-1, np.argmax(np.abs(mass[-1] - 1))])
    if not abs(worst - 1) < 1e-3:
        raise Broken(f"exp(log_prob) sums to {worst:.4g} over all targets of a test row")
    if cdf is not None and (position := difference(mass, cdf, tolerance=1e-3)):
        raise Broken(f"cdf differs from the integral of exp(log_prob) {position}")


def predicts_row_by_row(problem: Problem) -> None:
    """a row's prediction depends on that row and the key alone: not on other test rows, their order, or a target"""
    state, X, y = problem.state, problem.both.X_test[0], problem.both.y_test[0]
    log_prob = problem.log_prob(state, X, y)
    if position := difference(log_prob, problem.predictive.log_prob(jnp.asarray(y)), problem.tolerance):
        raise Broken(
            f"traced again, with the same key, the predictions differ {position}: take all randomness from `key`"
        )
    order = np.random.default_rng(2).permutation(len(y))
    if position := difference(log_prob[order], problem.log_prob(state, X[order], y[order]), problem.tolerance):
        raise Broken(
            f"with the test rows in another order the predictions differ {position}: random numbers must be"
            " shared by all rows, or made from each row"
        )
    same = np.repeat(X[:1], len(X), axis=0)
    if position := difference(log_prob[:1], problem.log_prob(state, same, y)[:1], problem.tolerance):
        raise Broken(f"with other rows beside it a row's log_prob differs {position}")
    others = np.repeat(y[:1], len(y))
    if position := difference(log_prob[:1], problem.log_prob(state, X, others)[:1], problem.tolerance):
        raise Broken(f"with other targets of the other test rows a row's log_prob differs {position}")


def works_in_float32(problem: Problem) -> None:
    """data in float32 give objectives and predictions in float32, and finite ones"""
    single = Problem(problem.method, problem.task, problem.rows, "float32")
    new, info = single.stepped[0]
    require_arrays(new)  # optax has float64 in a corner of its L-BFGS: what counts is what comes out
    log_prob = single.log_prob(new, single.both.X_test[0], single.both.y_test[0])
    for name, value in {"the objective": info.objective, "log_prob": log_prob}.items():
        if jnp.result_type(value) != jnp.float32:
            raise Broken(f"{name} is {kind(value)}: use the dtype of the data")
        if not np.isfinite(value).all():
            raise Broken(f"{name} is not finite")


_TARGETS = 5.0 * np.sinh(np.linspace(-8.0, 8.0, 6001)) / np.sinh(1.0)
"""Distances from the mean, in standard deviations, for the integral of a regression's density: dense, and far out."""


def _mass(problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
    """Every test row's probability, or integral, up to each target in rising order (Q, T); in regression, its cdf."""
    pointwise = jax.jit(jax.vmap(lambda y: problem.predictive.pointwise(y)))
    if problem.task != "regression":
        codes = {"binary": [-1.0, 1.0], "count": range(400)}.get(problem.task, range(CLASSES[problem.task]))
        targets = np.tile(np.array(codes, problem.precision)[:, None], (1, TEST_ROWS))
        return np.cumsum(np.exp(pointwise(targets)["log_prob"]), axis=0), None
    mean, var = map(np.asarray, jax.jit(lambda: itemgetter("mean", "var")(problem.predictive.summary()))())
    std = np.sqrt(np.where(np.isfinite(var), var, 1.0))  # some densities have none
    targets = mean + std * _TARGETS[:, None]
    at_targets = pointwise(targets)
    values = np.exp(at_targets["log_prob"])
    parts = 0.5 * (values[1:] + values[:-1]) * np.diff(targets, axis=0)
    integral = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    return integral, np.asarray(at_targets["cdf"])
