"""Records and what lies beside them, which tests of damaged and of odd records share."""

import subprocess

import numpy as np
from samples import sample

from gpbench.records.record import Record

A, B = "a" * 16, "b" * 16
CONFIG = {"method": {"m": "15%"}}
TRACE = {"step": np.arange(3), "nll": np.array([0.9, 0.7, 0.5])}
PREDICTIONS = {"row": np.arange(4), "target": np.ones(4), "log_prob": np.full(4, -0.5), "mean": np.zeros(4)}
PREDICTIONS |= {"variance": np.ones(4)}
STATE = {"state/0": np.arange(3.0)}


def raw(id=A, **fields):
    shared = {"message": None, "setting": "m=15%", "output": None, "metrics": {"nll": 0.5, "error": 0.2}}
    more = {"seconds": {"train": 2.0}, "versions": {"jax": "0.1"}, "created": "2026-01-01T00:00:00"}
    return sample(id, **shared, **more).to_json() | fields


def record(id=A, **fields):
    return Record.create(**raw(id, **fields))


def write(store, id=A, **fields):
    return store.write(record(id, **fields), CONFIG, TRACE, predictions=PREDICTIONS, state=STATE)


def ended_pid():
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        return process.pid
