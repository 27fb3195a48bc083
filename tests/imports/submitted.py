"""Files of predictions that tests of the import share."""

import numpy as np
import pandas as pd

from gpbench.cli import main
from gpbench.config.compose import compose
from gpbench.data import configured, splits
from gpbench.records.store import Store


def data(name, split=0):
    cfg = compose([f"dataset={name}"])
    dataset = configured(cfg)
    return dataset, *splits.indices(cfg["dataset"], dataset, split)


def regression(split=0, name="sinc", **columns):
    dataset, train, test = data(name, split)
    mean = 0.9 * dataset.y[test] + 0.1 * dataset.y[train].mean()
    table = {"dataset": name, "split": split, "method": "theirs", "row": test, "mean": mean, "variance": 0.05}
    return pd.DataFrame(table | columns)


def classification(split=0, name="moons", **columns):
    dataset, _, test = data(name, split)
    p = np.where(np.random.default_rng(split).random(len(test)) < 0.8, dataset.y[test] > 0, dataset.y[test] < 0)
    p = 0.1 + 0.8 * p
    table = {"dataset": name, "split": split, "method": "theirs", "row": test, "prob_0": 1 - p, "prob_1": p}
    return pd.DataFrame(table | columns)


def bring(folder, table, *words, name="theirs.parquet"):
    file = folder / name
    table.to_csv(file, index=False) if name.endswith(".csv") else table.to_parquet(file)
    return main(["import", str(file), "--results", str(folder / "results"), *words])


def records(folder):
    return Store(folder / "results").all()
