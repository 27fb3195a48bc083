"""Timing that leaves compilation out, and the machine's own limit."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from benches._results import measured

from gpbench.train import batches

STEPS = 10
"""In one call, of a compiled loop or a peer's."""


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


def seconds_per_step(method, X, y) -> float:
    """Seconds per step of one of our methods, in a compiled loop over minibatches."""
    data, key = batches.whole(jnp.asarray(X), jnp.asarray(y)), jax.random.key(0)

    @jax.jit
    def chunk(state):
        def one(t, state):
            batch = batches.at_step(data, method.batch_size, t, key=key)
            return method.step(state, batch, key=jax.random.fold_in(key, t))[0]

        return jax.lax.fori_loop(0, STEPS, one, state)

    return seconds_each(chunk, method.init(data, key=key), least=4.0) / STEPS


def prepare_torch() -> Callable[[], None]:
    """Sets PyTorch to float64 on the GPU, where there is one, as JAX is; a function that waits for the device."""
    import torch

    torch.set_default_dtype(torch.float64)
    if not torch.cuda.is_available():
        return lambda: None
    torch.set_default_device("cuda")
    return torch.cuda.synchronize


def seconds_of_loop(step: Callable, wait: Callable[[], None], rounds: int = 5) -> float:
    """The best of `rounds` means over steps that are called one by one; `wait` returns when the device is done."""
    for _ in range(3):
        step()
    best = float("inf")
    for _ in range(rounds):
        wait()
        started = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        best = min(best, (time.perf_counter() - started) / STEPS)
    return best


def milliseconds(name: str, seconds: Callable[[], float]) -> str:
    """Milliseconds as text, kept as a result of this name; a dash for a peer that is not installed."""
    try:
        return f"{1e3 * measured(name, seconds()):.2f}"
    except ImportError:
        return "-"
