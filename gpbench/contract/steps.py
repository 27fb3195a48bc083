"""What `init` and `step` promise.  A check's docstring is the claim; it raises Broken, or Doubtful."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.contract.compare import Broken, difference, kind, leaves, require_arrays, same_structure
from gpbench.contract.problems import Problem, first_member
from gpbench.methods.base import Info


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
    if where := difference(problem.first[0], problem.start(), tolerance=0.0):
        raise Broken(f"two first states differ {where}: take all randomness from `key`")


def keeps_its_shape(problem: Problem) -> None:
    """step keeps the structure, shapes and types of the state, and reports one number"""
    state = problem.first[0]
    new, info = problem.stepped[0]
    if not isinstance(info, Info) or jnp.shape(info.objective) != ():
        raise Broken(f"step reports {kind(getattr(info, 'objective', info))}: return Info(objective) with one number")
    if not same_structure(state, new):
        raise Broken("step changes the structure of the state, or one of its static fields")
    for (place, old), (_, now) in zip(leaves(state), leaves(new)):
        if (jnp.shape(old), jnp.result_type(old)) != (jnp.shape(now), jnp.result_type(now)):
            raise Broken(f"step changes state{place} from {kind(old)} to {kind(now)}")


def steps_purely(problem: Problem) -> None:
    """step is pure: the same from the same, however often it is traced, and its arguments are left alone"""
    state, info = problem.stepped[0]
    if changed := problem.tracings[0]:
        raise Broken(f"step changes the state that it is given (at {changed[0]}): return a new one")
    if where := difference(problem.first_by_the_loop, (state, info.objective), problem.tolerance):
        raise Broken(
            f"a second step from the same, traced anew, differs {where}: take all randomness from `key`, and"
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
    if where := difference(numbers(*step(state, padded.X[0], padded.y[0], key)), plain, problem.tolerance):
        raise Broken(
            f"with three rows of weight 0 more, objective and log_prob differ {where}: have `batch.weight` as"
            " a factor in every sum over rows, and take N from `batch.total`"
        )


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
