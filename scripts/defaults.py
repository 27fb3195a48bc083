"""Defaults of methods beside a small grid of settings, on the training rows of development sets.

    python scripts/defaults.py rows DIR                  # the training rows of split 0, as data sets of their own
    python scripts/defaults.py run DIR [METHOD ...]      # trains what is missing there, resumably
    python scripts/defaults.py table DIR                 # the scores, in Markdown

A fifth of the training rows of split 0 is held out and scored.  The test rows of split 0 are not in DIR, so that no
score of a table is seen.  `scripts/defaults.yaml` has the sets and the settings; `before` is the default from before a
choice.  `DIR/grid.yaml`, where it is there, takes its place.
"""

import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

import gpbench
from gpbench.data import splits

_, VERB, FOLDER, *METHODS = sys.argv if len(sys.argv) > 2 else sys.exit(__doc__)
_FILES = (Path(FOLDER) / "grid.yaml", Path(__file__).with_suffix(".yaml"))
GRID = yaml.safe_load(next(path for path in _FILES if path.exists()).read_text())
SETS = GRID["sets"]
SCORE = {"regression": ("test_ll", 1.0), "binary": ("nll", -1.0)}
"""The metric of each task, and its sign in a log density, of which more is better."""
LIMIT = 600
"""Seconds after which a setting waits for the next pass, so that a slow one does not keep the others waiting."""


def write_rows(folder: Path) -> None:
    """Writes the training rows of split 0 of each development set as a data set with five folds."""
    (folder / "dataset").mkdir(parents=True, exist_ok=True)
    for name in [name for names in SETS.values() for name in names]:
        loaded = gpbench.load(name)
        train, _ = splits.indices(loaded.card, loaded.rows, 0)
        np.savez(folder / f"{name}_rows.npz", X=loaded.X[train], y=loaded.y[train])
        source = {"kind": "file", "path": f"{name}_rows.npz", "reader": "npz"}
        card = {"name": f"{name}_rows", "task": loaded.task, "sources": [source]}
        card["splits"] = {"set": "kfold", "sets": {"kfold": 5}, "folds": 5}
        (folder / "dataset" / f"{name}_rows.yaml").write_text(yaml.safe_dump(card, sort_keys=False))


def settings(method: str) -> list[str]:
    """The words of the default of a method, none unless it was changed, and those of each setting of its grid."""
    return [GRID["methods"][method].get("before", ""), *GRID["methods"][method].get("settings", [])]


def sets(method: str) -> list[str]:
    """The development sets that a method is compared on: its own, where one costs hours, or those of its tasks."""
    own = GRID["methods"][method]
    return own.get("sets") or [name for task in own.get("tasks", list(SETS)) for name in SETS[task]]


def results(folder: Path, method: str, words: str) -> Path:
    """The results folder of the runs of a method with a setting."""
    return folder / "results" / method / (re.sub(r"[^\w.-]+", "-", words).strip("-") or "default")


def scores(folder: Path) -> dict[str, tuple[float, float]]:
    """The log density of the rows held out, nats a row, and the seconds, for each data set in a results folder; a run
    that diverged or failed has minus infinity."""
    found: dict[str, tuple[float, float]] = {}
    if not any(folder.glob("runs/*/record.json")):
        return found
    for _, row in gpbench.frame(folder).iterrows():
        name = row["dataset"].removesuffix("_rows")
        metric, sign = SCORE["regression" if name in SETS["regression"] else "binary"]
        done = row["status"] == "done"
        found[name] = (sign * row[f"metrics.{metric}"], row["seconds.train"]) if done else (-np.inf, np.nan)
    return found


def run(folder: Path, methods: list[str]) -> None:
    """Trains the runs that are not recorded, a command for each setting."""
    for method in methods or GRID["methods"]:
        for words in settings(method):
            names = ",".join(f"{name}_rows" for name in sets(method))
            keys = {word.partition("=")[0] for word in words.split()}
            others = [word for word in settings(method)[0].split() if word.partition("=")[0] not in keys]
            command = [sys.executable, "-m", "gpbench", "run", "--config-dir", str(folder), "-m", f"dataset={names}"]
            command += [f"method={method}", *words.split(), *others, f"run.results={results(folder, method, words)}"]
            command += [f"run.time_limit={LIMIT}"]
            print(method, words or "default", flush=True)
            subprocess.run(command, check=False)  # a job that fails or diverges is in its record


def table(folder: Path) -> None:
    """Prints each setting's score less the best of the grid, for each set with two settings, and the seconds."""
    print("| method | setting | " + " | ".join([*SETS["regression"], *SETS["binary"]]) + " | worst | seconds |")
    print("|---" * (4 + len(SETS["regression"] + SETS["binary"])) + "|")
    for method in GRID["methods"]:
        cells = {words: scores(results(folder, method, words)) for words in settings(method)}
        values = {name: [row[name][0] for row in cells.values() if name in row] for name in sets(method)}
        for words, row in cells.items():
            short = {name: row[name][0] - max(values[name]) for name in row if len(values.get(name, ())) > 1}
            if short:
                texts = [f"{short[name]:+.3f}" if name in short else "" for names in SETS.values() for name in names]
                seconds = statistics.fmean(row[name][1] for name in short)
                texts += [f"{min(short.values()):+.3f}", f"{seconds:.0f}"]
                print(f"| {method} | {words or 'default'} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    {"rows": write_rows, "run": lambda folder: run(folder, METHODS), "table": table}[VERB](Path(FOLDER))
