"""Records whose truth is known, and the verdict of a claim over them."""

import json
from dataclasses import replace

import numpy as np
from samples import sample

from gpbench.claims import definition, verdicts
from gpbench.experiments.status import Cell

SETS = ("pima", "sonar", "heart", "crabs", "wdbc", "breast", "australian")
ON_TOP = {"a": 0.30, "b": 0.40, "c": 0.405}
"""The mean nll of methods; b and c differ by less than what splits show."""


def record(method, dataset, split, **fields):
    rng = np.random.default_rng([ord(method[0]), SETS.index(dataset), split])
    metrics = {"nll": ON_TOP[method[0]] + 0.01 * rng.normal(), "error": 0.1, "coverage95": 0.95}
    return sample(
        **{
            "id": f"{method}{dataset}{split}",
            "dataset": dataset,
            "method": method,
            "split": split,
            "metrics": metrics,
            "preset": "full",
            "device": "cpu",
            "seconds": {"train": 3.0 if method == "a" else 1.0},
            "train_rows": 900,
            "test_rows": 100,
        }
        | fields
    )


RECORDS = [record(method, dataset, split) for method in ON_TOP for dataset in SETS for split in range(10)]
SIZES = [
    replace(
        record("a", "pima", split, id=f"{size}-{split}", setting=str(size), seconds={"train": 1e-6 * size**2}),
        metrics={"nll": 1.0 / size + 1e-4 * split},
    )
    for size in (100, 200, 400, 800)
    for split in range(5)
]


def judge(tmp_path, clauses, records=RECORDS, planned=lambda id, preset: (), preset=None, arrays=None, **claim):
    """The verdict on these clauses; `arrays` are those of the runs by id."""
    text = json.dumps({"c": {"text": "as it says", "clauses": clauses, **claim}})
    (tmp_path / "claims").mkdir(exist_ok=True)
    (tmp_path / "claims" / "mine.yaml").write_text(text)
    read = lambda id: (arrays or {}).get(id, {})
    (verdict,) = verdicts.judge(definition.read("mine", [tmp_path]), records, planned, preset=preset, read=read)
    return verdict


A_B, B_C = ({"a": {"method": x}, "b": {"method": y}} for x, y in ("ab", "bc"))
HOLDS, MOSTLY, LEANS_FOR, MIXED, LEANS_AGAINST, FAILS = (
    "holds",
    "mostly holds",
    "leans for",
    "mixed",
    "leans against",
    "fails",
)


def plan(presets):
    """Cells of methods a and b with so many splits in each preset, and the first `recorded` of them."""

    def planned(id, preset):
        splits, recorded = presets.get(preset, (0, 0))
        return [
            Cell(
                {"method": word},
                word,
                "pima",
                word,
                0,
                range(splits),
                records=[record(word, "pima", split) for split in range(recorded)],
            )
            for word in "ab"
            if splits
        ]

    return planned
