"""Records whose truth is known, and the verdict of a claim over them."""

import json

import numpy as np
from samples import sample

from gpbench.claims import definition, verdicts
from gpbench.experiments.plan import Cell

SETS = ("pima", "sonar", "heart", "crabs", "wdbc", "breast", "australian")
ON_TOP = {"a": 0.30, "b": 0.40, "c": 0.405}
"""The mean nll of methods; b and c differ by less than what splits show."""


def record(method, dataset, split, **fields):
    rng = np.random.default_rng([ord(method[0]), SETS.index(dataset), split])
    metrics = {"nll": ON_TOP[method[0]] + 0.01 * rng.normal(), "error": 0.1, "coverage95": 0.95}
    name = {"id": f"{method}{dataset}{split}", "dataset": dataset, "method": method, "split": split}
    facts = {"preset": "full", "device": "cpu", "train_rows": 900, "test_rows": 100}
    seconds = {"train": 3.0 if method == "a" else 1.0}
    return sample(**name | facts | {"metrics": metrics, "seconds": seconds} | fields)


RECORDS = [record(method, dataset, split) for method in ON_TOP for dataset in SETS for split in range(10)]
_of_size = lambda n, k: {"metrics": {"nll": 1 / n + 1e-4 * k}, "seconds": {"train": 1e-6 * n**2}}
_PLACES = [(n, k) for n in (100, 200, 400, 800) for k in range(5)]
SIZES = [record("a", "pima", k, id=f"{n}-{k}", setting=f"{n}", **_of_size(n, k)) for n, k in _PLACES]


def judge(tmp_path, clauses, records=RECORDS, planned=lambda id, preset: (), preset=None, arrays=None, **claim):
    """The verdict on these clauses; `arrays` are those of the runs by id."""
    text = json.dumps({"c": {"text": "as it says", "control": "others", "clauses": clauses, **claim}})
    (tmp_path / "claims").mkdir(exist_ok=True)
    (tmp_path / "claims" / "mine.yaml").write_text(text)
    read = lambda id: (arrays or {}).get(id, {})
    (verdict,) = verdicts.judge(definition.read("mine", [tmp_path]), records, planned, preset=preset, read=read)
    return verdict


A_B, B_C = ({"a": {"method": x}, "b": {"method": y}} for x, y in ("ab", "bc"))
HOLDS, LEANS_FOR, MIXED, FAILS = "holds", "leans for", "mixed", "fails"


def cells(word, splits, recorded, dataset="pima", **job):
    """The cell of a method in a plan, of which so many splits are recorded."""
    records = [record(word, dataset, split) for split in range(recorded)]
    name = f"{word}{''.join(job.values())}"
    return Cell({"method": word, **job}, name, dataset, "a", 0, range(splits), records=records)


def plan(presets):
    """Cells of methods a and b with so many splits in each preset, and the first `recorded` of them."""

    def planned(id, preset):
        splits, recorded = presets.get(preset, (0, 0))
        return [cells(word, splits, recorded) for word in "ab" if splits]

    return planned
