"""Ids of runs never change: those of every experiment, as they were when its records were committed."""

import hashlib
import json
from pathlib import Path

from committed import PLANNER

from gpbench.experiments import definition
from gpbench.experiments.definition import overrides
from gpbench.experiments.plan import plans
from gpbench.records.collection import open_store

RESULTS = Path(__file__).resolve().parents[2] / "results"

KNOWN = json.loads((Path(__file__).parent / "ids.json").read_text())
"""For each experiment and preset: the number of runs, and a digest of their ids, cells, splits and outputs."""


def runs(name: str, preset: str) -> list[list]:
    """The runs of an experiment, each as its id, cell, split and output."""
    jobs = [overrides(job) for job in definition.read(name).jobs(preset)]
    return [[run.id, run.cell, run.split, run.output] for plan in PLANNER.plans(jobs) for run in plan.runs]


def test_the_ids_of_every_experiment_and_of_every_committed_record_are_computed_again():
    """In one test, which plans them once."""
    assert {f"{name} {preset}" for name in definition.names() for preset in definition.PRESETS} == KNOWN.keys()
    planned = {key: runs(*key.split()) for key in KNOWN}
    digest = lambda of: hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]
    assert {key: [len(of), digest(of)] for key, of in planned.items()} == KNOWN
    assert not [key for key, of in planned.items() if len({run[0] for run in of}) < len(of)]
    ids = {run[0] for of in planned.values() for run in of}
    job = ["method=logistic", "protocol=hl2016", "split=all"]
    sets = ["australian", "breast", "crabs", "heart", "ionosphere", "pima", "sonar"]
    ids |= {run.id for plan in plans([[*job, f"dataset={name}"] for name in sets]) for run in plan.runs}
    beside_gpboost = ["method=vif", "method.inducing=100", "protocol=clean", "split=[0,1,2,3,4,5,6,7,8,9]"]
    peers = [[*beside_gpboost, f"dataset={name}"] for name in ("concrete", "energy")]
    ids |= {run.id for plan in plans(peers) for run in plan.runs}
    for path in sorted(RESULTS.glob("*/records.parquet")):
        unknown = [record for record in open_store(path).all() if record.id not in ids]
        assert all(record.imported for record in unknown), path
