"""What a method promises under the loop, and of its predictions.  As in `steps`, docstrings are the claims."""

import tempfile
from functools import partial
from operator import itemgetter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.contract.compare import Broken, Doubtful, difference, kind
from gpbench.contract.problems import CLASSES, TEST_ROWS, Problem
from gpbench.core.predictive import Predictive
from gpbench.errors import Stopped
from gpbench.methods.base import Method
from gpbench.train.checkpoint import Checkpoint

_TARGETS = 5.0 * np.sinh(np.linspace(-8.0, 8.0, 6001)) / np.sinh(1.0)
"""Where a regression's density is summed up, from its mean in standard deviations: dense there, and far out."""


def trains_side_by_side(problem: Problem) -> None:
    """a step of two splits side by side gives what each gives alone"""
    alone = jax.jit(partial(jax.tree.map, lambda *parts: jnp.stack(parts)))(*problem.stepped)
    if not difference(alone, problem.padded_side_by_side, problem.tolerance):
        return
    # The rows of weight 0 may be what makes the difference.
    if where := difference(alone, problem.side_by_side(problem.both), problem.tolerance):
        raise Broken(f"mapped over both splits (jax.vmap), a step differs {where}")


def goes_on_from_a_checkpoint(problem: Problem) -> None:
    """stopped at a checkpoint and gone on, it ends with the same numbers"""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder), "check")
        try:
            problem.train(problem.alone(0), checkpoint=checkpoint, halfway=True)
        except Stopped:
            done = problem.train(problem.alone(0), checkpoint=checkpoint)
        else:
            return  # a single step cannot be stopped half-way
    if done.step != problem.trained.step or len(done.trace["step"]) != len(problem.trained.trace["step"]):
        raise Broken("the checkpoint was not gone on from: its state does not fit that of init")
    if where := difference(problem.trained.predictions, done.predictions, tolerance=0.0):
        raise Broken(f"after a checkpoint the predictions differ {where}: keep all that training needs in the state")


def has_a_finite_objective(problem: Problem) -> None:
    """the objective is finite"""
    reported = problem.trained.trace.get("objective", np.zeros(1))
    if not np.isfinite(reported).all():
        raise Broken(f"step reports {', '.join(f'{value:g}' for value in np.ravel(reported))}")
    if type(problem.method).objective is not Method.objective:
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
    if cdf is not None and (where := difference(mass, cdf, tolerance=1e-3)):
        raise Broken(f"cdf differs from the integral of exp(log_prob) {where}")


def predicts_row_by_row(problem: Problem) -> None:
    """a row's prediction depends on that row and the key alone: not on other test rows, their order, or a target"""
    state, X, y = problem.state, problem.both.X_test[0], problem.both.y_test[0]
    log_prob = problem.log_prob(state, X, y)
    if where := difference(log_prob, problem.predictive.log_prob(jnp.asarray(y)), problem.tolerance):
        raise Broken(f"traced again, with the same key, the predictions differ {where}: take all randomness from `key`")
    order = np.random.default_rng(2).permutation(len(y))
    if where := difference(log_prob[order], problem.log_prob(state, X[order], y[order]), problem.tolerance):
        raise Broken(
            f"with the test rows in another order the predictions differ {where}: random numbers must be"
            " shared by all rows, or made from each row"
        )
    same = np.repeat(X[:1], len(X), axis=0)
    if where := difference(log_prob[:1], problem.log_prob(state, same, y)[:1], problem.tolerance):
        raise Broken(f"with other rows beside it a row's log_prob differs {where}")
    others = np.repeat(y[:1], len(y))
    if where := difference(log_prob[:1], problem.log_prob(state, X, others)[:1], problem.tolerance):
        raise Broken(f"with other targets of the other test rows a row's log_prob differs {where}")


def _mass(problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
    """Every test row's probability, or integral, up to each target in rising order (Q, T); in regression, its cdf."""
    pointwise = jax.jit(jax.vmap(lambda y: problem.predictive.pointwise(y)))
    if problem.task != "regression":
        codes = [-1.0, 1.0] if problem.task == "binary" else range(CLASSES[problem.task])
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
