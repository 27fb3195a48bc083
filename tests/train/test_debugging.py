"""JAX's switches for debugging work, and a process that was forked after JAX started says so."""

import os
import warnings

import jax
import numpy as np
import pytest

from gpbench import arithmetic, runtime
from gpbench.core.linalg import inverse_cholesky
from gpbench.estimators import Regressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=12)


def fitted(method):
    return Regressor(method=method, options={"method.steps": 2}).fit(X, Y).predict(X, return_std=True)


def test_without_jit_the_numbers_are_the_same_to_rounding():
    compiled = fitted("linear")
    with jax.disable_jit():
        np.testing.assert_allclose(fitted("linear"), compiled, rtol=1e-6, atol=1e-9)


def test_jit_stays_off_in_a_run_where_it_was_turned_off():
    with jax.disable_jit():
        arithmetic.fix()
        assert jax.config.jax_disable_jit


def test_a_healthy_run_is_not_stopped_by_the_search_for_nan():
    with jax.debug_nans(True):
        np.testing.assert_allclose(inverse_cholesky(4.0 * jax.numpy.eye(2)), 0.5 * np.eye(2), rtol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_that_was_forked_after_jax_had_started_is_refused():
    jax.devices()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            runtime.refuse_fork()
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    line = os.read(reader, 4096).decode()
    assert line.startswith("ConfigError: this process was forked after JAX had started") and "\n" not in line
