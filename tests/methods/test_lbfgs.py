"""L-BFGS inside a program, against known minima and scipy's L-BFGS-B."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from problems import KEY, binary, train
from scipy.optimize import minimize

from gpbench.core import lbfgs
from gpbench.methods.vi.svi import SVI


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def run(function, x, steps, **options):
    """(x, state, values) after `steps` steps, with the number of accepted points as `extra`."""

    def evaluate(x, extra):
        return *jax.value_and_grad(function)(x), extra + 1

    def one(carry, _):
        x, state = carry
        return lbfgs.step(evaluate, x, state, **options), state.value

    (x, state), values = jax.lax.scan(one, (x, lbfgs.start(x, jnp.array(0))), length=steps)
    return x, state, values


def test_the_first_step_only_evaluates():
    x = jnp.array([-1.2, 1.0])
    moved, state, _ = run(rosenbrock, x, 1)
    np.testing.assert_array_equal(moved, x)
    np.testing.assert_allclose(state.value, rosenbrock(x))
    np.testing.assert_allclose(state.gradient, jax.grad(rosenbrock)(x))
    assert not state.converged


def test_minimum_of_rosenbrock_from_several_starts_in_one_program_and_alone():
    starts = jax.random.normal(jax.random.key(0), (5, 6))
    together, states, values = jax.jit(jax.vmap(lambda x: run(rosenbrock, x, 200, tolerance=1e-15)))(starts)
    assert (states.value < 4.0).all()  # 0, or the other local minimum near 3.97
    np.testing.assert_allclose(jax.vmap(jax.grad(rosenbrock))(together), 0.0, atol=1e-4)
    assert (np.diff(values[:, 1:], axis=1) <= 0).all()
    alone, *_ = run(rosenbrock, starts[0], 200, tolerance=1e-15)
    np.testing.assert_allclose(alone, together[0], atol=1e-6)


def test_a_converged_problem_stays_while_others_go_on():
    starts = jnp.array([[1.0, 1.0], [-1.2, 1.0]])  # the first is the minimum
    few, *_ = jax.vmap(lambda x: run(rosenbrock, x, 20))(starts)
    x, states, _ = jax.vmap(lambda x: run(rosenbrock, x, 100))(starts)
    np.testing.assert_array_equal(x[0], [1.0, 1.0])
    np.testing.assert_array_equal(few[0], [1.0, 1.0])
    assert states.converged.all()
    np.testing.assert_allclose(x[1], 1.0, atol=1e-3)


def test_a_nan_is_too_far():
    # minimum at x = 1.8, not a number beyond 2, where the line search arrives by doubling
    x, state, _ = run(lambda x: jnp.sum(-5.0 * x - jnp.log(2.0 - x)), jnp.array([0.0]), 40)
    np.testing.assert_allclose(x, 1.8, atol=1e-4)
    assert state.converged


def test_extra_is_that_of_the_accepted_point():
    """Each evaluation adds one to what the last accepted point had, so it counts accepted points."""
    _, state, _ = run(lambda x: 0.5 * jnp.sum(x**2), jnp.array([3.0, 4.0]), 3)
    assert state.extra == 3


def test_same_optimum_as_l_bfgs_b_of_scipy_on_svi():
    data, method = binary(40), SVI(inducing=5)
    start = method.init(data, key=KEY)
    _, objective = train(method, data, 600, start)
    x, unravel = ravel_pytree(start.parameters)
    minus_bound = jax.jit(jax.value_and_grad(lambda x: -method.bound(unravel(x), data)))
    theirs = minimize(minus_bound, x, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10000})
    # Both stop in a flat valley where a step gains next to nothing: rounding alone moves the end by 1e-4.
    np.testing.assert_allclose(objective[-1], -theirs.fun, rtol=3e-4)
    assert (np.diff(objective) >= 0).all()
