"""Records, experiments and drawings that tests of figures share."""

import numpy as np
from samples import sample

from gpbench.data.builtin import friedman_effect
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.report import figures

STEPS = 5


def record(id, split=0, group=1, **fields):
    shared = {"preset": "full", "device": "a cpu", "precision": "float64", "group": group}
    measured = {"metrics": {"error": 0.1, "nll": 0.3}, "seconds": {"train": 8.0}}
    return sample(id, split=split, **shared | measured | fields)


def cell(job, *records, splits=range(1)):
    return Cell(job=job, id="c", dataset="d", method=job["method"], seed=0, splits=splits, records=records)


def trace(id):
    steps, rate = np.arange(STEPS), 1.0 + len(id)
    values = {"nll": np.exp(-steps / rate), "error": np.linspace(0.5, 0.1, STEPS), "objective": steps - 9.0}
    return {"step": steps, "seconds": steps + 1.0, **values}


def experiment(**figure):
    labels = {"method": {"sep_minibatch": "stochastic"}, "size": {"4": "m = 4"}}
    presets = {"quick": "few", "full": "all"}
    return Experiment("sep/test", "A figure", "sep", blocks=[], presets=presets, labels=labels, figure=figure)


def drawn(experiment, cells, preset="full", arrays=trace):
    return figures.draw(experiment, preset, cells, arrays)


def small_print(figure):
    return figure.get_supxlabel().splitlines()


def on_a_line(id):
    x = np.linspace(-1, 1, 50)
    curve = {"kept_grid": x[:, None], "kept_mean": x**2, "kept_var": np.full(50, 0.25)}
    places = {"kept_inducing": np.array([[0.5], [-0.5]]), "kept_covariance_inducing": np.array([[0.1]])}
    return {**curve, **places, "kept_X": x[::7, None], "kept_y": x[::7] ** 2}


def of_effects(id):
    """Friedman's effects of two inputs with an error of 0.3, and of an interaction with none."""
    grid, pairs = np.linspace(0, 1, 11)[:, None], np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 2, indexing="ij"), -1)
    pairs = pairs.reshape(-1, 2)
    exact = np.stack([friedman_effect((d,), grid) for d in (0, 3)])
    arrays = {"X": np.array([[-1.0] * 4, [1.0] * 4]), "y_std": np.asarray(2.0)}
    arrays |= dict.fromkeys(("X_scale", "X_shift"), np.full(4, 0.5))
    effects = ([[0.0], [3.0]], grid, (exact + 0.3) / 2), ([[0.0, 1.0]], pairs, friedman_effect((0, 1), pairs)[None] / 2)
    for k, (inputs, points, mean) in enumerate(effects, 1):
        parts = {"inputs": np.array(inputs), "grid": points, "mean": mean, "std": np.full(mean.shape, 0.1)}
        arrays |= {f"effect{k}_{name}": values for name, values in parts.items()}
    return {f"kept_{name}": values for name, values in arrays.items()}
