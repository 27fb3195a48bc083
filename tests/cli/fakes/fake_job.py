"""A training job without JAX: its `method.fate` says how it ends and `method.seconds` how long it takes.

It notes every start and every record in the file that FAKE_LOG names, and prints FAKE_PRINT without a line end.
"""

import errno
import os
import signal
import time
from pathlib import Path

from gpbench.records.record import Record


def run_job(plan, *, store, progress, stop):
    from gpbench.errors import ConfigError
    from gpbench.records.identity import SCHEMA

    cfg, method, recorded = plan.cfg, plan.cfg["method"], plan.recorded(store)
    setting = ",".join(f"{key}={value}" for key, value in cfg["changes"].items())
    records = []
    for run in plan.runs:
        id, split, record = run.id, run.split, recorded.get(run.id)
        if record is None:
            _note("train", id)
            print(os.environ.get("FAKE_PRINT", ""), end="")
            progress.begin("fake", 10, f"split {split}")
            _train(Path(cfg["run"]["results"]) / "checkpoints" / id, method, stop)
            progress.end()
            if method["fate"] == "error":
                raise ConfigError("fated to fail")
            if method["fate"] == "bug":
                raise ValueError("a bug of ours")
            if method["fate"] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if method["fate"] == "vanishes":
                os._exit(0)
            if method["fate"] == "full":
                raise OSError(errno.ENOSPC, "No space left on device", "/some/file")
            name = {"schema": SCHEMA, "id": id, "dataset": cfg["dataset"]["name"], "method": "fake", "setting": setting}
            end = {"status": method["fate"], "message": "NaN at step 3", "kept": cfg["run"]["keep"]}
            end["metrics"] = {"nll": 0.25 * (split + 1) + cfg["seed"]}
            end["seconds"] = {"compile": 1.0, "train": 2.0, "evaluate": 0.5}
            record = Record.from_json(name | end | {"protocol": "plain", "split": split, "seed": cfg["seed"]})
            store.write(record, cfg, {}, replace=plan.again or "keep" in plan.extras)
            _note("record", id)
        records.append(record)
    return records


def _train(checkpoint, method, stop):
    """Pass the seconds, of those that the checkpoint has not; stopped, leave one."""
    from gpbench.errors import Stopped

    left = method["seconds"] - (float(checkpoint.read_text()) if checkpoint.is_file() else 0)
    end = time.monotonic() + left
    while time.monotonic() < end:
        if stop.reason and method["fate"] != "deaf":
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write_text(str(method["seconds"] - end + time.monotonic()))
            raise Stopped(f"{stop.reason}: stopped at a checkpoint")
        time.sleep(0.01)
    checkpoint.unlink(missing_ok=True)


def _note(what, id):
    if named := os.environ.get("FAKE_LOG"):
        with open(named, "a") as file:  # one short write, whole among those of others
            file.write(f"{what} {id}\n")
