"""Rows dealt out over devices, and runs in two real processes: the numbers of one, and a clear end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_resume import OFTEN, await_step, finish, start
from toys import job

from gpbench import runtime
from gpbench.errors import ConfigError, PeerError, Stopped
from gpbench.records.record import Record
from gpbench.records.store import Store
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


def test_rows_that_fill_up_are_rows_in_turn_and_too_many_devices_and_unreadable_peers_are_one_line(monkeypatch):
    with pytest.raises(ConfigError, match=r"run\.devices=1000: JAX finds"):
        Devices(1000)
    monkeypatch.setenv("GPBENCH_PEERS", "node1:7777,0")
    with pytest.raises(ConfigError, match="HOST:PORT,INDEX,NUMBER"):
        runtime.peers()
    monkeypatch.setenv("GPBENCH_PEERS", "node1:7777,0,2")
    assert runtime.peers() == ("node1:7777", 0, 2)
    np.testing.assert_array_equal(fill(np.arange(6).reshape(3, 2), 5), [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]])


MOONS = ["dataset=moons", "protocol=hl2016"]
ROWS = [*MOONS, "method.inducing=8"]
OF_SEP = [*ROWS, "method=sep", "protocol.steps=8", "run.trace_every=4"]
LOGISTIC = [*MOONS, "method=logistic", "method.steps=8", "run.trace_every=4"]
BATCHES = [*ROWS, "method=sep_minibatch", "method.batch_size=64", "method.steps=32", "run.trace_every=1"]
TWO = "run.processes=2"


def record(results: Path, *words: str) -> Record:
    code, err = finish(start(results, *words))
    assert code == 0, err
    (made,) = Store(results).all()
    return made


def workers(parent: int) -> list[int]:
    """The processes that `parent` started, in order."""
    return sorted(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


@pytest.mark.parametrize("words", [LOGISTIC, OF_SEP], ids=["logistic", "sep"])
def test_two_processes_give_the_numbers_of_one_and_only_the_first_speaks(tmp_path, words):
    (one,) = job(tmp_path / "one", *words)
    out, _ = start(tmp_path / "two", *words, TWO, "--json").communicate(timeout=120)
    (two,) = json.loads(out)["records"]
    agree(Record.from_json(two), one)


def agree(two: Record, one: Record) -> None:
    """Assert that a run of two processes is one of these, with the numbers of the same run in one."""
    assert (two.devices, two.processes, one.devices) == (2, 2, 1)
    assert two.id == one.id
    assert two.objective == pytest.approx(one.objective, rel=1e-8)
    assert two.metrics == pytest.approx(one.metrics, rel=1e-6)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of child processes")
def test_a_killed_process_ends_the_run_in_a_line_and_the_same_command_goes_on(tmp_path):
    for victim in (0, 1):
        process = start(tmp_path / "killed", *BATCHES, TWO, OFTEN, "run.progress=false")
        await_step(tmp_path / "killed", (4, 16)[victim])
        os.kill(workers(process.pid)[victim], signal.SIGKILL)
        code, err = finish(process)
        assert code == PeerError.exit_code
        assert f"process {victim} of 2 was killed by SIGKILL; run the same command to resume" in err
        assert "Traceback" not in err
    code, err = finish(start(tmp_path / "killed", *BATCHES, TWO))
    assert code == 0 and "going on from the checkpoint" in err
    (two,) = Store(tmp_path / "killed").all()
    agree(two, record(tmp_path / "undisturbed", *BATCHES))  # two processes share minibatches, too


def test_sigterm_stops_both_at_one_checkpoint(tmp_path):
    process = start(tmp_path, *BATCHES, TWO, OFTEN)
    await_step(tmp_path, 4)
    process.terminate()
    code, err = finish(process)
    assert code == Stopped.exit_code, err
    assert "stopped by SIGTERM at step" in err


def test_devices_that_cannot_be_shared_are_one_line(tmp_path):
    code, err = finish(start(tmp_path, *OF_SEP, TWO, "run.devices=3"))
    assert (code, err) == (2, "gpbench: run.devices=3 cannot be shared equally by run.processes=2\n")
