"""Milliseconds per minibatch step of an additive model with each posterior, and fitted exponents in C and M.

Every step is value and gradient of the bound and Adam on all parameters; components are functions of one input each.
`coupled_precision` has M columns, as in the paper, whose Table 1 has for the likelihood of N rows C M³ + N C M² (mean
field), C³ M³ + N C² M² (joint covariance) and C M³ + N C² M² (joint precision).
"""

import argparse
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from benches._timing import product_rate, seconds_each
from benches.svgp import problem

from gpbench import runtime
from gpbench.methods.additive.gam import GAM
from gpbench.train import batches

POSTERIORS = ("mean_field", "coupled_covariance", "coupled_precision")


def step_of(posterior: str, n: int, c: int, m: int, b: int) -> tuple[float, float]:
    """Seconds of a step, and MiB that its program needs beside data and state."""
    X, y = problem(n, max(c, 2))
    data = batches.whole(jnp.asarray(X[:, :c]), jnp.asarray(y))
    method = GAM(name="gam", posterior=posterior, rank=m if posterior == "coupled_precision" else None, inducing=m,
                 batch_size=b, optimiser=optax.adam(1e-2))  # fmt: skip
    state = method.init(data, key=jax.random.key(0))
    batch = batches.at_step(data, b, jnp.asarray(0), key=jax.random.key(0))
    one = jax.jit(partial(method.step, key=jax.random.key(1))).lower(state, batch).compile()
    return seconds_each(one, state, batch, rounds=3), one.memory_analysis().temp_size_in_bytes / 2**20


def flops(posterior: str, c: int, m: int, b: int) -> float:
    """Floating-point operations of one step.

    Kernels (an exponential of some 26 operations for each entry, forward and twice back; error functions are of rows
    and inducing points alone), A Kzx and the posterior's products forward and twice
    back, an inverse Cholesky factor forward and its products back.
    """
    t = c * m + 1
    factor = lambda size: 2 * size**3 / 3 + 3 * 2 * size**3
    shared = c * (factor(m) + 3 * 2 * m * m * b + 3 * 26 * m * b)
    of_q = {
        "mean_field": 3 * 2 * c * m * m * b,
        "coupled_covariance": 3 * 2 * t * t * b,
        "coupled_precision": 3 * (2 * t * m * b + 2 * m * m * b + 2 * t * m * m) + factor(m),
    }
    return shared + of_q[posterior]


def exponent(sizes: list[int], seconds: list[float]) -> str:
    """The slope of log seconds against log size, with its standard error."""
    x, y = np.log(sizes), np.log(seconds)
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return f"{slope:.2f} ± {covariance[0, 0] ** 0.5:.2f}"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench gam", description=__doc__)
    parser.add_argument("--components", nargs="+", type=int, default=[2, 4, 8, 16, 32], metavar="C")
    parser.add_argument("--inducing", nargs="+", type=int, default=[8, 16, 32, 64], metavar="M")
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 100_000], metavar="N")
    parser.add_argument("--batch", type=int, default=1000, metavar="B")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    b, n = options.batch, options.rows[0]
    c0 = sorted(options.components)[len(options.components) // 2]
    m0 = sorted(options.inducing)[max(0, len(options.inducing) - 2)]
    print(f"float64 on {runtime.device_name()}; {b} of N rows in a step; limit: its operations at the rate of an"
          " (M, M) by (M, B) product, (T, T) for coupled_covariance")  # fmt: skip
    print("posterior               N    C    M  ms/step   limit  ratio   MiB")
    seconds_of: dict[tuple[str, int, int], float] = {}
    for posterior in POSTERIORS:
        along = [(c, m0) for c in options.components] + [(c0, m) for m in options.inducing]
        largest = [(rows, max(options.components), max(options.inducing)) for rows in options.rows]
        for rows, c, m in dict.fromkeys(itertools.chain(((n, *size) for size in along), largest)):
            seconds, memory = step_of(posterior, rows, c, m, b)
            inner = c * m + 1 if posterior == "coupled_covariance" else m
            limit = flops(posterior, c, m, b) / product_rate(inner, b)
            seconds_of.setdefault((posterior, c, m), seconds)
            ratio = f"{1e3 * seconds:8.2f} {1e3 * limit:7.2f} {seconds / limit:6.1f}"
            print(f"{posterior:18s} {rows:6d} {c:4d} {m:4d} {ratio} {memory:5.0f}", flush=True)
        in_c = exponent(options.components, [seconds_of[posterior, c, m0] for c in options.components])
        in_m = exponent(options.inducing, [seconds_of[posterior, c0, m] for m in options.inducing])
        print(f"{posterior}: exponent {in_c} in C at M = {m0}, {in_m} in M at C = {c0}")
