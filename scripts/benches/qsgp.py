"""Milliseconds per step of `qsgp` in float32, and the ratio to the time of what a step must do at least once.

These are the functions at the minibatch and at the support rows of the control variate, cosines of whose arguments the
rate is measured in tiles of the best size; with hyper-parameters learned, the sines at the minibatch too; and the
products with them at the rate of matrix products.  Random numbers, updates and memory count nothing.  The step makes
cosines several times.  For ratios pin it to a core: `taskset -c 1 scripts/bench qsgp`.
"""

import argparse

import jax
import jax.numpy as jnp
import optax
from benches._results import measured, sizes
from benches._timing import STEPS, product_rate, seconds_each
from benches.svgp import problem

from gpbench import runtime
from gpbench.core.bases.fourier import cosine_of_turns
from gpbench.methods.weight_space.qsgp import QSGP
from gpbench.train import batches

TILES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)


def cosine_rate(dtype=jnp.float32) -> float:
    """Cosines a second, in tiles of the best of the sizes `TILES`."""
    tiles = (jnp.linspace(-1.0, 1.0, size, dtype=dtype) for size in TILES)
    return max(16 * len(tile) / seconds_each(_cosines, tile, least=0.4) for tile in tiles)


@jax.jit
def _cosines(turns):
    add = lambda i, total: total + cosine_of_turns(turns + i.astype(turns.dtype) / 16)
    return jax.lax.fori_loop(0, 16, add, jnp.zeros_like(turns))


def least(method: QSGP, d: int) -> tuple[float, float]:
    """Cosines or sines, and operations in products, that a step must do at least once."""
    b, p, c = method.batch_size, method.control_rows, 2 * min(method.basis_batch, method.basis)
    width, learned = 1 + method.dense_columns, method.optimiser is not None
    cosines = (b + p) * c + learned * b * c
    values = (b + p) * d + (b + p) * width + 2 * b  # arguments; times the columns; squares times two vectors
    gradients = (b + p) * width + p * width  # of the columns; the control variate's advance
    of_hyper = b * width + b + b * d  # of the functions, and of the arguments
    return cosines, 2.0 * c * (values + gradients + learned * of_hyper)


def seconds_per_step(method: QSGP, X, y) -> float:
    """As in training: a compiled loop whose state takes the old one's memory, so that a step copies nothing of m."""
    data, key = batches.whole(X, y), jax.random.key(0)

    def one(_, state):
        batch = batches.at_step(data, method.batch_size, state.step, key=key)
        return method.step(state, batch, key=jax.random.fold_in(key, state.step))[0]

    chunk = jax.jit(lambda state: jax.lax.fori_loop(0, STEPS, one, state), donate_argnums=0)
    state = jax.tree.map(jnp.copy, method.init(data, key=key))

    def advance():
        nonlocal state
        state = chunk(state)
        return state

    return seconds_each(advance, least=4.0, rounds=20) / STEPS  # short rounds: others may use the machine


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    shapes = [*((10**power, 0) for power in (4, 5, 6, 7)), *((10**power, 100) for power in (4, 5, 6))]
    parser.add_argument(
        "--sizes", type=sizes(2), nargs="+", default=shapes, metavar="M,K", help="functions, dense columns"
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--functions", type=int, default=10_000, help="in each of the two draws of a step")
    parser.add_argument("--rank", type=int, default=300, help="of the control variate")


def main(options: argparse.Namespace) -> None:
    X, y = (jnp.asarray(array, jnp.float32) for array in problem(options.rows, options.inputs))
    print(
        f"float32 on {runtime.device_name()}; {options.batch} rows, 2 x {options.functions} functions, rank"
        f" {options.rank}, {options.inputs} inputs; ms per step"
    )
    print("      m    k   hyper     step  cosines  products  ratio   Gcos/s  GFLOP/s")
    for m, k in options.sizes:
        for optimiser in (None, optax.adam(1e-5)):
            method = QSGP(
                name="qsgp",
                basis=m,
                basis_batch=options.functions,
                dense_columns=k,
                optimiser=optimiser,
                control_rows=options.rank,
                batch_size=options.batch,
                steps=20_000,
            )
            rates = [limits(options.batch)]  # before and after, since a shared machine's change
            each = measured(f"qsgp {m:g},{k} {optimiser and 'learned'}", seconds_per_step(method, X, y), "float32")
            cosine, product = map(max, zip(*rates, limits(options.batch)))
            cosines, operations = least(method, options.inputs)
            parts = cosines / cosine, operations / product
            print(
                f"{m:7.0e} {k:4d} {'fixed' if optimiser is None else 'learned':>7s} {1e3 * each:8.1f}"
                f" {1e3 * parts[0]:8.1f} {1e3 * parts[1]:9.1f} {each / sum(parts):6.2f} {cosine / 1e9:8.2f}"
                f" {product / 1e9:8.1f}",
                flush=True,
            )


def limits(rows: int) -> tuple[float, float]:
    """Cosines a second, and operations a second of a product of the minibatch's size with a tile of functions."""
    return cosine_rate(), product_rate(rows, 2000, jnp.float32)
