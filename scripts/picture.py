"""Draws docs/banana.png: the decision boundary and the inducing points of `sep` for M = 4, 16 and 64 (README.md).

Figure 2 of the paper sep for that method: the first 400/4900 realisation of banana, whose index files come with a
mirror only (docs/reference/data.md).  `python scripts/picture.py out.png dataset=moons` needs no download; any binary
data set with two inputs will do, and any other overrides of `gpbench run`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from hydra.utils import instantiate
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from gpbench import data, metrics
from gpbench.config.compose import compose
from gpbench.data import splits
from gpbench.train import batches

SIZES = (4, 16, 64)
NEGATIVE, POSITIVE = "#2b6cb0", "#c0562f"


def main(out: Path, overrides: Sequence[str]) -> None:
    """Trains in float64 on split 0 of a data set with two inputs and draws one panel per number of inducing points."""
    jax.config.update("jax_enable_x64", True)
    figure, axes = plt.subplots(1, len(SIZES), figsize=(10, 3.7), sharex=True, sharey=True, layout="constrained")
    for axis, inducing in zip(axes, SIZES):
        panel(axis, [*overrides, f"method.inducing={inducing}"])
    figure.savefig(out, dpi=110)
    Image.open(out).convert("RGB").quantize(128).save(out, optimize=True)  # a third of the bytes, and no difference
    print(f"{out}: {out.stat().st_size / 1e3:.0f} KB")


def panel(axis, overrides: Sequence[str]) -> None:
    """One training and its picture."""
    cfg = compose(overrides)
    dataset = data.load(cfg["dataset"])
    rows = data.prepare(dataset, *splits.indices(cfg["dataset"], dataset, 0))
    everything = batches.whole(jnp.asarray(rows.X), jnp.asarray(rows.y), rows.classes)
    method = instantiate(cfg["method"])

    first = method.init(everything, key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), method.steps)
    state, _ = jax.jit(lambda s: jax.lax.scan(lambda s, key: method.step(s, everything, key=key), s, keys))(first)

    key = jax.random.key(2)
    test = method.predict(state, jnp.asarray(rows.X_test), key=key)
    log_prob, log_probs = np.asarray(test.log_prob(rows.y_test)), np.asarray(test.log_probs)
    scores = metrics.score(rows.task, metrics.Scored(y=rows.y_test, log_prob=log_prob, log_probs=log_probs))

    low, high = rows.X.min(axis=0) - 0.2, rows.X.max(axis=0) + 0.2
    grid = np.meshgrid(*(np.linspace(a, b, 200) for a, b in zip(low, high)))
    points = jnp.asarray(np.stack([g.ravel() for g in grid], axis=1))
    probability = np.exp(method.predict(state, points, key=key).log_positive)

    shades = LinearSegmentedColormap.from_list("classes", ["#bcd3ea", "#ffffff", "#f0cbb9"])
    axis.contourf(*grid, probability.reshape(grid[0].shape), levels=np.linspace(0, 1, 21), cmap=shades)
    axis.contour(*grid, probability.reshape(grid[0].shape), levels=[0.5], colors="black", linewidths=1.8)
    axis.scatter(*rows.X.T, s=9, c=np.where(rows.y > 0, POSITIVE, NEGATIVE), alpha=0.8, linewidths=0)
    Z = np.asarray(method.arrays(state)["inducing"])
    axis.scatter(*Z.T, s=45, c="black", edgecolors="white", linewidths=1.2, zorder=3)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    axis.set_title(f"M = {len(Z)}:  test error {100 * scores['error']:.1f} %,  nll {scores['nll']:.3f}", fontsize=11)


if __name__ == "__main__":
    picture, *words = sys.argv[1:] or [Path(__file__).resolve().parent.parent / "docs" / "banana.png"]
    main(Path(picture), words or ["dataset=banana", "dataset.splits.set=raetsch"])
