"""Draws results/gam/rank.png: what the bound of `gam` loses with R columns of the joint precision, and by mean field.

    python scripts/gam_rank.py [DATASET ...]

On split 0 of each data set, at most 10,000 training rows, coupled_covariance learns the hyper-parameters: one function
of each input and one of the first two, 16 inducing points each (4 by 4), 300 steps.  At these hyper-parameters the loss
is that of the best posterior of the other form, in nats.  The values go to rank.csv beside the picture; with names of
data sets they are printed alone.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from gpbench import runtime

runtime.configure(device="cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from gpbench import data as data_layer  # noqa: E402
from gpbench.config.build import build_method  # noqa: E402
from gpbench.config.compose import compose  # noqa: E402
from gpbench.core.additive import CoupledCovariance, coupled_precision, mean_field  # noqa: E402
from gpbench.core.gaussians import Natural  # noqa: E402
from gpbench.data import splits  # noqa: E402
from gpbench.methods.parts.variational import VariationalParameters, repeat  # noqa: E402
from gpbench.report.figures import style, write  # noqa: E402
from gpbench.train import batches  # noqa: E402

DATASETS = ("friedman_effects", "friedman_copula", "boston", "concrete", "energy", "power", "protein")
RANKS = (8, 16, 24, 32, 40, 48, 56, 64)
MOST_ROWS = 10_000
SETTINGS = ("method=gam", "method.posterior=coupled_covariance", "method.pairs=[[0,1]]", "method.steps=300")


def losses(dataset: str) -> Mapping[str, float]:
    """Nats below the bound of coupled_covariance, by rank and for mean field, with the numbers C, T and N."""
    cfg = compose([f"dataset={dataset}", *SETTINGS])
    rows = data_layer.configured(cfg)
    train, test = splits.indices(cfg["dataset"], rows, 0)
    prepared = data_layer.prepare(rows, train[:MOST_ROWS], test, inputs="standardise", targets="standardise")
    data = batches.whole(jnp.asarray(prepared.X), jnp.asarray(prepared.y))
    method = build_method(cfg["method"])
    state = method.init(data, key=jax.random.key(0))
    step = jax.jit(lambda state: method.step(state, data, key=jax.random.key(0))[0])
    for _ in range(method.steps):
        state = step(state)
    layer, likelihood = state.parameters.layer, state.parameters.likelihood
    V, _ = layer.whitened(data.X)
    factor = Natural(V @ V.T / likelihood.noise, V @ data.y / likelihood.noise)

    def bound(q) -> float:
        return float(method.bound(VariationalParameters(layer, likelihood, repeat(q, likelihood.latents())), data))

    full = bound(CoupledCovariance(factor.posterior()))
    by_rank = {str(r): full - bound(coupled_precision(factor, r)) for r in RANKS if r <= len(V)}
    facts = {"rows": len(prepared.y), "C": len(layer.order), "T": len(V)}
    return {**facts, "mean field": full - bound(mean_field(factor, layer.shapes)), **by_rank}


def draw(table: pd.DataFrame, out: Path) -> None:
    """A line for each data set, nats against R, and its loss by mean field at the right."""
    with style.context():
        figure = style.figure(6.4, 4.0)
        axis, beside = figure.subplots(1, 2, sharey=True, width_ratios=[6, 1])
        for (name, row), colour in zip(table.iterrows(), style.colours(list(table.index)).values()):
            lost = row[[str(r) for r in RANKS]].clip(lower=1e-3)
            axis.plot(RANKS, lost, "o-", color=colour, markersize=4, label=name)
            beside.plot([0], [max(row["mean field"], 1e-3)], "o", color=colour, markersize=5)
        axis.set(yscale="log", xlabel="R, columns of the joint precision", ylabel="nats lost (below 0.001: at 0.001)")
        axis.set_xticks(RANKS)
        beside.set_xticks([0], ["mean field"])
        axis.legend(fontsize=7)
        note = (
            "Split 0, one function of each input and one of the first two, 16 inducing points each;"
            " hyper-parameters learned by the joint covariance in 300 steps on at most 10,000 rows."
        )
        style.caption(figure, "Bound below that of the joint covariance at the same hyper-parameters", [note])
        for ending in ("png", "pdf"):
            write(figure, out / f"rank.{ending}")


def main(datasets: Sequence[str]) -> None:
    """Measures, prints, and writes the table and the picture."""
    out = Path(__file__).resolve().parents[1] / "results" / "gam"
    table = pd.DataFrame({name: losses(name) for name in datasets}).T.rename_axis("data set")
    print(table.round(2).to_string())
    if list(datasets) == list(DATASETS):
        table.round(4).to_csv(out / "rank.csv")
        draw(table, out)


if __name__ == "__main__":
    main(sys.argv[1:] or DATASETS)
