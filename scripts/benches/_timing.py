"""Timing that leaves compilation out, and the machine's own limit."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp


def seconds_each(function: Callable, *args, least: float = 1.0, rounds: int = 5) -> float:
    """The best of `rounds` timings of a compiled function, each of enough calls to last `least` / rounds seconds."""
    jax.block_until_ready(function(*args))
    started = time.perf_counter()
    jax.block_until_ready(function(*args))
    calls = max(1, int(least / rounds / (time.perf_counter() - started)))
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(calls):
            out = function(*args)
        jax.block_until_ready(out)
        best = min(best, (time.perf_counter() - started) / calls)
    return best


def product_rate(m: int, n: int, dtype=jnp.float64) -> float:
    """FLOP/s of the product (m, m) x (m, n), the shape that the methods' work has."""
    a = jax.random.normal(jax.random.key(0), (m, m), dtype)
    b = jax.random.normal(jax.random.key(1), (m, n), dtype)
    return 2.0 * m * m * n / seconds_each(jax.jit(jnp.matmul), a, b)
