"""Draws results/qsgp/solvers.png: how near the solvers of `qsgp`'s mean come to the exact one, against seconds.

    python scripts/qsgp_solvers.py [ROWS] [SECONDS]

Kernel functions around ROWS rows of kin40k (10,000 by default), protocol clean in float32, with the kernel and noise of
an exact GP of 1,000 rows.  All solvers take chunks of steps in turn until each has had SECONDS (25) of CPU time or has
converged.  No target of a test row is used: the residual is that of 1,000 training rows, and the error is the distance
to the exact mean at 1,000 other inputs, where conjugate gradients in float64 stand for the exact mean.  The values go
to solvers.csv beside the picture; with other arguments they are printed alone.
"""

import dataclasses
import sys
import time
from pathlib import Path
from unittest import mock

import pandas as pd

from gpbench import runtime

runtime.configure(device="cpu")

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from gpbench import data as data_layer  # noqa: E402
from gpbench.config.build import build_method  # noqa: E402
from gpbench.config.compose import compose  # noqa: E402
from gpbench.core.bases.kernel import in_blocks, product  # noqa: E402
from gpbench.core.solvers import ConjugateGradients, KernelSystem, Nystroem, relative  # noqa: E402
from gpbench.report.figures import style, write  # noqa: E402
from gpbench.train import batches  # noqa: E402

ROWS, SECONDS, OTHERS = 10_000, 25.0, 1_000
ADAGRAD = {"solver": "adagrad", "basis_batch": 3000, "batch_size": 3000, "control_rows": 200, "steps": 5000}
SOLVERS = {
    "adagrad": (ADAGRAD | {"rate": 0.003}, 10),
    "adagrad, 500 regressors": (ADAGRAD | {"rate": 0.0001, "regressors": 500}, 10),
    "blocks of n/12": ({"solver": "blocks", "batch_size": ROWS // 12}, 2),
    "cg": ({"solver": "cg"}, 2),
    "dual": ({"solver": "dual", "batch_size": 512, "steps": 5000}, 10),
}
"""Settings of each solver, and the steps between two points of its curve."""
KEY = jax.random.key(0)


def problem(rows: int):
    """The method, standardised training rows in random order, and inputs of other rows."""
    words = ["method.features=inducing", "method.basis=null", "method.optimiser=null", "method.tolerance=1e-4"]
    cfg = compose(["dataset=kin40k", "method=qsgp", *words])
    table = data_layer.configured(cfg)
    order = np.random.default_rng(0).permutation(cfg["dataset"]["rows"])
    prepared = data_layer.prepare(
        table, order[:rows], order[rows : rows + OTHERS], inputs="standardise", targets="standardise"
    )
    single = lambda array: jnp.asarray(array, jnp.float32)
    data = batches.whole(single(prepared.X), single(prepared.y))
    return build_method(cfg["method"]), data, single(prepared.X_test)


class Curve:
    """One solver on its way."""

    def __init__(self, method, data):
        self.method, self.data, self.steps, self.seconds = method, data, 0, 0.0
        self.state = method.init(data, key=KEY)
        take = lambda t, state: batches.take_step(method, state, data, t, key=KEY)[0]
        program = lambda state, start, end: jax.lax.fori_loop(start, end, take, state)
        self.advance = jax.jit(program).lower(self.state, 0, 1).compile()

    @property
    def weights(self):
        return self.state.weights.mean.ravel()[: self.data.total, None]

    def take(self, steps: int) -> None:
        begin = time.process_time()
        self.state = jax.block_until_ready(self.advance(self.state, self.steps, self.steps + steps))
        self.seconds += time.process_time() - begin
        self.steps += steps

    def is_over(self, seconds: float) -> bool:
        converged = self.method.converged(self.state)
        return self.seconds > seconds or (converged is not None and bool(converged))


def exact_mean(hyper, data, others):
    """The mean at the other inputs, by conjugate gradients in float64."""
    double = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float64), tree)
    system = KernelSystem(*double((hyper.kernel, hyper.likelihood.noise, data.X, data.y[:, None])))
    step = eqx.filter_jit(lambda state, system: state.step(system))
    state = ConjugateGradients.start(system, eqx.filter_jit(Nystroem.of_first)(system, 1000))
    while relative(state.residual, system.targets) > 1e-4:
        state = step(state, system)
    return eqx.filter_jit(product)(system.kernel, double(others), system.X, state.weights)


def measure(rows: int, seconds: float) -> pd.DataFrame:
    """A row for each point of each curve."""
    method, data, others = problem(rows)
    gp = method.subset_gp(data, method.subset_rows)
    with mock.patch.object(type(method), "subset_gp", lambda *_: gp):  # the same for all, and fitted once
        curves = {
            name: (Curve(dataclasses.replace(method, **settings), data), chunk)
            for name, (settings, chunk) in SOLVERS.items()
        }
    hyper = curves["cg"][0].state.hyper
    exact = exact_mean(hyper, data, others)

    @jax.jit
    def report(weights, hyper, X, y):
        residual = KernelSystem(hyper.kernel, hyper.likelihood.noise, X, y[:, None]).first_residual(weights, OTHERS)
        mean = in_blocks(lambda x: product(hyper.kernel, x, X, weights), others)
        return relative(residual, y[:OTHERS, None]), relative(mean - exact, exact)

    points = []
    while going := [name for name, (curve, _) in curves.items() if not curve.is_over(seconds)]:
        for name in going:
            curve, chunk = curves[name]
            curve.take(chunk if curve.steps < 20 * chunk else 4 * chunk)
            residual, error = report(curve.weights, hyper, data.X, data.y)
            facts = {"solver": name, "steps": curve.steps, "seconds": curve.seconds}
            points.append({**facts, "residual": float(residual), "error": float(error)})
            print(points[-1], flush=True)
    return pd.DataFrame(points)


def draw(table: pd.DataFrame, out: Path, rows: int) -> None:
    """Two panels, residual and error."""
    with style.context():
        figure = style.figure(6.8, 3.8)
        axes = figure.subplots(1, 2, sharex=True)
        colours = style.colours(list(table["solver"].unique()))
        for axis, quantity in zip(axes, ("residual", "error")):
            for name, line in table.groupby("solver", sort=False):
                axis.plot(line["seconds"], line[quantity], color=colours[name], label=name, linewidth=1.2)
            axis.set(xscale="log", yscale="log", title=quantity, xlabel="seconds of a CPU")
            for direction in (axis.xaxis, axis.yaxis):
                style.number_ticks(direction)
        axes[1].legend(fontsize=7, loc="lower left")
        note = (
            f"kin40k, {rows:,} training rows with a kernel function around each, float32, kernel and noise of an exact"
            " GP of 1,000 rows; seconds without init.  Residual: |y - (K + σ²I) mean| / |y| of 1,000 training rows; it"
            " dips where blocks has just solved these rows.  Error: distance to the exact GP's mean at 1,000 other"
            " inputs, over its norm.  AdaGrad: 3,000 rows and two draws of 3,000 functions in a step, rate 0.003 from a"
            " mean of 0, 0.0001 from a subset of 500 regressors; cg: preconditioner of rank 1,000, measured by itself;"
            " dual: 512 rows in a step.  A step of AdaGrad does not grow with the rows; one of the others does."
        )
        style.caption(figure, "The mean of kernel functions: four solvers against seconds", [note])
        write(figure, out / "solvers.png")


def main(rows: int, seconds: float) -> None:
    """Measures, and writes the table and the picture."""
    out = Path(__file__).resolve().parents[1] / "results" / "qsgp"
    table = measure(rows, seconds)
    if (rows, seconds) == (ROWS, SECONDS):
        table.to_csv(out / "solvers.csv", index=False, float_format="%.4g")
        draw(table, out, rows)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else ROWS, float(arguments[1]) if arguments[1:] else SECONDS)
