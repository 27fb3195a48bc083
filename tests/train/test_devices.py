"""Rows dealt out over devices: the same numbers whatever the number of devices, or of processes that have them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpbench import runtime
from gpbench.errors import ConfigError
from gpbench.train.devices import Devices, fill

HERE = Path(__file__).parent

# Trains each method on several numbers of simulated devices; prints objectives, log probabilities, learned parameters.
# 50 rows are no multiple of 4 or of 12.
SCRIPT = """
import dataclasses, json, sys
from gpbench import runtime
runtime.configure(device="cpu", devices=12)
import jax, numpy as np
from hydra.utils import instantiate
from gpbench.train.devices import Devices, fill
from gpbench.train.group import Fit, initial
from gpbench.train.programs import Programs, lay_out
from toys import group

for name, (config, counts) in json.loads(sys.argv[1]).items():
    method = instantiate(config)
    for count in counts:
        devices = Devices(count)
        data = group(splits=(0,), n=50)
        n = devices.padded(50)
        data = dataclasses.replace(data, X=fill(np.asarray(data.X[0]), n)[None], y=fill(np.asarray(data.y[0]), n)[None])
        programs, run = Programs(method, devices), Fit(None)
        run.state = devices.by_rows(initial(method, data), rows=n)
        data = lay_out(devices, data)
        objective, _ = programs.advance(data, run, method.steps)
        programs.predict(data, run)
        assert len(data.X.sharding.device_set) == count
        names = [name for name in ("layer", "parameters", "weights") if hasattr(run.state, name)]
        state = devices.on_host(getattr(run.state, names[0]) if names else run.state)
        learned = [leaf.ravel().tolist() for leaf in jax.tree.leaves(state)]
        log_prob = run.predictions["log_prob"].tolist()
        print(json.dumps({"name": name, "objective": objective.tolist(), "log_prob": log_prob, "learned": learned}))
"""

_ADADELTA = {"_target_": "gpbench.core.optimisers.adadelta"}
_ADAPTIVE = {"_target_": "gpbench.core.optimisers.adaptive_rates"}
_SEP = {"_target_": "gpbench.methods.ep.sep.SEP", "inducing": 8, "steps": 8, "optimiser": _ADAPTIVE}
_SVI = {"_target_": "gpbench.methods.vi.svi.SVI", "inducing": 8, "steps": 8}
_QSGP = {"_target_": "gpbench.methods.weight_space.qsgp.QSGP"}
METHODS = {
    "sep": _SEP,
    "sep, outer": {**_SEP, "update": "outer", "gradient": "exact"},
    "sep, minibatches with factors": {**_SEP, "batch_size": 15, "optimiser": _ADADELTA},
    "sep, minibatches with scalars": {**_SEP, "batch_size": 15, "memory": "scalars", "optimiser": _ADADELTA},
    "svi": _SVI,
    "svi, minibatches": {**_SVI, "batch_size": 15, "optimiser": _ADADELTA},
    "gfitc": {"_target_": "gpbench.methods.ep.gfitc.GFITC", "inducing": 8, "steps": 4},
    "qsgp": {**_QSGP, "basis": 60, "basis_batch": 20, "block": 5, "steps": 8},
    "logistic": {"_target_": "gpbench.methods.baselines.logistic.Logistic", "steps": 8},
    "constant": {"_target_": "gpbench.methods.baselines.constant.Constant"},
}
ALL = {name: (1, 4, 12) if name in ("sep", "constant") else (1, 4) for name in METHODS}
FEW = {"sep, minibatches with scalars": (1, 12)}


def runs(counts: dict[str, tuple[int, ...]]) -> dict[str, list[dict]]:
    """What SCRIPT prints of these methods: one process, for a process of 12 devices takes seconds to start."""
    words = [sys.executable, "-c", SCRIPT, json.dumps({name: (METHODS[name], counts[name]) for name in counts})]
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE)])
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=1200)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: [line for line in lines if line["name"] == name] for name in counts}


@pytest.mark.parametrize("counts", [FEW, ALL], ids=["few", "all"])
def test_energies_posteriors_and_test_numbers_are_equal_on_any_number_of_devices(counts):
    for name, (one, *others) in runs(counts).items():
        assert len(others) == len(counts[name]) - 1
        for other in others:
            np.testing.assert_allclose(other["objective"], one["objective"], rtol=1e-9, err_msg=name)
            np.testing.assert_allclose(other["log_prob"], one["log_prob"], rtol=1e-7, err_msg=name)
            for ours, theirs in zip(other["learned"], one["learned"], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=name)


def test_more_devices_than_there_are_and_peers_that_cannot_be_read_are_one_line(monkeypatch):
    with pytest.raises(ConfigError, match=r"run\.devices=1000: JAX finds"):
        Devices(1000)
    monkeypatch.setenv("GPBENCH_PEERS", "node1:7777,0")
    with pytest.raises(ConfigError, match="HOST:PORT,INDEX,NUMBER"):
        runtime.peers()
    monkeypatch.setenv("GPBENCH_PEERS", "node1:7777,0,2")
    assert runtime.peers() == ("node1:7777", 0, 2)


def test_rows_that_fill_up_are_rows_again_in_turn():
    np.testing.assert_array_equal(fill(np.arange(6).reshape(3, 2), 5), [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]])
