"""Draws results/qsgp/fig1.png: what a control variate leaves of the variance of `qsgp`'s estimates (figure 1 there).

    python scripts/qsgp_variance.py [EVALUATIONS]

The estimate is that of mean' Φ' Φ mean / (2 σ²) in theorem 1 from 500 rows and two draws of 500 of m = 10,000 random
Fourier features, with mean ~ N(0, I), all 40,000 rows of kin40k and the control variate of each rank; then that of its
gradient.  The paper does not print its kernel, on which the figure depends: here it is isotropic of three lengthscales,
and that with which `qsgp` starts, of an exact GP of 1,000 rows.  Neither σ² nor the amplitude changes a ratio of
variances.  The values go to fig1.csv beside the picture; with a number of evaluations other than 1,000 they are printed
alone.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

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
from gpbench.core.bases import RandomFeatures, draw_blocks  # noqa: E402
from gpbench.core.bases.fourier import spectral_degrees  # noqa: E402
from gpbench.core.kernels import Kernel  # noqa: E402
from gpbench.methods.base import Batch  # noqa: E402
from gpbench.methods.parts.basis_bound import squared_error  # noqa: E402
from gpbench.methods.parts.basis_weights import ControlVariate, outputs_of  # noqa: E402
from gpbench.methods.parts.exact import fit_subset  # noqa: E402
from gpbench.report.figures import style, write  # noqa: E402
from gpbench.train import batches  # noqa: E402

RANKS = (5, 10, 30, 100, 300, 500)
LENGTHSCALES = (1.5, 2.5, 4.0)
BASIS, ROWS, FUNCTIONS = 10_000, 500, 500
EVALUATIONS, GROUPS = 1_000, 20
COLUMNS = ("objective", "gradient")


def estimates(data: Batch, kernel: Kernel, key):
    """A function of a key: the estimate and the control variates of the ranks in rows, value and gradient in columns.

    The estimate of a rank is the first row plus that of the rank.
    """
    basis_key, mean_key = jax.random.split(key)
    basis = RandomFeatures(key=basis_key, size=BASIS, block=1, degrees=spectral_degrees(kernel))
    mean = jax.random.normal(mean_key, (BASIS, 1), data.X.dtype)
    support = data.X[-max(RANKS) :]
    running = basis.evaluate(kernel, support, jnp.arange(BASIS)) @ mean
    controls = [ControlVariate(support[:p], kernel, running[:p], None) for p in RANKS]
    scale = BASIS / FUNCTIONS

    def evaluate(key):
        row_key, *draw_keys = jax.random.split(key, 3)
        batch = batches.at_step(data, ROWS, jnp.asarray(0), key=row_key)
        drawn = [draw_blocks(BASIS, FUNCTIONS, False, key=k) for k in draw_keys]
        locations = [basis.locations(index, data.X.shape[1], data.X.dtype) for index in drawn]

        def terms(means):
            at = lambda X: [scale * outputs_of(basis, kernel, X, *draw) for draw in zip(locations, means)]
            left, right = at(support)
            parts = [c.term(left[: len(c.X)], right[: len(c.X)], data.total / len(c.X)) for c in controls]
            return 0.5 * jnp.stack([squared_error(*at(batch.X), batch), *parts])

        values, pullback = jax.vjp(terms, [mean[index] for index in drawn])
        (pulled,) = jax.vmap(pullback)(jnp.eye(len(values), dtype=values.dtype))
        gradients = jnp.zeros((len(values), BASIS), values.dtype)
        for index, part in zip(drawn, pulled):
            gradients = gradients.at[:, index].add(part[..., 0])
        return jnp.concatenate([values[:, None], gradients], axis=1)

    return evaluate


@eqx.filter_jit
def moments(data: Batch, kernel: Kernel, evaluations: int, key):
    """Sums over groups of evaluations: of what `estimates` returns, and of its products between rows.

    The first are (groups, 1 + ranks, 1 + m); the second (groups, 2, 1 + ranks, 1 + ranks), of values and of gradients.
    """
    evaluate = estimates(data, kernel, key)

    def add(totals, key):
        parts = evaluate(key)
        products = jnp.stack([part @ part.T for part in (parts[:, :1], parts[:, 1:])])
        return jax.tree.map(jnp.add, totals, (parts, products)), None

    count, dtype = 1 + len(RANKS), data.X.dtype
    start = jnp.zeros((count, 1 + BASIS), dtype), jnp.zeros((2, count, count), dtype)
    keys = jax.random.split(jax.random.fold_in(key, 1), (GROUPS, evaluations // GROUPS))
    return jax.lax.map(lambda keys: jax.lax.scan(add, start, keys)[0], keys)


def ratios(totals: np.ndarray, products: np.ndarray, evaluations: int) -> np.ndarray:
    """Variances with a control variate over that without, (2, 2, ranks): of coefficient 1 and the best, value and
    gradient, by rank.  The best coefficient is estimated from the same evaluations."""
    sums = np.stack([part @ part.T for part in (totals[:, :1], totals[:, 1:])])
    covariance = (products - sums / evaluations) / (evaluations - 1)
    alone, cross = covariance[:, :1, 0], covariance[:, 0, 1:]
    control = np.diagonal(covariance, axis1=1, axis2=2)[:, 1:]
    return np.stack([alone + 2.0 * cross + control, alone - cross**2 / control]) / alone


def with_errors(sums, evaluations: int) -> tuple[np.ndarray, np.ndarray]:
    """The ratios and their standard errors, by the jackknife over groups."""
    totals, products = (np.asarray(part) for part in sums)
    whole = totals.sum(0), products.sum(0)
    size = evaluations // GROUPS
    without = [ratios(whole[0] - t, whole[1] - p, evaluations - size) for t, p in zip(totals, products)]
    return ratios(*whole, evaluations), np.sqrt((GROUPS - 1) * np.var(without, axis=0))


def measure(evaluations: int) -> pd.DataFrame:
    """A row for each kernel, rank and quantity."""
    data, kernels = problem()
    rows = []
    for name, kernel in kernels.items():
        left, errors = with_errors(moments(data, kernel, evaluations, jax.random.key(0)), evaluations)
        for i, rank in enumerate((0, *RANKS)):
            for j, quantity in enumerate(COLUMNS):
                facts = {"kernel": name, "rank": rank, "variance of": quantity}
                plain, best = ((left[k, j, i - 1], errors[k, j, i - 1]) if rank else (1.0, 0.0) for k in range(2))
                rows.append({**facts, "ratio": plain[0], "se": plain[1], "best ratio": best[0], "best se": best[1]})
        print(f"{name}: {kernel.describe()}", flush=True)
    return pd.DataFrame(rows)


def problem() -> tuple[Batch, Mapping[str, Kernel]]:
    """The standardised rows in random order, and the kernels by name."""
    cfg = compose(["dataset=kin40k", "method=qsgp", "protocol=evans2020"])
    table = data_layer.configured(cfg)
    order = np.random.default_rng(0).permutation(cfg["dataset"]["rows"])
    prepared = data_layer.prepare(table, order, order[:1], inputs="standardise", targets="standardise")
    data = batches.whole(jnp.asarray(prepared.X), jnp.asarray(prepared.y))
    method = build_method(cfg["method"])
    noise = {"noise": method.target_noise, "floor": method.noise_floor}
    exact = fit_subset(method.kernel, data, method.subset_rows, start=method.lengthscale_start, **noise).kernel
    kernels = {f"lengthscale {length:g}": isotropic(exact, length) for length in LENGTHSCALES}
    kernels[f"exact GP of {method.subset_rows:,} rows"] = exact
    return eqx.tree_at(lambda d: d.y, data, jnp.zeros_like(data.y)), kernels  # the quadratic term alone


def isotropic(kernel: Kernel, lengthscale: float) -> Kernel:
    """The same family with this lengthscale in every input."""
    fill = lambda each: jnp.full_like(each, 2.0 * np.log(lengthscale))
    return eqx.tree_at(lambda k: k.log_lengthscale2, kernel, replace_fn=fill)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Two panels, value and gradient, with a line for each kernel; dashed with the best coefficient."""
    ticks = range(1 + len(RANKS))
    with style.context():
        figure = style.figure(6.8, 3.8)
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (quantity, part) in zip(axes, table.groupby("variance of", sort=False)):
            names = list(part["kernel"].unique())
            for name, colour in style.colours(names).items():
                line = part[part["kernel"] == name]
                axis.errorbar(ticks, line["ratio"], 2 * line["se"], fmt="o-", color=colour, markersize=4, label=name)
                axis.plot(ticks, line["best ratio"], linestyle=style.DASHES["dashed"], color=colour, linewidth=1.0)
            axis.axhline(0.1, color=style.PALETTE["grey"], linewidth=0.8, linestyle=style.DASHES["dotted"])
            axis.set(yscale="log", title=quantity, xlabel="rank of the control variate")
            axis.set_xticks(ticks, [0, *RANKS])
        axes[0].set_ylabel("variance over that of rank 0")
        axes[0].legend(fontsize=7, loc="lower left")
        note = (
            f"kin40k, 40,000 rows, m = {BASIS:,} random Fourier features, {ROWS} rows and two draws of {FUNCTIONS}"
            f" functions, mean ~ N(0, I); {EVALUATIONS:,} evaluations for each kernel, the same for all ranks; two"
            " standard errors, of the evaluations alone, of one draw of mean and features.  Gradient: variances"
            " averaged over its m entries.  Dashed: with the best coefficient of the control variate.  Lengthscales"
            " are in standard deviations of the inputs; the paper does not print its own.  Dotted: a tenth, which"
            " it reports at rank 300."
        )
        title = "Figure 1: what a control variate leaves of the variance of theorem 1's quadratic term"
        style.caption(figure, title, [note])
        for ending in ("png", "pdf"):
            write(figure, out / f"fig1.{ending}")


def main(evaluations: int) -> None:
    """Measures, prints, and writes the table and the picture."""
    out = Path(__file__).resolve().parents[1] / "results" / "qsgp"
    table = measure(evaluations)
    print(table.round(4).to_string(index=False))
    if evaluations == EVALUATIONS:
        out.mkdir(exist_ok=True)
        table.round(4).to_csv(out / "fig1.csv", index=False)
        draw(table, out)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVALUATIONS)
