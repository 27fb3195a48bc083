"""Seconds per iteration of batch `sep` on data of pima's shape, against the time its matrix products must take."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from benches._results import measured
from benches._timing import product_rate, seconds_each

from gpbench import runtime
from gpbench.core.optimisers import adaptive_rates
from gpbench.methods.ep.sep import SEP
from gpbench.train import batches

STEPS = 10


def flops(n: int, m: int, d: int) -> float:
    """The algorithm's operations in one iteration, from its formulas (XLA's own count leaves LAPACK calls out).

    Products of (m, m) or (m, n) with (m, n): V = A Kzx; V ν Vᵀ and R V before and after the site update; Σ V; Aᵀ H;
    (H + V β) Vᵀ.  Three inverse Cholesky factors at 2 m³/3, and Σ = RᵀR, Aᵀ(.)A.  Kernels: x·zᵀ and two products back.
    """
    return 8 * 2 * m * m * n + 3 * 2 * m**3 / 3 + 3 * 2 * m**3 + 3 * 2 * d * m * (n + m)


def problem(n: int, d: int, m: int, splits: int, dtype):
    """Labels from a smooth function of standard normal inputs, and `sep`'s first states."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(splits, n, d))
    y = np.where(np.sin(X[..., 0] + X[..., 1]) + 0.5 * rng.normal(size=(splits, n)) > 0, 1.0, -1.0)
    method = SEP(name="sep", inducing=m, optimiser=adaptive_rates(1e-2), steps=250)
    X, y = jnp.asarray(X, dtype), jnp.asarray(y, dtype)
    states = [method.init(batches.whole(X[i], y[i], 2), key=jax.random.key(i)) for i in range(splits)]
    return method, jax.tree.map(lambda *leaves: jnp.stack(leaves), *states), X, y


def program(method: SEP):
    """The compiled chunk of `STEPS` iterations on several splits."""

    def on_split(state, X, y):
        data = batches.whole(X, y, 2)
        return jax.lax.scan(lambda s, _: method.step(s, data, key=None), state, None, length=STEPS)[0]

    return jax.jit(jax.vmap(on_split))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--n", type=int, default=691)
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--inducing", type=int, nargs="+", default=[104, 345])
    parser.add_argument("--splits", type=int, nargs="+", default=[1, 20], help="splits trained in one program")
    parser.add_argument("--precision", default="float64", choices=["float64", "float32"])


def main(options: argparse.Namespace) -> None:
    dtype = jnp.dtype(options.precision)
    print(f"sep, batch, n={options.n}, {options.inputs} inputs, {options.precision}, on {runtime.device_name()}")
    print("    m splits  ms/iteration    MFLOP  product GFLOP/s  limit ms  ratio")
    for m in options.inducing:
        for splits in options.splits:
            method, states, X, y = problem(options.n, options.inputs, m, splits, dtype)
            # the rate before and after, since a shared machine's changes
            before = product_rate(m, options.n, dtype)
            each = seconds_each(program(method), states, X, y, least=4.0) / STEPS / splits
            measured(f"sep {options.precision} m={m} splits={splits}", each, options.precision)
            rate = max(before, product_rate(m, options.n, dtype))
            work = flops(options.n, m, options.inputs)
            print(
                f"{m:5d} {splits:6d} {1e3 * each:13.2f} {work / 1e6:8.0f} {rate / 1e9:16.1f} {1e3 * work / rate:9.2f}"
                f" {each * rate / work:6.2f}",
                flush=True,
            )
