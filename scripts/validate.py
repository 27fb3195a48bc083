"""Compares settings of methods on validation rows: a fifth of the training rows of each split; test rows are not read.

    python scripts/validate.py protocol.lengthscale_prior null '{median: 1.0, spread: 1.0}' \
        --methods svi:100 vsgpr:100 --datasets yacht energy --splits 2

prints, for each data set and method, the mean log predictive density of the validation rows (nats per row, original
units) under the first value, and how much more it is under each of the others.
"""

import argparse
from statistics import fmean, stdev

import numpy as np
import yaml
from sklearn.model_selection import ShuffleSplit

from gpbench import runtime

runtime.configure(device="cpu")

from gpbench import data as data_layer  # noqa: E402
from gpbench.config.compose import compose  # noqa: E402
from gpbench.data import splits  # noqa: E402
from gpbench.estimators import Classifier, Regressor  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", help="a key of the method or the protocol")
    parser.add_argument("values", nargs="+", help="its values, as on the command line")
    parser.add_argument("--methods", nargs="+", required=True, metavar="NAME:M", help="with M inducing points")
    parser.add_argument("--datasets", nargs="+", required=True)
    parser.add_argument("--splits", type=int, default=2, help="how many splits, from 0")
    parser.add_argument("--output", type=int, help="of a data set with several outputs, the number of one")
    parser.add_argument("--also", nargs="+", default=[], metavar="KEY=VALUE", help="settings of all runs")
    args = parser.parse_args()
    gains: dict[str, list[float]] = {value: [] for value in args.values[1:]}
    print("| data set | method | " + " | ".join(args.values) + " |")
    print("| --- " * (2 + len(args.values)) + "|")
    for dataset in args.datasets:
        for method in args.methods:
            scores = [score(dataset, method, [*args.also, f"{args.key}={value}"], args) for value in args.values]
            more = [value - scores[0] for value in scores[1:]]
            for value, gain in zip(gains, more, strict=True):
                gains[value].append(gain)
            texts = [dataset, method, f"{scores[0]:.4f}", *(f"{gain:+.4f}" for gain in more)]
            print("| " + " | ".join(texts) + " |", flush=True)
    for value, gain in gains.items():
        error = stdev(gain) / len(gain) ** 0.5 if len(gain) > 1 else float("nan")
        print(f"{args.key}={value}: {fmean(gain):+.4f} ± {error:.4f} over {len(gain)} pairs of data set and method")


def score(dataset: str, method: str, settings: list[str], args: argparse.Namespace) -> float:
    """Mean log predictive density of the validation rows of the first splits."""
    cfg = compose([f"dataset={dataset}"])
    data = data_layer.configured(cfg)
    y = data.y if args.output is None else data.y[:, args.output]
    name, _, inducing = method.partition(":")
    settings = settings + [f"method.inducing={inducing}"] * bool(inducing)
    options = {key: yaml.safe_load(value) for key, _, value in (setting.partition("=") for setting in settings)}
    kind = Regressor if data.task == "regression" else Classifier
    scores = []
    for k in range(args.splits):
        train, _ = splits.indices(cfg["dataset"], data, k)
        ((fit, held_out),) = ShuffleSplit(1, test_size=0.2, random_state=k).split(train)
        model = kind(method=name, options=options).fit(data.X[train[fit]], y[train[fit]])
        scores.append(float(np.mean(log_density(model, data.X[train[held_out]], y[train[held_out]]))))
    return fmean(scores)


def log_density(model: Classifier | Regressor, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log p(y) of every row; of a regressor by its predictive mean and standard deviation."""
    if isinstance(model, Classifier):
        columns = np.searchsorted(model.classes_, y)
        return np.log(model.predict_proba(X)[np.arange(len(y)), columns])
    mean, std = model.predict(X, return_std=True)
    return -0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)


if __name__ == "__main__":
    main()
